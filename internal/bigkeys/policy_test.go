package bigkeys

import (
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/policy"
)

// TestPolicyChange: what a new policy makes big or small is no news; what happens
// under it afterwards is. Events are {new warning, new critical, resolved
// warning, resolved critical}.
func TestPolicyChange(t *testing.T) {
	type cycle = map[string]policy.Severity
	tracker, now := New(), start
	tracker.SetPolicy("a")
	next := func(found cycle) *View {
		now = now.Add(time.Hour)
		return commit(tracker, now, found)
	}
	expect := func(about string, v *View, want [4]uint64, listed ...string) {
		t.Helper()
		if events(v) != want {
			t.Errorf("%s: events %v, want %v", about, events(v), want)
		}
		got := map[string]bool{}
		for _, l := range v.Listed {
			got[l.Label] = true
		}
		if len(got) != len(listed) {
			t.Errorf("%s: listed %+v, want %v", about, v.Listed, listed)
		}
		for _, l := range listed {
			if !got[l] {
				t.Errorf("%s: listed %+v, want %v", about, v.Listed, listed)
			}
		}
	}
	next(cycle{"old": warning})
	found := cycle{"old": warning, "new": critical, "up": warning}
	expect("before", next(found), [4]uint64{1, 1}, "new", "up")
	tracker.SetPolicy("a")
	found["newer"] = warning
	expect("the same policy", next(found), [4]uint64{2, 1}, "new", "up", "newer")

	tracker.SetPolicy("b") // old: small, new: warning, up: critical, other: big
	expect("another policy", next(cycle{"new": warning, "up": critical, "newer": warning, "other": critical}), [4]uint64{2, 1}, "newer")
	expect("nothing happens", next(cycle{"new": warning, "up": critical, "newer": warning, "other": critical}), [4]uint64{2, 1}, "newer")
	expect("keys grow, shrink and go", next(cycle{"old": warning, "new": critical, "other": warning}), [4]uint64{3, 2, 1, 2}, "old", "new")

	tracker.SetPolicy("a")
	restored := restart(tracker)
	if restored.policy != "a" || restored.bySlot[0].baselined != 0 {
		t.Errorf("restored: policy %q, baselined %b", restored.policy, restored.bySlot[0].baselined)
	}
	restored.SetPolicy("a")
	tracker = restored
	expect("back, after a restart", next(cycle{"old": critical, "third": critical}), [4]uint64{3, 2, 1, 2})
	tracker = restart(tracker)
	tracker.SetPolicy("b")
	expect("a restart into another policy", next(cycle{"third": warning, "fourth": warning}), [4]uint64{3, 2, 1, 2})
	tracker = restart(tracker)
	tracker.SetPolicy("b")
	expect("a restart into the same", next(cycle{"third": warning, "fourth": warning, "fifth": warning}), [4]uint64{4, 2, 1, 2}, "fifth")
}

// restart is what is left of a tracker after a restart of the program.
func restart(t *Tracker) *Tracker {
	return Restore(t.State()).Tracker(t.view.New, t.view.Resolved)
}

// TestPolicyChangeByClass: with sampling each class is judged anew in its turn.
func TestPolicyChangeByClass(t *testing.T) {
	tracker := New()
	tracker.SetPolicy("a")
	cycle := func(hour, class int, hashes ...uint64) *View {
		finds := tracker.Begin(start.Add(time.Duration(hour)*time.Hour), class, 2)
		for _, h := range hashes {
			k := bigKey("")
			k.Hash = h
			finds.Add(k, "ns", warning, start.Add(time.Duration(hour)*time.Hour))
		}
		tracker.Commit(finds, start.Add(time.Duration(hour)*time.Hour))
		return tracker.View()
	}
	cycle(0, 0)
	cycle(1, 1)
	tracker.SetPolicy("b")
	cycle(2, 0, 2)
	if v := cycle(3, 1, 2, 3); events(v) != [4]uint64{} {
		t.Errorf("class 1 under its new policy: %v", events(v))
	}
	if v := cycle(4, 0, 2, 3, 4); events(v) != [4]uint64{1} {
		t.Errorf("news of class 0: %v", events(v))
	}
}
