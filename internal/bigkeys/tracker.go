// Package bigkeys remembers which keys are big, so that a key is called new
// once: when it enters a tier, not when a cycle, a restart of Redis or a
// failover shows it again. Its memory is bounded and its names are few: a key
// is known by its fingerprint.
package bigkeys

import (
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

// Tracker is the memory of one target. It belongs to one goroutine; only its
// Views are shared.
type Tracker struct {
	entries   map[ID]*entry
	policy    string                     // that judges, by its fingerprint
	baselined [Classes]bool              // a cycle has measured the class under it
	refused   [policy.NumSeverities]bool // by the last committed cycle
	view      *View
}

// entry is what is remembered of a key.
type entry struct {
	severity policy.Severity // its tier now; Healthy = it left, see stays
	watched  time.Time       // when the watch list last found it changed
	typ      keyspace.Type
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

// New makes an empty memory.
func New() *Tracker {
	return &Tracker{entries: map[ID]*entry{}, view: &View{}}
}

// Known tells whether a key is big for all we know: it is measured in every
// cycle, whatever its class.
func (t *Tracker) Known(id ID) bool {
	e, ok := t.entries[id]
	return ok && e.severity != policy.Healthy
}

// View is what the last committed cycle left.
func (t *Tracker) View() *View { return t.view }

// SetPolicy tells by which policy the next cycle judges; it is known by its
// fingerprint, policy.Policy.BigKeys. Under another one the first measurement of
// a class is its baseline again: what enters or leaves a tier then does so by the
// policy, for all that is known.
func (t *Tracker) SetPolicy(fingerprint string) {
	if t.policy != fingerprint {
		t.policy, t.baselined = fingerprint, [Classes]bool{}
	}
}

// Commit takes over what a complete and coherent cycle found. The first cycle
// that measures a class is its baseline: what it finds was there before anyone
// watched.
func (t *Tracker) Commit(found *Finds, now time.Time) {
	next := *t.view
	for id, f := range found.keys {
		if e := t.entries[id]; e != nil && e.watched.After(found.started.Add(f.at)) {
			continue // what the watch list saw of it is newer
		}
		t.see(id, f, found.refused, now, &next)
	}
	for id, e := range t.entries {
		if e.severity != policy.Healthy && !found.has(id) && e.watched.Before(found.started) {
			e.leave(policy.Healthy, now, !t.baselined[classOf(id)], &next)
		}
		if e.severity == policy.Healthy && e.forgotten(now) {
			delete(t.entries, id)
		}
	}
	for class := found.class; class < Classes; class += found.of {
		t.baselined[class] = true
	}
	t.refused = found.refused
	t.show(next)
}

// show makes the next view.
func (t *Tracker) show(next View) {
	next.Tracked = len(t.entries)
	next.Overflow = t.refused != [policy.NumSeverities]bool{}
	next.Listed, next.Watched = t.list()
	t.view = &next
}

// see records that a key was found in a tier.
func (t *Tracker) see(id ID, f find, refused [policy.NumSeverities]bool, now time.Time, view *View) {
	e, known := t.entries[id]
	if !known {
		e = &entry{}
		t.entries[id] = e
	}
	if f.severity != policy.Healthy {
		e.typ = f.typ // else it counts as what it was
	}
	switch {
	case f.severity < e.severity:
		e.leave(f.severity, now, !t.baselined[classOf(id)], view)
	case f.severity > e.severity:
		// While keys of this tier had to be refused, a newcomer may be an old one.
		quiet := !t.baselined[classOf(id)] || t.refused[f.severity] || refused[f.severity]
		e.enter(f.severity, now, quiet, view)
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
