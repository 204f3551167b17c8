package policy

import "redis_keyhealth_exporter/internal/keyspace"

// HotKey finds the keys that are accessed most, by the counter of the LFU
// policies: logarithmic, 0 to 255, and falling again when they are left alone.
type HotKey struct {
	Least uint8
}

// Check compares OBJECT FREQ.
func (r *HotKey) Check(k *keyspace.Key) Severity {
	if k.Frequency >= r.Least {
		return Warning
	}
	return Healthy
}
