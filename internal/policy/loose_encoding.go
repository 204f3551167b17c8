package policy

import "redis_keyhealth_exporter/internal/keyspace"

// minFieldBytes is the least that a field of a hash table costs in MEMORY USAGE:
// its share of the table and the smallest strings for its name and value.
// Measured: 513 fields without values take 28,816.
const minFieldBytes = 16

// LooseEncoding finds the hashes that are just too large for a listpack: split
// below its limit they would take a fraction of the memory.
type LooseEncoding struct {
	Least, Most int64 // fields
}

// Check takes a larger hash for many_elements' business.
func (r *LooseEncoding) Check(k *keyspace.Key) Severity {
	if k.Encoding == keyspace.EncodingHashtable && r.Least <= k.Length && k.Length <= r.Most {
		return Warning
	}
	return Healthy
}

// Floor is what the fewest fields take.
func (r *LooseEncoding) Floor(keyspace.Type) int64 { return minFieldBytes * r.Least }
