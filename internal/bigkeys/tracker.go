// Package bigkeys remembers which keys are big, so that a key is called new
// once: when it enters a tier, not when a cycle, a restart of Redis or a
// failover shows it again. Its memory is bounded and its names are few: a key
// is known by its fingerprint.
package bigkeys

import (
	"sync"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

const (
	// Capacity is how many keys are remembered of one target. The last tenth
	// is kept for critical ones, so that a flood of warnings cannot hide them.
	Capacity     = 100_000
	warningShare = Capacity / 10 * 9

	// Memory is how long a key that left a tier is no news when it comes back.
	Memory = 48 * time.Hour

	// MaxListed is how many keys are listed by name.
	MaxListed = 50

	// MaxWatched is how many keys are kept by name over cycles: the watch list.
	// One cycle keeps at most as many of each tier.
	MaxWatched = 1000
	// maxWatchedName bounds the watch list's memory: a key with a longer name is
	// listed by its label, but not watched.
	maxWatchedName = 1024
)

// Classes is the finest division of keys into hash classes. A cycle measures one
// class of k, a power of two that divides Classes, so that coarser classes are
// unions of finer ones.
const Classes = 16

func classOf(id ID) int { return int(id.Hash % Classes) }

// ID tells a key from the others of its target: 64 bits of hash and the
// database. Two keys that collide count as one.
type ID struct {
	DB   int
	Hash uint64
}

// Counts are events by type and tier.
type Counts [keyspace.NumTypes][policy.NumSeverities]uint64

// Listed is a big key that is not baseline, by name.
type Listed struct {
	DB        int
	Label     string // keyspace.Label of the name
	Namespace string
	Type      keyspace.Type
	Severity  policy.Severity
	Since     time.Time // when it entered this tier
	Bytes     int64
	Elements  int64 // -1 = not known
}

// View is what the tracker shows: immutable.
type View struct {
	New      Counts   // keys that entered the tier from below
	Resolved Counts   // keys that left the tier they were in
	Listed   []Listed // critical first, then the newest; at most MaxListed
	Tracked  int      // keys that are remembered, those that just left included
	Watched  int      // keys of the watch list
	Overflow bool     // the last cycle found more keys than can be remembered
}

// Target is the memory of one target, shared by the Trackers of its nodes. It is
// no node's: in a cluster a key is its slot's, whoever holds
// that, so that a failover or a reshard makes nothing new.
type Target struct {
	mu      sync.RWMutex
	entries map[ID]*entry
	policy  string // that judges, by its fingerprint
	bySlot  [keyspace.NumSlots]slotMemory
}

// slotMemory is what is remembered of a slot. Outside of a cluster every key
// counts as of slot 0.
type slotMemory struct {
	baselined uint16 // hash classes that a cycle has measured under the policy, as bits
	refused   uint8  // severities of which the last committed cycle refused keys, as bits
}

func (m *Target) baselined(id ID, slot uint16) bool {
	return m.bySlot[slot].baselined>>classOf(id)&1 != 0
}

// Tracker is what a node sees of the memory. It belongs to one goroutine; Own and
// View may be called from any, and Views are shared.
type Tracker struct {
	*Target
	slots *keyspace.Slots // of the node
	judge string          // policy that the node's cycle judges by
	view  *View
}

// entry is what is remembered of a key.
type entry struct {
	severity policy.Severity // its tier now; Healthy = it left, see stays
	watched  time.Time       // when the watch list last found it changed
	typ      keyspace.Type
	slot     uint16
	stays    [policy.NumSeverities]stay
	detail   *detail // nil = it is not on the watch list
}

// stay is the last stay of a key in a tier.
type stay struct {
	entered, left time.Time // left is zero while it lasts
	baseline      bool
}

type detail struct {
	name             string // raw bytes
	tooLong          bool   // to be kept: it is not watched
	label, namespace string
	bytes            int64
	elements         int64 // -1 = not known
}

// New makes the tracker of a target that has one node, with an empty memory.
func New() *Tracker { return NewTarget().Tracker(Counts{}, Counts{}) }

// NewTarget makes an empty memory.
func NewTarget() *Target { return &Target{entries: map[ID]*entry{}} }

// Tracker makes the tracker of a node whose counters go on from those given. The
// node holds every key, until Own says otherwise.
func (m *Target) Tracker(entered, resolved Counts) *Tracker {
	t := &Tracker{Target: m, view: &View{New: entered, Resolved: resolved}}
	t.Own(nil)
	return t
}

// Own tells which slots the node holds from now on: it judges their keys alone.
func (t *Tracker) Own(slots *keyspace.Slots) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots = slots
	t.show(*t.view)
}

// Owns tells whether the node holds the key of a name.
func (t *Tracker) Owns(name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.slots.Holds(name)
}

// Known tells whether a key is big for all we know: it is measured in every
// cycle, whatever its class.
func (t *Tracker) Known(id ID) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, ok := t.entries[id]
	return ok && e.severity != policy.Healthy
}

