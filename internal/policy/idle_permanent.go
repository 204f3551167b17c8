package policy

import (
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
)

// IdlePermanent finds the keys that nobody uses and nothing removes.
type IdlePermanent struct {
	Above time.Duration
}

// Check compares OBJECT IDLETIME.
func (r *IdlePermanent) Check(k *keyspace.Key) Severity {
	if k.TTL == keyspace.NoTTL && k.Idle > r.Above {
		return Warning
	}
	return Healthy
}
