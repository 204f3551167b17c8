package policy

import "redis_keyhealth_exporter/internal/keyspace"

// BigString judges the length of a string's value, which a reader pays for in
// whole: bitmaps and HyperLogLogs are strings too.
type BigString struct {
	Warning, Critical int64 // bytes by STRLEN: above, at or above
}

// Check compares STRLEN.
func (r *BigString) Check(k *keyspace.Key) Severity {
	return tier(k.Length, r.Warning, r.Critical)
}

// Floor: MEMORY USAGE counts the value's bytes and overhead besides.
func (r *BigString) Floor(keyspace.Type) int64 { return min(r.Warning+1, r.Critical) }

// tier grades a size: above warning, or at or above critical. For divided
// sizes that keeps both boundaries where the rulebook has them.
func tier[N int64 | float64](size, warning, critical N) Severity {
	switch {
	case size >= critical:
		return Critical
	case size > warning:
		return Warning
	}
	return Healthy
}
