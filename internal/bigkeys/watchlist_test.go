package bigkeys

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/policy"
)

// look takes one look at the watch list that finds the keys so, others as they
// were.
func look(t *Tracker, at time.Time, found map[string]policy.Severity) (*View, bool) {
	finds := t.Look(at)
	for name, severity := range found {
		if k := bigKey(name); severity == healthy {
			finds.Left(ID{Hash: k.Hash}, at)
		} else {
			finds.Add(k, "ns", severity, at)
		}
	}
	moved := t.Update(finds)
	return t.View(), moved
}

// TestLook counts {new warning, new critical, resolved warning, resolved
// critical} after a baseline, a cycle an hour later and a look.
func TestLook(t *testing.T) {
	type tiers = map[string]policy.Severity
	for _, tc := range []struct {
		about                   string
		baseline, cycle, looked tiers
		want                    [4]uint64
		listed, watched         int
		moved                   bool
	}{
		{"nothing changes", tiers{"a": warning}, tiers{"a": warning}, nil, [4]uint64{}, 0, 1, false},
		{"as big as before", tiers{}, tiers{"a": warning}, tiers{"a": warning}, [4]uint64{1}, 1, 1, false},
		{"an old key is gone", tiers{"a": critical}, tiers{"a": critical}, tiers{"a": healthy}, [4]uint64{0, 0, 0, 1}, 0, 0, true},
		{"a new key is gone", tiers{}, tiers{"a": critical}, tiers{"a": healthy}, [4]uint64{0, 1, 0, 1}, 0, 0, true},
		{"an old key grows", tiers{"a": warning}, tiers{"a": warning}, tiers{"a": critical}, [4]uint64{0, 1}, 1, 1, true},
		{"a new key shrinks", tiers{}, tiers{"a": critical}, tiers{"a": warning}, [4]uint64{0, 1, 0, 1}, 1, 1, true},
		{"a key that nobody knew", tiers{}, tiers{}, tiers{"a": warning}, [4]uint64{1}, 1, 1, true},
		{"a small key that nobody knew", tiers{}, tiers{}, tiers{"a": healthy}, [4]uint64{}, 0, 0, false},
	} {
		t.Run(tc.about, func(t *testing.T) {
			tracker := New()
			commit(tracker, start, tc.baseline)
			commit(tracker, start.Add(time.Hour), tc.cycle)
			view, moved := look(tracker, start.Add(2*time.Hour), tc.looked)
			if got := events(view); got != tc.want || moved != tc.moved {
				t.Errorf("events %v, want %v; moved %v", got, tc.want, moved)
			}
			if len(view.Listed) != tc.listed || view.Watched != tc.watched || len(tracker.WatchList()) != tc.watched {
				t.Errorf("listed %+v, %d watched: %+v", view.Listed, view.Watched, tracker.WatchList())
			}
		})
	}
}

// TestLookDuringCycle: of a cycle that is under way while the watch list is
// looked at, whichever saw a key last is right.
func TestLookDuringCycle(t *testing.T) {
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	for _, tc := range []struct {
		about        string
		seen, looked int // minute in which the cycle and the look saw it; 0 = not
		left         bool
		want         policy.Severity
	}{
		{"gone after the cycle saw it", 1, 2, true, healthy},
		{"gone before, and made anew", 2, 1, true, warning},
		{"changed after the cycle passed", 1, 2, false, warning},
		{"found behind the cycle's cursor", 0, 2, false, warning},
	} {
		t.Run(tc.about, func(t *testing.T) {
			tracker := New()
			if tc.seen > 0 {
				commit(tracker, start.Add(-time.Hour), map[string]policy.Severity{"a": warning})
			}
			finds := tracker.Begin(minute(0), 0, 1)
			for now := 1; now <= 3; now++ {
				if now == tc.seen {
					finds.Add(bigKey("a"), "ns", warning, minute(now))
				}
				if now == tc.looked {
					tier := warning
					if tc.left {
						tier = healthy
					}
					look(tracker, minute(now), map[string]policy.Severity{"a": tier})
				}
			}
			tracker.Commit(finds, minute(4))
			if known := tracker.Known(ID{Hash: bigKey("a").Hash}); known != (tc.want != healthy) {
				t.Errorf("known to be big: %v", known)
			}
		})
	}
}

// TestWatchList: critical keys come before warnings, new ones before old ones,
// and who leaves makes room.
func TestWatchList(t *testing.T) {
	tracker := New()
	found := map[string]policy.Severity{strings.Repeat("x", maxWatchedName+1): critical, "": critical}
	for i := range MaxWatched {
		found[fmt.Sprint("old:", i)] = warning
	}
	commit(tracker, start, found)
	found["new"], found["worst"] = warning, critical
	commit(tracker, start.Add(time.Hour), found)
	names := map[string]bool{}
	for _, w := range tracker.WatchList() {
		names[w.Name] = true
		if len(w.Name) > maxWatchedName {
			t.Errorf("a name of %d bytes is watched", len(w.Name))
		}
	}
	if !names["new"] || !names["worst"] || !names[""] || len(names) != MaxWatched-1 || tracker.View().Watched != len(names) {
		t.Errorf("%d keys are watched, the view says %d; new %v, worst %v", len(names), tracker.View().Watched, names["new"], names["worst"])
	}
	for name := range found {
		if names[name] && name != "new" {
			delete(found, name)
		}
	}
	commit(tracker, start.Add(2*time.Hour), found)
	if n := len(tracker.WatchList()); n != len(found)-1 {
		t.Errorf("%d are watched of %d that are left", n, len(found))
	}
}
