package policy

import "redis_keyhealth_exporter/internal/keyspace"

// JSONString finds serialised objects and lists: a reader of one field pays for
// all of them. It has to read a byte of the value, so it is opt-in.
type JSONString struct {
	Above int64 // bytes by STRLEN
}

// Check looks at the first byte.
func (r *JSONString) Check(k *keyspace.Key) Severity {
	if k.Length > r.Above && (k.Head == '{' || k.Head == '[') {
		return Warning
	}
	return Healthy
}

// SampledFloor: MEMORY USAGE counts the value's bytes and overhead besides.
func (r *JSONString) SampledFloor(keyspace.Type) int64 { return r.Above + 1 }
