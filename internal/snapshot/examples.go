package snapshot

import (
	"cmp"
	"slices"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
)

// maxExamples is how many keys a rule's line of the report names.
const maxExamples = 5

// examples are the largest keys that break one rule, largest first: what is
// worth mending first, and the same from one cycle to the next.
type examples []Example

func (e *examples) offer(k *keyspace.Key) {
	candidate := Example{ID: bigkeys.ID{DB: k.DB, Hash: k.Hash}, Type: k.Type, Bytes: -1, Length: -1}
	if k.Has(keyspace.FactBytes) {
		candidate.Bytes = k.Bytes
	}
	if k.Has(keyspace.FactLength) {
		candidate.Length = k.Length
	}
	full := len(*e) == maxExamples
	if full && compareExamples(candidate, (*e)[maxExamples-1]) >= 0 {
		return
	}
	at, double := slices.BinarySearchFunc(*e, candidate, compareExamples)
	if double {
		return
	}
	candidate.Label = k.Label()
	if full {
		*e = (*e)[:maxExamples-1]
	}
	*e = slices.Insert(*e, at, candidate)
}

func compareExamples(a, b Example) int {
	return cmp.Or(
		cmp.Compare(b.Bytes, a.Bytes),
		cmp.Compare(a.ID.Hash, b.ID.Hash),
		cmp.Compare(a.ID.DB, b.ID.DB),
	)
}
