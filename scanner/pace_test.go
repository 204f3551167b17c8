package scanner

import (
	"math"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/snapshot"
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
		{"the round trip is not the server's", pacer{duty: 0.5, leastPing: 8 * ms}, 10 * ms, 1, 100, 0, 2 * ms, 0},
		{"and counts as sleep", pacer{duty: 0.1, leastPing: 8 * ms}, 10 * ms, 1, 100, 0, 2 * ms, 10 * ms},
		{"each of several round trips", pacer{duty: 0.1, leastPing: 4 * ms}, 10 * ms, 2, 100, 0, 2 * ms, 10 * ms},
		{"a fast answer does not free the brake", pacer{duty: 0.1, leastPing: 1 * ms}, 1 * ms, 1, 100, 300, 370 * us, 2700 * us},
		{"full duty never sleeps", pacer{duty: 1}, 10 * ms, 1, 100, 300, 10 * ms, 0},
		{"500 keys a second at the least", pacer{duty: 0.05}, 50 * ms, 1, 100, 300, 50 * ms, 150 * ms},
		{"a slow page is not slept for beyond that", pacer{duty: 0.05}, time.Second, 1, 100, 300, time.Second, 0},
		{"a rate limit", pacer{duty: 1, maxKeysPerSecond: 1000}, 10 * ms, 1, 100, 300, 10 * ms, 90 * ms},
		{"a rate limit below 500 holds", pacer{duty: 0.05, maxKeysPerSecond: 100}, 10 * ms, 1, 100, 300, 10 * ms, 990 * ms},
		{"a rate limit that is met anyway", pacer{duty: 0.05, maxKeysPerSecond: 1e6}, 1 * ms, 1, 100, 0, 1 * ms, 19 * ms},
		{"jitter that drowns a page's cost", pacer{duty: 0.5, leastPing: 1 * ms, jitter: 10 * ms}, 21 * ms, 1, 100, 300, 2 * 370 * us, 0},
		{"jitter that does not", pacer{duty: 0.5, leastPing: 1 * ms, jitter: 700 * us}, 21 * ms, 1, 100, 300, 20 * ms, 19 * ms},
		{"a corrected model", pacer{duty: 0.5, perName: 2 * us, perCommand: 10 * us}, 1 * us, 1, 100, 300, 3200 * us, 6399 * us},
		{"a server that suffers", pacer{duty: 0.5, suffering: true}, 10 * ms, 1, 100, 300, 10 * ms, 30 * ms},
		{"a PING that hung", pacer{duty: 0.01}, 4 * time.Second, 1, 0, 1, 4 * time.Second, time.Second},
		{"the least of duties", pacer{duty: 1e-300}, 10 * ms, 1, 100, 0, 10 * ms, 190 * ms},
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

func TestPacerPinged(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		about     string
		pings     [][]time.Duration
		least     time.Duration
		jitter    time.Duration // within a fifth
		suffering bool
	}{
		{"steady", [][]time.Duration{{ms, ms, ms, ms, ms}, {ms}, {ms}}, ms, 0, false},
		{"twice as long and a little", [][]time.Duration{{ms}, {3 * ms}}, ms, ms / 4, false},
		{"longer, whatever was tried", [][]time.Duration{{ms}, {9 * ms, 3*ms + 1, 9 * ms}}, ms, 2 * ms, true},
		{"and well again", [][]time.Duration{{ms}, {30 * ms}, {ms}}, ms, 3 * ms, false},
		{"jitter", [][]time.Duration{{30 * ms, 15 * ms, 45 * ms, 20 * ms, 40 * ms}, {31 * ms}}, 15 * ms, 15 * ms, false},
	} {
		p := pacer{duty: 0.05}
		for _, took := range tc.pings {
			p.pinged(took)
		}
		if off := p.jitter - tc.jitter; p.leastPing != tc.least || off > tc.jitter/5 || off < -tc.jitter/5 || p.suffering != tc.suffering {
			t.Errorf("%s: least %v, jitter %v, suffering %v", tc.about, p.leastPing, p.jitter, p.suffering)
		}
	}
	p := pacer{duty: 1}
	p.pinged([]time.Duration{ms})
	if p.pinged([]time.Duration{time.Second}); p.suffering {
		t.Error("a full duty backs off")
	}
}

func TestPacerCorrect(t *testing.T) {
	const us = time.Microsecond
	used := func(scan, probe time.Duration) (u [keyspace.NumCommands]snapshot.Usage) {
		u[keyspace.CmdScan] = snapshot.Usage{Calls: 100, Time: 100 * scan} // others call, too
		u[keyspace.CmdMemoryUsage] = snapshot.Usage{Calls: 20_000, Time: 20_000 * probe}
		u[keyspace.CmdInfo] = snapshot.Usage{Calls: 1000, Time: time.Hour} // a scraper of somebody's
		return u
	}
	var sent [keyspace.NumCommands]uint64
	sent[keyspace.CmdScan], sent[keyspace.CmdMemoryUsage], sent[keyspace.CmdInfo] = 50, 5000, 2
	for _, tc := range []struct {
		about               string
		used                [keyspace.NumCommands]snapshot.Usage
		names               uint64
		perName, perCommand time.Duration
	}{
		{"as measured", used(200*us, 3*us), 5000, 2*us + overhead, 3*us + overhead},
		{"never below half of what is usual", used(0, 0), 5000, busyPerName / 2, busyPerCommand / 2},
		{"never beyond bounds", used(time.Second, time.Second), 5000, maxCorrection * busyPerName, maxCorrection * busyPerCommand},
		{"too few names to tell", used(200*us, 3*us), minSample - 1, 0, 3*us + overhead},
		{"no such statistics", [keyspace.NumCommands]snapshot.Usage{}, 5000, 0, 0},
	} {
		p := pacer{}
		p.correct(tc.used, sent, tc.names)
		if p.perName != tc.perName || p.perCommand != tc.perCommand {
			t.Errorf("%s: %v a name, %v a command; want %v, %v", tc.about, p.perName, p.perCommand, tc.perName, tc.perCommand)
		}
	}
}

func TestPageCount(t *testing.T) {
	p := pacer{leastPing: 10 * time.Millisecond}
	step := func(took time.Duration, want int) {
		t.Helper()
		if got := p.pageCount(took, 1, 100); got != want {
			t.Errorf("after a page of %v: %d names, want %d", took, got, want)
		}
	}
	step(60*time.Millisecond, 100)
	step(60*time.Millisecond+1, 50)
	step(time.Second, 25)
	for range 10 {
		p.pageCount(time.Second, 1, 100)
	}
	step(time.Second, minCount)
	for range calmPages - 1 {
		step(22*time.Millisecond, minCount)
	}
	step(22*time.Millisecond, 2*minCount)
	step(40*time.Millisecond, 2*minCount)
	for range 10 * calmPages {
		p.pageCount(0, 1, 100)
	}
	step(0, 100)
	far := pacer{jitter: 15 * time.Millisecond, count: 50}
	for range calmPages {
		far.pageCount(40*time.Millisecond, 1, 100)
	}
	if far.count != 100 {
		t.Errorf("jitter keeps COUNT at %d", far.count)
	}
	small := pacer{}
	if got := small.pageCount(time.Hour, 1, 5); got != 5 {
		t.Errorf("a limit below the least: %d", got)
	}
}
