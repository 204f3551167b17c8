package policy

import "redis_keyhealth_exporter/internal/keyspace"

// NameTooLong asks for names that Redis can hold in one allocation together
// with their header (embstr).
type NameTooLong struct {
	MaxBytes int64
}

// Check compares the length of the whole name.
func (r *NameTooLong) Check(k *keyspace.Key) Severity {
	if k.NameBytes > r.MaxBytes {
		return Warning
	}
	return Healthy
}
