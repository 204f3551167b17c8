package bigkeys

import (
	"cmp"
	"slices"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// Watched is a key of the watch list.
type Watched struct {
	ID    ID
	Name  string // raw bytes
	Type  keyspace.Type
	Bytes int64 // when it was last measured
}

// WatchList are the node's keys that are worth a look between two cycles, by
// database, so that each is selected once.
func (t *Tracker) WatchList() []Watched {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var list []Watched
	for id, e := range t.entries {
		if d := e.detail; d != nil && t.slots.Has(e.slot) && !d.tooLong && e.severity != policy.Healthy {
			list = append(list, Watched{ID: id, Name: d.name, Type: e.typ, Bytes: d.bytes})
		}
	}
	slices.SortFunc(list, func(a, b Watched) int {
		return cmp.Or(cmp.Compare(a.ID.DB, b.ID.DB), cmp.Compare(a.ID.Hash, b.ID.Hash))
	})
	return list
}

// Look starts a look at the watch list: what changed goes into the finds, by
// Add, or by Left where it is big no more.
func (t *Tracker) Look(started time.Time) *Finds {
	return t.Begin(started, 0, 1)
}

// Left records that a key is gone, or big no more.
func (f *Finds) Left(id ID, now time.Time) {
	f.keys[id] = find{severity: policy.Healthy, slot: f.tracker.slotOf(id), at: now.Sub(f.started)}
}

// slotOf is the slot of a key that is remembered.
func (m *Target) slotOf(id ID) uint16 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if e := m.entries[id]; e != nil {
		return e.slot
	}
	return 0
}

// Empty tells whether nothing was recorded.
func (f *Finds) Empty() bool { return len(f.keys) == 0 }

// Update takes over what a look at the watch list found. It tells whether a key
// changed its tier. Unlike Commit it says nothing of keys that were not looked
// at, and is nobody's baseline.
func (t *Tracker) Update(found *Finds) (moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found.policy != t.policy {
		return false // another node's cycle judges by a new one
	}
	next := *t.view
	for id, f := range found.keys {
		e := t.entries[id]
		if e == nil && f.severity == policy.Healthy {
			continue
		}
		moved = moved || e == nil || e.severity != f.severity
		now := found.started.Add(f.at)
		t.see(id, f, found, now, &next)
		if e := t.entries[id]; e != nil {
			e.watched = now
		}
	}
	t.show(next)
	return moved
}

// list names the newest keys of the node that are not baseline, critical first,
// and shortens the target's watch list, which keeps the same order. mu must be
// held.
func (t *Tracker) list() (listed []Listed, watched int) {
	type named struct {
		id ID
		*entry
	}
	var all []named
	for id, e := range t.entries {
		if e.detail != nil {
			all = append(all, named{id, e})
		}
	}
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(
			cmp.Compare(b.severity, a.severity),
			b.stays[b.severity].entered.Compare(a.stays[a.severity].entered),
			cmp.Compare(b.detail.bytes, a.detail.bytes),
			cmp.Compare(a.id.DB, b.id.DB),
			cmp.Compare(a.detail.label, b.detail.label),
		)
	})
	for i, e := range all {
		if i >= MaxWatched {
			e.detail = nil
			continue
		}
		if !e.detail.tooLong {
			watched++
		}
		if len(listed) < MaxListed && t.slots.Has(e.slot) && !e.stays[e.severity].baseline {
			listed = append(listed, Listed{
				DB: e.id.DB, Label: e.detail.label, Namespace: e.detail.namespace,
				Type: e.typ, Severity: e.severity, Since: e.stays[e.severity].entered,
				Bytes: e.detail.bytes, Elements: e.detail.elements,
			})
		}
	}
	return listed, watched
}
