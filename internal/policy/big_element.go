package policy

import "redis_keyhealth_exporter/internal/keyspace"

// BigElement judges the average size of a collection's elements.
type BigElement struct {
	Warning, Critical float64 // bytes by MEMORY USAGE ÷ elements: above, at or above
}

// Check divides; a collection without elements is just going away.
func (r *BigElement) Check(k *keyspace.Key) Severity {
	if k.Length < 1 {
		return Healthy
	}
	return tier(float64(k.Bytes)/float64(k.Length), r.Warning, r.Critical)
}

// Floor is what a collection of one such element takes.
func (r *BigElement) Floor(keyspace.Type) int64 { return int64(min(r.Warning, r.Critical)) }
