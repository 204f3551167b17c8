package policy

import "redis_keyhealth_exporter/internal/keyspace"

// NameFormat asks for names of the form business:data:id.
type NameFormat struct {
	MinSegments int // non-empty ones; 3 is the strict business:data:id
}

// Check counts segments and looks at the first one in a single pass.
func (r *NameFormat) Check(k *keyspace.Key) Severity {
	open, closing := hashTag(k.Name)
	segments, length, inFirst := 0, 0, true
	for i := 0; i < len(k.Name); i++ {
		if i == open || i == closing {
			continue
		}
		c := k.Name[i]
		if isSeparator(c) {
			if inFirst && length == 0 {
				return Warning
			}
			length, inFirst = 0, false
			continue
		}
		if inFirst && !isLetter(c) && (length == 0 || !isDigit(c) && c != '_') {
			return Warning
		}
		if length == 0 {
			segments++
		}
		length++
	}
	if segments < r.MinSegments {
		return Warning
	}
	return Healthy
}
