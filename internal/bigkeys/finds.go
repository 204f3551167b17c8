package bigkeys

import (
	"strings"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// Finds are the big keys of one cycle, or of one look at the watch list, each
// once. An aborted cycle's are just dropped.
type Finds struct {
	tracker *Tracker
	started time.Time
	class   int // that the cycle measures,
	of      int // of so many
	keys    map[ID]find
	unknown int // of keys, how many the tracker does not remember
	named   [policy.NumSeverities]int
	refused [policy.NumSeverities]bool
}

type find struct {
	severity policy.Severity
	typ      keyspace.Type
	at       time.Duration // since the start

	namespace       string
	bytes, elements int64
	named           *detail // nil = nobody needs the name; without the three above
}

// Begin starts the collection of a cycle that measures one hash class of so many.
func (t *Tracker) Begin(started time.Time, class, of int) *Finds {
	return &Finds{tracker: t, started: started, class: class, of: of, keys: map[ID]find{}}
}

// Add records a big key, seen at now, and tells whether it is the first time in this cycle:
// SCAN may return a name twice. A key beyond the capacity is refused, which
// Commit reports, and counts as a first time. It does not keep the key.
func (f *Finds) Add(k *keyspace.Key, namespace string, severity policy.Severity, now time.Time) bool {
	id := ID{DB: k.DB, Hash: k.Hash}
	if f.has(id) {
		return false
	}
	e, known := f.tracker.entries[id]
	if !known {
		if len(f.tracker.entries)+f.unknown >= room(severity) {
			f.refused[severity] = true
			return true
		}
		f.unknown++
	}
	found := find{severity: severity, typ: k.Type, at: now.Sub(f.started), namespace: namespace, bytes: k.Bytes, elements: -1}
	if k.Type.Collection() && k.Has(keyspace.FactLength) {
		found.elements = k.Length
	}
	if (e == nil || e.detail == nil) && f.named[severity] < MaxWatched {
		f.named[severity]++
		found.named = &detail{label: k.Label(), tooLong: len(k.Name) > maxWatchedName}
		if !found.named.tooLong {
			found.named.name = strings.Clone(k.Name)
		}
	}
	f.keys[id] = found
	return true
}

func (f *Finds) has(id ID) bool {
	_, ok := f.keys[id]
	return ok
}

// room is how many keys may be remembered when one of the severity comes.
func room(severity policy.Severity) int {
	if severity == policy.Critical {
		return Capacity
	}
	return warningShare
}
