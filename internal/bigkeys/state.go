package bigkeys

import (
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// State is what a Target remembers, in a form to be written to a file.
type State struct {
	Policy string      // that made the keys big: policy.Policy.BigKeys
	Slots  []SlotState // from slot 0 to the last of which anything is known
	Keys   []KeyState
}

// SlotState is what is remembered of a slot, see slotMemory.
type SlotState struct {
	Baselined uint16
	Refused   uint8
}

// KeyState is what is remembered of one key.
type KeyState struct {
	ID       ID
	Slot     uint16
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
func (m *Target) State() *State {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s := &State{Policy: m.policy, Keys: make([]KeyState, 0, len(m.entries))}
	for i, slot := range m.bySlot {
		if slot != (slotMemory{}) {
			s.Slots = append(s.Slots, make([]SlotState, i+1-len(s.Slots))...)
			s.Slots[i] = SlotState{slot.baselined, slot.refused}
		}
	}
	for id, e := range m.entries {
		k := KeyState{ID: id, Slot: e.slot, Severity: e.severity, Type: e.typ}
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

// Restore makes a target's memory of a state. What does not make sense is left out: the
// file may be older than the program, or edited by hand.
func Restore(s *State) *Target {
	m := NewTarget()
	m.policy = s.Policy
	for i, slot := range s.Slots[:min(len(s.Slots), keyspace.NumSlots)] {
		m.bySlot[i] = slotMemory{slot.Baselined, slot.Refused}
	}
	for _, k := range s.Keys {
		if k.Severity >= policy.NumSeverities || k.Type >= keyspace.NumTypes || k.Slot >= keyspace.NumSlots || len(m.entries) >= Capacity {
			continue
		}
		e := &entry{severity: k.Severity, typ: k.Type, slot: k.Slot}
		for i, stay := range k.Stays {
			e.stays[i] = newStay(stay)
		}
		if k.Label != "" && len(k.Label) <= keyspace.MaxLabelBytes && len(k.Name) <= maxWatchedName {
			e.detail = &detail{k.Name, k.TooLong, k.Label, k.Namespace, k.Bytes, k.Elements}
		}
		m.entries[k.ID] = e
	}
	return m
}

func newStay(s Stay) stay { return stay{entered: s.Entered, left: s.Left, baseline: s.Baseline} }
