package policy

import "redis_keyhealth_exporter/internal/keyspace"

// TTLBigKey finds the collections whose expiry blocks the server for as long as
// it takes to free their elements.
type TTLBigKey struct{}

// Of are the rules that find large collections, in any tier.
func (TTLBigKey) Of() [][]string { return [][]string{{"many_elements", "big_collection"}} }

// Check looks for a TTL.
func (TTLBigKey) Check(k *keyspace.Key) Severity {
	if k.TTL != keyspace.NoTTL {
		return Warning
	}
	return Healthy
}

// Harmless: a server that frees in the background does not block.
func (TTLBigKey) Harmless(lazyExpire Setting) Setting { return lazyExpire }
