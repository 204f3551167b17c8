package policy

import "redis_keyhealth_exporter/internal/keyspace"

// BigCollection judges all the memory that a key takes.
type BigCollection struct {
	Warning, Critical int64 // bytes by MEMORY USAGE: above, at or above
}

// Check compares MEMORY USAGE.
func (r *BigCollection) Check(k *keyspace.Key) Severity {
	return tier(k.Bytes, r.Warning, r.Critical)
}

// Floor is the limit itself: the length is fetched to be shown beside the size.
func (r *BigCollection) Floor(keyspace.Type) int64 { return min(r.Warning+1, r.Critical) }
