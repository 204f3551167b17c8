package keyspace

import (
	"fmt"
	"strings"
)

// NumSlots is into how many parts a Redis Cluster divides its keys.
const NumSlots = 16384

// SlotOf is the slot of a key: CRC16 (XMODEM) of its name, or of what stands in
// its first pair of braces, unless that is nothing.
func SlotOf(name string) uint16 {
	if _, rest, ok := strings.Cut(name, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			name = tag
		}
	}
	var crc uint16
	for i := range len(name) {
		crc ^= uint16(name[i]) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return crc % NumSlots
}

// Slots is a set of slots; nil = there are none to tell apart, as outside of a
// cluster, where a node holds every key. One that is shared is not changed.
type Slots [NumSlots / 64]uint64

// Add adds the slots from first to last, both below NumSlots.
func (s *Slots) Add(first, last int) {
	for slot := first; slot <= last; slot++ {
		s[slot/64] |= 1 << (slot % 64)
	}
}

// Has tells whether the slot is in the set.
func (s *Slots) Has(slot uint16) bool {
	return s == nil || s[slot/64]>>(slot%64)&1 != 0
}

// Holds tells whether the key of a name is in one of the slots.
func (s *Slots) Holds(name string) bool { return s == nil || s.Has(SlotOf(name)) }

// Equal tells whether two sets are the same.
func (s *Slots) Equal(other *Slots) bool {
	if s == nil || other == nil {
		return s == other
	}
	return *s == *other
}

// String lists the ranges, as in 0-5460,10923.
func (s *Slots) String() string {
	if s == nil {
		return "all"
	}
	var ranges []string
	for slot := 0; slot < NumSlots; slot++ {
		if !s.Has(uint16(slot)) {
			continue
		}
		first := slot
		for slot+1 < NumSlots && s.Has(uint16(slot+1)) {
			slot++
		}
		if first == slot {
			ranges = append(ranges, fmt.Sprint(first))
		} else {
			ranges = append(ranges, fmt.Sprintf("%d-%d", first, slot))
		}
	}
	return strings.Join(ranges, ",")
}
