package policy

import "redis_keyhealth_exporter/internal/keyspace"

// TTLMissing finds the keys that live for ever.
type TTLMissing struct{}

// Check looks for a TTL.
func (TTLMissing) Check(k *keyspace.Key) Severity {
	if k.TTL == keyspace.NoTTL {
		return Warning
	}
	return Healthy
}
