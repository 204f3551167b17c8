package bigkeys

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

const (
	healthy  = policy.Healthy
	warning  = policy.Warning
	critical = policy.Critical
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func bigKey(name string) *keyspace.Key {
	return &keyspace.Key{
		Name: name, NameBytes: int64(len(name)), Hash: keyspace.HashName(name),
		Known: keyspace.FactBytes | keyspace.FactType | keyspace.FactLength,
		Type:  keyspace.Hash, Bytes: 5000, Length: 2000,
	}
}

// commit makes one cycle that finds the keys.
func commit(t *Tracker, at time.Time, found map[string]policy.Severity) *View {
	finds := t.Begin(at, 0, 1)
	for name, severity := range found {
		if severity != healthy {
			finds.Add(bigKey(name), "ns", severity, at)
		}
	}
	t.Commit(finds, at)
	return t.View()
}

func events(v *View) [4]uint64 {
	return [4]uint64{v.New[keyspace.Hash][warning], v.New[keyspace.Hash][critical], v.Resolved[keyspace.Hash][warning], v.Resolved[keyspace.Hash][critical]}
}

// TestLife walks one key through its tiers, an hour each unless said otherwise,
// and counts {new warning, new critical, resolved warning, resolved critical}.
func TestLife(t *testing.T) {
	type step struct {
		after  time.Duration
		tier   policy.Severity
		want   [4]uint64
		listed bool
	}
	hour := time.Hour
	for _, tc := range []struct {
		about string
		steps []step // the first is the baseline
	}{
		{"baseline is no news", []step{{0, critical, [4]uint64{}, false}, {hour, critical, [4]uint64{}, false}}},
		{"its end is", []step{{0, critical, [4]uint64{}, false}, {hour, healthy, [4]uint64{0, 0, 0, 1}, false}}},
		{"new, and news once", []step{{0, healthy, [4]uint64{}, false}, {hour, warning, [4]uint64{1}, true}, {hour, warning, [4]uint64{1}, true}}},
		{"both tiers at once count critical only", []step{{0, healthy, [4]uint64{}, false}, {hour, critical, [4]uint64{0, 1}, true}}},
		{"rises", []step{{0, healthy, [4]uint64{}, false}, {hour, warning, [4]uint64{1}, true}, {hour, critical, [4]uint64{1, 1}, true}}},
		{"a baseline key that rises is news", []step{{0, warning, [4]uint64{}, false}, {hour, critical, [4]uint64{0, 1}, true}}},
		{"sinks", []step{{0, healthy, [4]uint64{}, false}, {hour, critical, [4]uint64{0, 1}, true}, {hour, warning, [4]uint64{0, 1, 0, 1}, true}, {hour, healthy, [4]uint64{0, 1, 1, 1}, false}}},
		{"a baseline key that sinks stays baseline", []step{{0, critical, [4]uint64{}, false}, {hour, warning, [4]uint64{0, 0, 0, 1}, false}}},
		{"a baseline warning that was critical for a while", []step{{0, warning, [4]uint64{}, false}, {hour, critical, [4]uint64{0, 1}, true}, {hour, warning, [4]uint64{0, 1, 0, 1}, false}}},
		{"back within 48 h", []step{{0, healthy, [4]uint64{}, false}, {hour, critical, [4]uint64{0, 1}, true}, {hour, healthy, [4]uint64{0, 1, 0, 1}, false}, {Memory - 1, critical, [4]uint64{0, 1, 0, 1}, true}}},
		{"back after 48 h", []step{{0, healthy, [4]uint64{}, false}, {hour, critical, [4]uint64{0, 1}, true}, {hour, healthy, [4]uint64{0, 1, 0, 1}, false}, {Memory, critical, [4]uint64{0, 2, 0, 1}, true}}},
		{"a baseline key back within 48 h", []step{{0, warning, [4]uint64{}, false}, {hour, healthy, [4]uint64{0, 0, 1}, false}, {hour, warning, [4]uint64{0, 0, 1}, false}}},
		{"critical, back as a warning", []step{{0, healthy, [4]uint64{}, false}, {hour, critical, [4]uint64{0, 1}, true}, {hour, healthy, [4]uint64{0, 1, 0, 1}, false}, {hour, warning, [4]uint64{0, 1, 0, 1}, true}}},
		{"a warning, back as critical", []step{{0, healthy, [4]uint64{}, false}, {hour, warning, [4]uint64{1}, true}, {hour, healthy, [4]uint64{1, 0, 1}, false}, {hour, critical, [4]uint64{1, 1, 1}, true}}},
		{"flaps between the tiers", []step{{0, healthy, [4]uint64{}, false}, {hour, critical, [4]uint64{0, 1}, true}, {hour, warning, [4]uint64{0, 1, 0, 1}, true}, {hour, critical, [4]uint64{0, 1, 0, 1}, true}}},
	} {
		t.Run(tc.about, func(t *testing.T) {
			tracker, now := New(), start
			for i, s := range tc.steps {
				now = now.Add(s.after)
				view := commit(tracker, now, map[string]policy.Severity{"k:1": s.tier})
				if got := events(view); got != s.want {
					t.Errorf("step %d: events %v, want %v", i, got, s.want)
				}
				if listed := len(view.Listed) == 1; listed != s.listed {
					t.Errorf("step %d: listed %+v", i, view.Listed)
				}
				if s.listed && (view.Listed[0].Severity != s.tier || view.Listed[0].Label != "k:1" || view.Listed[0].Bytes != 5000 || view.Listed[0].Elements != 2000 || view.Listed[0].Namespace != "ns") {
					t.Errorf("step %d: listed %+v", i, view.Listed)
				}
			}
		})
	}
}

func TestSince(t *testing.T) {
	tracker := New()
	commit(tracker, start, nil)
	commit(tracker, start.Add(1*time.Hour), map[string]policy.Severity{"k": warning})
	view := commit(tracker, start.Add(2*time.Hour), map[string]policy.Severity{"k": critical})
	if got := view.Listed[0].Since; !got.Equal(start.Add(2 * time.Hour)) {
		t.Errorf("entered critical at %v", got)
	}
	commit(tracker, start.Add(3*time.Hour), nil)
	view = commit(tracker, start.Add(4*time.Hour), map[string]policy.Severity{"k": critical})
	if got := view.Listed[0].Since; !got.Equal(start.Add(2 * time.Hour)) {
		t.Errorf("back: entered critical at %v", got)
	}
}

// TestForgets: the memory of keys that are gone ends with Memory.
func TestForgets(t *testing.T) {
	tracker := New()
	commit(tracker, start, map[string]policy.Severity{"a": warning, "b": critical})
	if view := commit(tracker, start.Add(time.Hour), nil); view.Tracked != 2 {
		t.Errorf("%d tracked just after they left", view.Tracked)
	}
	if view := commit(tracker, start.Add(time.Hour+Memory-1), nil); view.Tracked != 2 {
		t.Errorf("%d tracked before the end of memory", view.Tracked)
	}
	if view := commit(tracker, start.Add(time.Hour+Memory), nil); view.Tracked != 0 {
		t.Errorf("%d tracked after it", view.Tracked)
	}
}

func TestSameNameInTwoDatabases(t *testing.T) {
	tracker := New()
	commit(tracker, start, map[string]policy.Severity{"k": warning})
	finds := tracker.Begin(start, 0, 1)
	finds.Add(bigKey("k"), "ns", warning, start)
	other := bigKey("k")
	other.DB = 1
	finds.Add(other, "ns", warning, start)
	tracker.Commit(finds, start.Add(time.Hour))
	if view := tracker.View(); events(view) != [4]uint64{1} || view.Listed[0].DB != 1 {
		t.Errorf("%v, %+v", events(view), view.Listed)
	}
}

func TestDuplicateOfOneCycle(t *testing.T) {
	finds := New().Begin(start, 0, 1)
	if !finds.Add(bigKey("k"), "ns", warning, start) || finds.Add(bigKey("k"), "ns", warning, start) {
		t.Error("a key that SCAN returns twice counts twice")
	}
}

// TestDroppedCycle: finds that are never committed leave no trace.
func TestDroppedCycle(t *testing.T) {
	tracker := New()
	commit(tracker, start, nil)
	tracker.Begin(start, 0, 1).Add(bigKey("k"), "ns", warning, start)
	if view := commit(tracker, start.Add(time.Hour), nil); view.Tracked != 0 || events(view) != [4]uint64{} {
		t.Errorf("%+v", view)
	}
}

func TestListedOrder(t *testing.T) {
	tracker := New()
	commit(tracker, start, nil)
	found := map[string]policy.Severity{}
	for i := range 40 {
		found[fmt.Sprintf("w:%02d", i)] = warning
	}
	for i := range 30 {
		found[fmt.Sprintf("c:%02d", i)] = critical
	}
	commit(tracker, start.Add(time.Hour), found)
	found["w:new"] = warning
	view := commit(tracker, start.Add(2*time.Hour), found)
	if len(view.Listed) != MaxListed {
		t.Fatalf("%d listed", len(view.Listed))
	}
	for i, l := range view.Listed {
		if want := map[bool]policy.Severity{true: critical, false: warning}[i < 30]; l.Severity != want {
			t.Errorf("place %d is %v", i, l.Severity)
		}
	}
	if view.Listed[30].Label != "w:new" {
		t.Errorf("the newest warning is not the first: %+v", view.Listed[30])
	}
}

// TestOverflow: more big keys than fit raise no false news, the critical ones
// are remembered first, and it says so.
func TestOverflow(t *testing.T) {
	tracker := New()
	finds := tracker.Begin(start, 0, 1)
	add := func(f *Finds, prefix string, n int, severity policy.Severity) {
		for i := range n {
			k := bigKey("")
			k.Hash = keyspace.HashName(fmt.Sprint(prefix, i))
			f.Add(k, "ns", severity, start)
		}
	}
	add(finds, "w", Capacity, warning)
	add(finds, "c", 10, critical)
	tracker.Commit(finds, start)
	view := tracker.View()
	if !view.Overflow || view.Tracked != warningShare+10 || events(view) != [4]uint64{} {
		t.Fatalf("overflow %v, %d tracked, %v", view.Overflow, view.Tracked, events(view))
	}
	// Half of the warnings go: old ones that were refused get in, quietly.
	finds = tracker.Begin(start, 0, 1)
	add(finds, "c", 12, critical)
	for i := Capacity / 2; i < Capacity; i++ {
		k := bigKey("")
		k.Hash = keyspace.HashName(fmt.Sprint("w", i))
		finds.Add(k, "ns", warning, start)
	}
	tracker.Commit(finds, start.Add(time.Hour))
	if got := events(tracker.View()); got[0] != 0 || got[1] != 2 {
		t.Errorf("events %v: old warnings are news, or new critical keys are none", got)
	}
	if tracker.View().Tracked > Capacity {
		t.Errorf("%d tracked", tracker.View().Tracked)
	}
}

func TestViewIsImmutable(t *testing.T) {
	tracker := New()
	commit(tracker, start, nil)
	first := commit(tracker, start.Add(time.Hour), map[string]policy.Severity{"a": warning})
	before := slices.Clone(first.Listed)
	commit(tracker, start.Add(2*time.Hour), map[string]policy.Severity{"a": critical, "b": critical})
	if events(first) != [4]uint64{1} || !slices.Equal(first.Listed, before) {
		t.Errorf("a published view changed: %+v", first)
	}
}

// TestNamesAreBounded: a flood of new keys keeps a bounded number of names, of
// bounded length.
func TestNamesAreBounded(t *testing.T) {
	tracker := New()
	commit(tracker, start, nil)
	finds := tracker.Begin(start, 0, 1)
	for i := range 3 * MaxWatched {
		finds.Add(bigKey(strings.Repeat("x", maxWatchedName-2)+fmt.Sprint(i)), "ns", warning, start)
	}
	named := 0
	for _, f := range finds.keys {
		if f.named != nil {
			named++
		}
		if f.named != nil && (len(f.named.label) > keyspace.MaxLabelBytes || len(f.named.name) > maxWatchedName) {
			t.Fatalf("a label of %d bytes, a name of %d", len(f.named.label), len(f.named.name))
		}
	}
	if named != MaxWatched {
		t.Errorf("%d names are kept", named)
	}
	for cycle := range 10 { // a flood in each
		finds := tracker.Begin(start, 0, 1)
		for i := range 10 * MaxWatched {
			finds.Add(bigKey(fmt.Sprint("flood:", cycle, ":", i)), "ns", warning, start)
		}
		tracker.Commit(finds, start.Add(time.Duration(cycle)*time.Hour))
	}
	details := 0
	for _, e := range tracker.entries {
		if e.detail != nil {
			details++
		}
	}
	if details > MaxWatched {
		t.Errorf("%d names are kept over cycles", details)
	}
}

// TestRefusedIsQuiet: while keys of a tier had to be refused, a newcomer of it may
// be an old one; in the cycle behind it is news again.
func TestRefusedIsQuiet(t *testing.T) {
	refused := [policy.NumSeverities]bool{warning: true}
	for _, tc := range []struct {
		about string
		find  func(*Tracker)
		want  [4]uint64
	}{
		{"by the last cycle", func(tr *Tracker) {
			tr.bySlot[0].refused = 1 << warning
			commit(tr, start, map[string]policy.Severity{"w": warning, "c": critical})
		}, [4]uint64{0, 1}},
		{"by this cycle", func(tr *Tracker) {
			finds := tr.Begin(start, 0, 1)
			finds.refused = refused
			finds.Add(bigKey("w"), "ns", warning, start)
			finds.Add(bigKey("c"), "ns", critical, start)
			tr.Commit(finds, start)
			if !tr.View().Overflow {
				t.Error("no overflow")
			}
		}, [4]uint64{0, 1}},
		{"by the last cycle, found by a look", func(tr *Tracker) {
			tr.bySlot[0].refused = 1 << warning
			finds := tr.Look(start)
			finds.Add(bigKey("w"), "ns", warning, start)
			finds.Add(bigKey("c"), "ns", critical, start)
			tr.Update(finds)
			if !tr.View().Overflow {
				t.Error("a look ended the overflow")
			}
		}, [4]uint64{0, 1}},
		{"before a restart", func(tr *Tracker) {
			tr.bySlot[0].refused = 1 << warning
			*tr = *restart(tr)
			if !tr.View().Overflow {
				t.Error("the overflow was forgotten")
			}
			commit(tr, start, map[string]policy.Severity{"w": warning, "c": critical})
		}, [4]uint64{0, 1}},
		{"by the cycle before the last", func(tr *Tracker) {
			tr.bySlot[0].refused = 1 << warning
			if commit(tr, start, nil).Overflow {
				t.Error("the overflow does not end")
			}
			commit(tr, start, map[string]policy.Severity{"w": warning})
		}, [4]uint64{1}},
	} {
		tracker := New()
		commit(tracker, start, nil)
		tc.find(tracker)
		if got := events(tracker.View()); got != tc.want {
			t.Errorf("%s: events %v, want %v", tc.about, got, tc.want)
		}
	}
}

// TestStringsHaveNoElements: the length of a string is its bytes.
func TestStringsHaveNoElements(t *testing.T) {
	tracker := New()
	commit(tracker, start, nil)
	k := bigKey("s")
	k.Type = keyspace.String
	finds := tracker.Begin(start, 0, 1)
	finds.Add(k, "ns", critical, start)
	tracker.Commit(finds, start)
	if listed := tracker.View().Listed; len(listed) != 1 || listed[0].Elements != -1 || listed[0].Bytes != 5000 {
		t.Errorf("%+v", listed)
	}
}
