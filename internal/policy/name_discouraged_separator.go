package policy

import "redis_keyhealth_exporter/internal/keyspace"

// NameDiscouragedSeparator finds other separators than `:` inside of segments
// that name a kind of thing, not one thing.
type NameDiscouragedSeparator struct{}

// Check splits the name into segments; what is inside a hash tag never counts.
func (NameDiscouragedSeparator) Check(k *keyspace.Key) Severity {
	open, closing := hashTag(k.Name)
	start, suspicious := 0, false
	for i := 0; i <= len(k.Name); i++ {
		if i == len(k.Name) || isSeparator(k.Name[i]) {
			if suspicious && !isIDLike(k.Name[start:i]) {
				return Warning
			}
			start, suspicious = i+1, false
			continue
		}
		switch k.Name[i] {
		case '-', '.', '+', '=':
			suspicious = suspicious || i < open || i > closing
		}
	}
	return Healthy
}
