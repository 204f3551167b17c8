package policy

import "redis_keyhealth_exporter/internal/keyspace"

// NameOversized finds the names that are too long to be sent back to Redis. Its
// limit is the scanner's own, hence not a setting.
type NameOversized struct{}

// Check compares the length of the whole name.
func (NameOversized) Check(k *keyspace.Key) Severity {
	if k.Oversized() {
		return Warning
	}
	return Healthy
}
