package policy

import "redis_keyhealth_exporter/internal/keyspace"

// minElementBytes is what the smallest element costs in MEMORY USAGE: a small
// integer in a listpack or intset takes two bytes. (Measured: 1001 small
// integers in a list take 2,176 bytes.) A quicklist that compresses its inner
// nodes and holds nothing but repetitions could take less.
const minElementBytes = 2

// ManyElements judges the number of elements, which O(N) commands pay for.
type ManyElements struct {
	Warning, Critical int64 // elements: above, at or above
}

// Check compares LLEN, HLEN, SCARD, ZCARD or XLEN.
func (r *ManyElements) Check(k *keyspace.Key) Severity {
	return tier(k.Length, r.Warning, r.Critical)
}

// Floor is what that many of the smallest elements take.
func (r *ManyElements) Floor(keyspace.Type) int64 {
	return minElementBytes * min(r.Warning, r.Critical)
}
