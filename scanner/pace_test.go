package scanner

import (
	"math"
	"testing"
	"time"
)

func TestPacerCharge(t *testing.T) {
	const ms, us = time.Millisecond, time.Microsecond
	for _, tc := range []struct {
		about           string
		pacer           pacer
		took            time.Duration
		trips           int
		names, commands int
		busy, owed      time.Duration
	}{
		{"half a core sleeps as long as it works", pacer{duty: 0.5}, 10 * ms, 1, 100, 0, 10 * ms, 10 * ms},
		{"5 %", pacer{duty: 0.05}, 1 * ms, 1, 100, 0, 1 * ms, 19 * ms},
		{"the round trip is not the server's", pacer{duty: 0.5, leastPing: 8 * ms}, 10 * ms, 1, 100, 0, 2 * ms, 2 * ms},
		{"each of several round trips", pacer{duty: 0.5, leastPing: 4 * ms}, 10 * ms, 2, 100, 0, 2 * ms, 2 * ms},
		{"a fast answer does not free the brake", pacer{duty: 0.5, leastPing: 10 * ms}, 10 * ms, 1, 100, 300, 370 * us, 370 * us},
		{"full duty never sleeps", pacer{duty: 1}, 10 * ms, 1, 100, 300, 10 * ms, 0},
		{"500 keys a second at the least", pacer{duty: 0.05}, 50 * ms, 1, 100, 300, 50 * ms, 150 * ms},
		{"a slow page is not slept for beyond that", pacer{duty: 0.05}, time.Second, 1, 100, 300, time.Second, 0},
		{"a rate limit", pacer{duty: 1, maxKeysPerSecond: 1000}, 10 * ms, 1, 100, 300, 10 * ms, 90 * ms},
		{"a rate limit below 500 holds", pacer{duty: 0.05, maxKeysPerSecond: 100}, 10 * ms, 1, 100, 300, 10 * ms, 990 * ms},
		{"a rate limit that is met anyway", pacer{duty: 0.05, maxKeysPerSecond: 1e6}, 1 * ms, 1, 100, 0, 1 * ms, 19 * ms},
		{"INFO has no names and pays in full", pacer{duty: 0.05}, 1 * ms, 1, 0, 2, 1 * ms, 19 * ms},
	} {
		p := tc.pacer
		p.charge(tc.took, tc.trips, tc.names, tc.commands)
		if !near(p.busy, tc.busy) || !near(p.owed, tc.owed) {
			t.Errorf("%s: busy %v, owed %v; want %v, %v", tc.about, p.busy, p.owed, tc.busy, tc.owed)
		}
	}
}

func near(a, b time.Duration) bool { return math.Abs(float64(a-b)) < float64(time.Microsecond) }

func TestPacerQuantum(t *testing.T) {
	p := pacer{duty: 0.5}
	p.owed = quantum - 1
	if d := p.due(); d != 0 {
		t.Errorf("due below the quantum = %v", d)
	}
	p.owed = quantum
	if d := p.due(); d != quantum {
		t.Errorf("due at the quantum = %v", d)
	}
	p.slept(quantum + 3*time.Millisecond)
	if p.owed != -3*time.Millisecond {
		t.Errorf("oversleeping is credited: owed %v", p.owed)
	}
	p.slept(time.Hour)
	if p.owed != -quantum {
		t.Errorf("a suspended machine is credited one quantum: owed %v", p.owed)
	}
}
