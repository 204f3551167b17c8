package policy

import (
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
)

const day = 24 * time.Hour

// TTLTooLong finds the keys that live nearly for ever.
type TTLTooLong struct {
	Max time.Duration
}

// Check compares the remaining lifetime.
func (r *TTLTooLong) Check(k *keyspace.Key) Severity {
	if k.TTL > r.Max {
		return Warning
	}
	return Healthy
}
