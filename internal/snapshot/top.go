package snapshot

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
)

const (
	// stay is the share of the N-th value that keeps a key listed: without it,
	// keys that trade places around the N-th would make new series each cycle.
	stayShare = 0.8

	// maxAbsent is in how many cycles in a row a listed key must be missing
	// before it leaves.
	maxAbsent = 2
)

// ranking collects the N largest keys of a cycle, and those that the last one
// listed.
type ranking struct {
	n      int
	top    topHeap // the smallest of the N largest first
	listed map[bigkeys.ID]*Top
	seen   map[bigkeys.ID]Top // the listed ones that this cycle met
}

func newRanking(n int, previous []Top) *ranking {
	r := &ranking{n: n, listed: make(map[bigkeys.ID]*Top, len(previous)), seen: map[bigkeys.ID]Top{}}
	for i := range previous {
		r.listed[previous[i].ID] = &previous[i]
	}
	return r
}

// offer considers a key. It keeps copies only.
func (r *ranking) offer(k *keyspace.Key, namespace string, value int64, now time.Time) {
	if r.n == 0 {
		return
	}
	id := bigkeys.ID{DB: k.DB, Hash: k.Hash}
	_, listed := r.listed[id]
	enters := len(r.top) < r.n || value > r.top[0].Value
	if !listed && !enters {
		return
	}
	entry := Top{ID: id, Namespace: namespace, Type: k.Type, Value: value, Bytes: -1, Length: -1, Expires: expiry(k, now)}
	if k.Has(keyspace.FactBytes) {
		entry.Bytes = k.Bytes
	}
	if k.Has(keyspace.FactLength) {
		entry.Length = k.Length
	}
	if listed {
		entry.Label = r.listed[id].Label
		r.seen[id] = entry
	} else {
		entry.Label = k.Label()
	}
	if !enters || slices.ContainsFunc(r.top, func(t Top) bool { return t.ID == id }) {
		return
	}
	heap.Push(&r.top, entry)
	if len(r.top) > r.n {
		heap.Pop(&r.top)
	}
}

// expiry is when a key with a TTL ends, rounded so that it hardly moves from
// one cycle to the next.
func expiry(k *keyspace.Key, now time.Time) time.Time {
	if !k.Has(keyspace.FactTTL) || k.TTL == keyspace.NoTTL {
		return time.Time{}
	}
	return now.Add(k.TTL).Round(time.Second)
}

// finish ranks the keys: the N largest, then at most as many that were listed
// and are neither small enough nor absent for long enough to leave. A key of a
// database that holds none any more is gone for certain.
func (r *ranking) finish(holdsKeys func(db int) bool) []Top {
	result := slices.Clone(r.top)
	in := make(map[bigkeys.ID]bool, len(result))
	for _, t := range result {
		in[t.ID] = true
	}
	least := int64(0)
	if len(r.top) == r.n && r.n > 0 {
		least = r.top[0].Value
	}
	var staying []Top
	for id, old := range r.listed {
		now, seen := r.seen[id]
		switch {
		case in[id], !holdsKeys(id.DB):
			continue
		case !seen:
			now = *old
			if now.Absent++; now.Absent >= maxAbsent {
				continue
			}
		}
		if float64(now.Value) >= stayShare*float64(least) {
			staying = append(staying, now)
		}
	}
	sortTop(staying)
	result = append(result, staying[:min(len(staying), r.n)]...)
	sortTop(result)
	return result
}

func sortTop(top []Top) {
	slices.SortFunc(top, func(a, b Top) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.ID.DB, b.ID.DB), strings.Compare(a.Label, b.Label))
	})
}

type topHeap []Top

func (h topHeap) Len() int           { return len(h) }
func (h topHeap) Less(i, j int) bool { return h[i].Value < h[j].Value }
func (h topHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *topHeap) Push(x any)        { *h = append(*h, x.(Top)) }
func (h *topHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
