package policy

import "redis_keyhealth_exporter/internal/keyspace"

// What the smallest element costs in MEMORY USAGE. A small integer in a listpack
// or intset takes two bytes (measured: 1001 of them in a list take 2,176). An
// entry of a stream is at least five of those: flags, time, sequence, a value
// and its own length; its listpack is preallocated at 4 KiB, so that with two
// bytes every small stream would be a candidate. A quicklist that compresses its
// inner nodes and holds nothing but repetitions could take less.
const (
	minElementBytes     = 2
	minStreamEntryBytes = 5 * minElementBytes
)

// ManyElements judges the number of elements, which O(N) commands pay for.
type ManyElements struct {
	Warning, Critical int64 // elements: above, at or above
}

// Check compares LLEN, HLEN, SCARD, ZCARD or XLEN.
func (r *ManyElements) Check(k *keyspace.Key) Severity {
	return tier(k.Length, r.Warning, r.Critical)
}

// Floor is what that many of the smallest elements take.
func (r *ManyElements) Floor(t keyspace.Type) int64 {
	return elementsFloor(t, min(r.Warning, r.Critical))
}

// elementsFloor is the least MEMORY USAGE of so many elements.
func elementsFloor(t keyspace.Type, n int64) int64 {
	if t == keyspace.Stream {
		return minStreamEntryBytes * n
	}
	return minElementBytes * n
}
