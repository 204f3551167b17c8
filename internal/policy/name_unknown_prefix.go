package policy

import "redis_keyhealth_exporter/internal/keyspace"

// NameUnknownPrefix finds keys whose first segment belongs to no business that
// was agreed upon.
type NameUnknownPrefix struct {
	Allowed map[string]bool // first segments, without the braces of a hash tag
}

// Configured tells whether there is a list to judge by.
func (r *NameUnknownPrefix) Configured() bool { return len(r.Allowed) > 0 }

// Check looks the first segment up.
func (r *NameUnknownPrefix) Check(k *keyspace.Key) Severity {
	var buf [64]byte // a prefix that does not fit costs an allocation, no more
	first := buf[:0]
	open, closing := hashTag(k.Name)
	for i := 0; i < len(k.Name) && !isSeparator(k.Name[i]); i++ {
		if i != open && i != closing {
			first = append(first, k.Name[i])
		}
	}
	if r.Allowed[string(first)] {
		return Healthy
	}
	return Warning
}
