package bigkeys

import (
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// State is what a Tracker remembers, in a form to be written to a file.
type State struct {
	Policy        string // that made the keys big: policy.Policy.BigKeys
	Baselined     [Classes]bool
	Refused       [policy.NumSeverities]bool
	New, Resolved Counts
	Keys          []KeyState
}

// KeyState is what is remembered of one key.
type KeyState struct {
	ID       ID
	Severity policy.Severity
	Type     keyspace.Type
	Stays    [policy.NumSeverities]Stay

	Label           string // "" = it is not on the watch list
	Name, Namespace string
	TooLong         bool // Name is not kept
	Bytes, Elements int64
}

// Stay is the last stay of a key in a tier.
type Stay struct {
	Entered, Left time.Time // zero = never, or not yet
	Baseline      bool
}

// State copies what is remembered.
func (t *Tracker) State() *State {
	s := &State{Policy: t.policy, Baselined: t.baselined, Refused: t.refused, New: t.view.New, Resolved: t.view.Resolved}
	s.Keys = make([]KeyState, 0, len(t.entries))
	for id, e := range t.entries {
		k := KeyState{ID: id, Severity: e.severity, Type: e.typ}
		for i, stay := range e.stays {
			k.Stays[i] = Stay{stay.entered, stay.left, stay.baseline}
		}
		if d := e.detail; d != nil {
			k.Name, k.TooLong, k.Label, k.Namespace, k.Bytes, k.Elements = d.name, d.tooLong, d.label, d.namespace, d.bytes, d.elements
		}
		s.Keys = append(s.Keys, k)
	}
	return s
}

// Restore makes a tracker of a state. What does not make sense is left out: the
// file may be older than the program, or edited by hand.
func Restore(s *State) *Tracker {
	t := New()
	t.policy, t.baselined, t.refused = s.Policy, s.Baselined, s.Refused
	for _, k := range s.Keys {
		if k.Severity >= policy.NumSeverities || k.Type >= keyspace.NumTypes || len(t.entries) >= Capacity {
			continue
		}
		e := &entry{severity: k.Severity, typ: k.Type}
		for i, stay := range k.Stays {
			e.stays[i] = newStay(stay)
		}
		if k.Label != "" && len(k.Label) <= keyspace.MaxLabelBytes && len(k.Name) <= maxWatchedName {
			e.detail = &detail{k.Name, k.TooLong, k.Label, k.Namespace, k.Bytes, k.Elements}
		}
		t.entries[k.ID] = e
	}
	t.show(View{New: s.New, Resolved: s.Resolved})
	return t
}

func newStay(s Stay) stay { return stay{entered: s.Entered, left: s.Left, baseline: s.Baseline} }
