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
	slots   *keyspace.Slots // that are judged
	policy  string          // that judges
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
	slot     uint16
	at       time.Duration // since the start

	namespace       string
	bytes, elements int64
	named           *detail // nil = nobody needs the name; without the three above
}

// Begin starts the collection of a cycle that measures one hash class of so many.
func (t *Tracker) Begin(started time.Time, class, of int) *Finds {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return &Finds{tracker: t, slots: t.slots, policy: t.judge, started: started, class: class, of: of, keys: map[ID]find{}}
}

// Add records a big key, seen at now, and tells whether it is the first time in this cycle:
// SCAN may return a name twice. A key beyond the capacity is refused, which
// Commit reports, and counts as a first time. It does not keep the key.
func (f *Finds) Add(k *keyspace.Key, namespace string, severity policy.Severity, now time.Time) bool {
	id := ID{DB: k.DB, Hash: k.Hash}
	if f.has(id) {
		return false
	}
	known, named, remembered := f.tracker.lookUp(id)
	if !known {
		if remembered+f.unknown >= room(severity) {
			f.refused[severity] = true
			return true
		}
		f.unknown++
	}
	found := find{severity: severity, typ: k.Type, at: now.Sub(f.started), namespace: namespace, bytes: k.Bytes, elements: -1}
	if k.Type.Collection() && k.Has(keyspace.FactLength) {
		found.elements = k.Length
	}
	if f.slots != nil {
		found.slot = keyspace.SlotOf(k.Name)
	}
	if !named && f.named[severity] < MaxWatched {
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

// lookUp tells whether a key is remembered, whether by name, and how many are.
func (m *Target) lookUp(id ID) (known, named bool, remembered int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, known := m.entries[id]
	return known, known && e.detail != nil, len(m.entries)
}

// room is how many keys may be remembered when one of the severity comes.
func room(severity policy.Severity) int {
	if severity == policy.Critical {
		return Capacity
	}
	return warningShare
}
