package keyspace

import "testing"

// TestSlotOf: as CLUSTER KEYSLOT answers.
func TestSlotOf(t *testing.T) {
	for name, want := range map[string]uint16{
		"":               0,
		"123456789":      0x31c3,
		"foo":            12182,
		"{foo}":          12182,
		"a:{foo}:b":      12182,
		"{foo}{bar}":     12182,
		"foo{":           SlotOf("foo{"),
		"{user1000}.x":   SlotOf("user1000"),
		"{{bar}}":        SlotOf("{bar"),
		"x}{user1000}":   SlotOf("user1000"),
		"user:1}":        SlotOf("user:1}"),
		"\xff\x00{\xff}": SlotOf("\xff"),
	} {
		if got := SlotOf(name); got != want {
			t.Errorf("%q is in slot %d, want %d", name, got, want)
		}
	}
	if SlotOf("foo{}{bar}") == SlotOf("bar") {
		t.Error("behind an empty pair of braces the next one counts")
	}
}

func TestSlots(t *testing.T) {
	var none *Slots
	if !none.Has(0) || !none.Holds("x") || !none.Equal(nil) || none.String() != "all" {
		t.Error("outside of a cluster a node does not hold every key")
	}
	s := &Slots{}
	s.Add(0, 0)
	s.Add(63, 65)
	s.Add(16380, 16383)
	for slot, want := range map[uint16]bool{0: true, 1: false, 62: false, 63: true, 64: true, 65: true, 66: false, 16379: false, 16380: true, 16383: true} {
		if s.Has(slot) != want {
			t.Errorf("slot %d: %v", slot, !want)
		}
	}
	if got := s.String(); got != "0,63-65,16380-16383" {
		t.Errorf("is written %s", got)
	}
	other := *s
	if !s.Equal(&other) || s.Equal(nil) || none.Equal(s) || s.Equal(&Slots{}) || s.Holds("foo") {
		t.Error("not equal to itself, or equal to others")
	}
}