// View is what the last committed cycle left, of the keys that the node holds now.
func (t *Tracker) View() *View {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.view
}

// SetPolicy tells by which policy the node's next cycle judges; it is known by
// its fingerprint, policy.Policy.BigKeys. Under another one the first measurement
// of a class is its baseline again: what enters or leaves a tier then does so by
// the policy, for all that is known.
func (t *Tracker) SetPolicy(fingerprint string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.judge = fingerprint; t.policy == fingerprint {
		return
	}
	t.policy = fingerprint
	for i := range t.bySlot {
		t.bySlot[i].baselined = 0
	}
}

// Commit takes over what a complete and coherent cycle found. The first cycle
// that measures a class is its baseline: what it finds was there before anyone
// watched. A cycle that another node's new policy overtook is left out.
func (t *Tracker) Commit(found *Finds, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found.policy != t.policy {
		return
	}
	next := *t.view
	for id, f := range found.keys {
		if e := t.entries[id]; e != nil && e.watched.After(found.started.Add(f.at)) {
			continue // what the watch list saw of it is newer
		}
		t.see(id, f, found, now, &next)
	}
	for id, e := range t.entries {
		if e.severity != policy.Healthy && found.slots.Has(e.slot) && !found.has(id) && e.watched.Before(found.started) {
			e.leave(policy.Healthy, now, !t.baselined(id, e.slot), &next)
		}
		if e.severity == policy.Healthy && e.forgotten(now) {
			delete(t.entries, id)
		}
	}
	t.measured(found)
	t.show(next)
}

// measured notes what a committed cycle measured. mu must be held.
func (m *Target) measured(found *Finds) {
	var classes uint16
	for class := found.class; class < Classes; class += found.of {
		classes |= 1 << class
	}
	var refused uint8
	for severity, some := range found.refused {
		if some {
			refused |= 1 << severity
		}
	}
	for slot := range m.bySlot {
		if found.slots == nil && slot > 0 {
			break
		}
		if found.slots.Has(uint16(slot)) {
			m.bySlot[slot].baselined |= classes
			m.bySlot[slot].refused = refused
		}
	}
}

// show makes the next view. mu must be held.
func (t *Tracker) show(next View) {
	next.Tracked = len(t.entries)
	next.Overflow = false
	for i := range t.bySlot {
		next.Overflow = next.Overflow || t.bySlot[i].refused != 0
	}
	next.Listed, next.Watched = t.list()
	t.view = &next
}

// see records that a key was found in a tier. mu must be held.
func (t *Tracker) see(id ID, f find, found *Finds, now time.Time, view *View) {
	e, known := t.entries[id]
	if !known {
		if len(t.entries) >= Capacity { // other nodes were faster
			found.refused[f.severity] = true
			return
		}
		e = &entry{}
		t.entries[id] = e
	}
	e.slot = f.slot
	if f.severity != policy.Healthy {
		e.typ = f.typ // else it counts as what it was
	}
	switch {
	case f.severity < e.severity:
		e.leave(f.severity, now, !t.baselined(id, f.slot), view)
	case f.severity > e.severity:
		// While keys of this tier had to be refused, a newcomer may be an old one.
		refused := t.bySlot[f.slot].refused>>f.severity&1 != 0 || found.refused[f.severity]
		e.enter(f.severity, now, refused || !t.baselined(id, f.slot), view)
	}
	if f.named != nil {
		e.detail = f.named
	}
	if e.detail != nil {
		e.detail.namespace, e.detail.bytes, e.detail.elements = f.namespace, f.bytes, f.elements
	}
}

// enter moves a key up into a tier. A key that was in this tier or a worse one
// less than Memory ago goes on where it left.
func (e *entry) enter(to policy.Severity, now time.Time, quiet bool, view *View) {
	e.severity = to
	for tier := to; tier < policy.NumSeverities; tier++ {
		if s := e.stays[tier]; !s.left.IsZero() && now.Sub(s.left) < Memory {
			e.stays[to] = stay{entered: s.entered, baseline: s.baseline}
			return
		}
	}
	e.stays[to] = stay{entered: now, baseline: quiet}
	if !quiet {
		view.New[e.typ][to]++
	}
}

// leave moves a key down, out of the tier that it is in. When it does so quietly,
// that stay is no memory: to come back is news.
func (e *entry) leave(to policy.Severity, now time.Time, quiet bool, view *View) {
	old := &e.stays[e.severity]
	baseline := quiet || old.baseline || e.stays[to].baseline
	if old.left = now; quiet {
		*old = stay{}
	} else {
		view.Resolved[e.typ][e.severity]++
	}
	if to != policy.Healthy {
		e.stays[to] = stay{entered: now, baseline: baseline}
	} else {
		e.detail = nil // its name comes with it, should it come back
	}
	e.severity = to
}

// forgotten tells whether every stay of a key ended Memory ago.
func (e *entry) forgotten(now time.Time) bool {
	for _, s := range e.stays {
		if !s.left.IsZero() && now.Sub(s.left) < Memory {
			return false
		}
	}
	return true
}
