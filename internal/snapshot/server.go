package snapshot

import (
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// Server is what was found of the primary when a cycle ended.
type Server struct {
	Findings []policy.Finding // by row of policy.Rules; of a rule about keys NotJudged
	Calls    map[string]Usage // of policy.ServerCommands; nil = the primary was not asked, or did not tell
}

// businesses counts first segments of names in bounded memory: Misra and Gries'
// table of heavy hitters. With up to maxBusinesses distinct ones all counts are
// exact; beyond, a count is too low by at most 0.1 % of the names.
//
// Segments are known by their hash, so that counting one allocates nothing.
type businesses struct {
	names  uint64 // those without a business, too
	counts map[uint64]uint64
}

const maxBusinesses = 1024

func newBusinesses() *businesses {
	return &businesses{counts: make(map[uint64]uint64, maxBusinesses)}
}

func (b *businesses) add(name string) {
	b.names++
	segment := policy.Business(name)
	if segment == "" {
		return
	}
	hash := keyspace.HashName(segment)
	if n := b.counts[hash]; n > 0 || len(b.counts) < maxBusinesses {
		b.counts[hash] = n + 1
		return
	}
	// One of every counted segment is struck out together with this one.
	for hash, n := range b.counts {
		if n == 1 {
			delete(b.counts, hash)
		} else {
			b.counts[hash] = n - 1
		}
	}
}

// large counts those that have more than 1 % of the names.
func (b *businesses) large() int {
	large := 0
	for _, n := range b.counts {
		if n*100 > b.names {
			large++
		}
	}
	return large
}
