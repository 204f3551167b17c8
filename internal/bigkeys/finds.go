package bigkeys

import (
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// Finds are the big keys of one cycle, each once. An aborted cycle's are just
// dropped.
type Finds struct {
	tracker *Tracker
	class   int // that the cycle measures,
	of      int // of so many
	keys    map[ID]find
	unknown int // of keys, how many the tracker does not remember
	named   [policy.NumSeverities]int
	refused [policy.NumSeverities]bool
}

type find struct {
	severity        policy.Severity
	typ             keyspace.Type
	bytes, elements int64
	namespace       string
	label           string // "" = not kept
}

// Begin starts the collection of a cycle that measures one hash class of so many.
func (t *Tracker) Begin(class, of int) *Finds {
	return &Finds{tracker: t, class: class, of: of, keys: map[ID]find{}}
}

// Add records a big key and tells whether it is the first time in this cycle:
// SCAN may return a name twice. A key beyond the capacity is refused, which
// Commit reports, and counts as a first time. It does not keep the key.
func (f *Finds) Add(k *keyspace.Key, namespace string, severity policy.Severity) bool {
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
	found := find{severity: severity, typ: k.Type, bytes: k.Bytes, elements: -1, namespace: namespace}
	if k.Type.Collection() && k.Has(keyspace.FactLength) {
		found.elements = k.Length
	}
	if f.wantsName(id, e, severity) && f.named[severity] < maxNamed {
		f.named[severity]++
		found.label = k.Label()
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

// wantsName tells whether Commit may have to list the key and has no name yet.
func (f *Finds) wantsName(id ID, e *entry, severity policy.Severity) bool {
	if e != nil && e.detail != nil {
		return false
	}
	if e == nil {
		return f.tracker.baselined[classOf(id)]
	}
	return severity > e.severity
}
