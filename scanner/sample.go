package scanner

import (
	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/snapshot"
)

const (
	// minDetailed is how many keys of a node --scan.detail=auto asks for their
	// type and TTL; with fewer, shares would be off by more than 0.4 %.
	minDetailed = 65_536
	maxDetail   = 16

	// fixedShare: 1 key in so many is asked for what OBJECT tells, always the same.
	fixedShare = 64
)

// sample settles which keys a cycle looks at, and how closely.
type sample struct {
	k, class int // bytes: keys of hash class `class` of k
	d        int // type and TTL: keys of hash class 0 of d
	tracker  *bigkeys.Tracker
	listed   map[bigkeys.ID]bool
}

// newSample draws for the cycle number n of a node of so many keys. What the
// last snapshot lists is measured again, lest a list depend on the class.
func newSample(o Options, tracker *bigkeys.Tracker, last *snapshot.Snapshot, n int, keys int64) sample {
	s := sample{k: max(o.Sample, 1), d: o.Detail, tracker: tracker}
	s.class = n % s.k
	if s.d == 0 {
		for s.d = 1; s.d < maxDetail && keys/int64(2*s.d) >= minDetailed; {
			s.d *= 2
		}
	}
	if s.k > 1 && last != nil {
		s.listed = make(map[bigkeys.ID]bool, len(last.TopBytes)+len(last.TopElements)+len(last.TopFrequency))
		for _, top := range [][]snapshot.Top{last.TopBytes, last.TopElements, last.TopFrequency} {
			for _, t := range top {
				s.listed[t.ID] = true
			}
		}
	}
	return s
}

// draw takes the two classes from different bits of the hash, so that each
// measured class holds its share of detailed keys. The fixed sample is part of
// the detailed class of each d that is a power of two, and so has its types and
// TTLs for free.
func (s *sample) draw(k *keyspace.Key) snapshot.Draw {
	var draw snapshot.Draw
	if k.Hash>>32%fixedShare == 0 {
		draw |= snapshot.Fixed
	}
	if s.k == 1 && s.d == 1 {
		return draw | snapshot.Measured | snapshot.Detailed
	}
	if id := (bigkeys.ID{DB: k.DB, Hash: k.Hash}); s.listed[id] || s.tracker.Known(id) {
		return snapshot.Certain
	}
	if int(k.Hash%uint64(s.k)) == s.class {
		draw |= snapshot.Measured
	}
	if int(k.Hash>>32%uint64(s.d)) == 0 {
		draw |= snapshot.Detailed
	}
	return draw
}
