package bigkeys

import (
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// span is a range of slots.
func span(first, last int) *keyspace.Slots {
	s := &keyspace.Slots{}
	s.Add(first, last)
	return s
}

// Slots of some names: foo 12182, bar 5061, hello 866.
const (
	low  = "hello"
	mid  = "bar"
	high = "foo"
)

// nodes are the trackers of a cluster's nodes: 0-8191 and the rest.
func nodes(target *Target) (a, b *Tracker) {
	a, b = target.Tracker(Counts{}, Counts{}), target.Tracker(Counts{}, Counts{})
	a.Own(span(0, 8191))
	b.Own(span(8192, keyspace.NumSlots-1))
	return a, b
}

func big(names ...string) map[string]policy.Severity {
	found := map[string]policy.Severity{}
	for _, name := range names {
		found[name] = warning
	}
	return found
}

// TestNodes: each node judges its own keys, has a baseline and counts of its own.
func TestNodes(t *testing.T) {
	a, b := nodes(NewTarget())
	hour := func(n int) time.Time { return start.Add(time.Duration(n) * time.Hour) }
	commit(a, hour(0), big(low))
	commit(a, hour(1), big(low, mid))
	if got := events(a.View()); got != [4]uint64{1} {
		t.Errorf("what the first node finds later is %v", got)
	}
	if got := events(commit(b, hour(2), big(high))); got != [4]uint64{} {
		t.Errorf("the second node's baseline is %v", got)
	}
	commit(b, hour(3), nil)
	if got := events(b.View()); got != [4]uint64{0, 0, 1} {
		t.Errorf("what leaves the second node is %v", got)
	}
	if got := events(a.View()); got != [4]uint64{1} {
		t.Errorf("the first node counts %v", got)
	}
	if l := a.View().Listed; len(l) != 1 || l[0].Label != mid {
		t.Errorf("the first node lists %+v", l)
	}
	if l := b.View().Listed; len(l) != 0 {
		t.Errorf("the second node lists %+v", l)
	}
	if len(a.WatchList()) != 2 || len(b.WatchList()) != 0 || !a.Owns(low) || a.Owns(high) || !b.Owns(high) {
		t.Errorf("watched are %+v and %+v", a.WatchList(), b.WatchList())
	}
}

// TestReshard: a slot that moves takes its keys along: they are neither new there
// nor gone here, in whatever order the nodes' cycles end.
func TestReshard(t *testing.T) {
	for _, sourceFirst := range []bool{true, false} {
		a, b := nodes(NewTarget())
		hour := func(n int) time.Time { return start.Add(time.Duration(n) * time.Hour) }
		commit(a, hour(0), big(low, mid))
		commit(b, hour(0), big(high))
		a.Own(span(0, 4999)) // mid moves
		b.Own(span(5000, keyspace.NumSlots-1))
		cycles := []func(){
			func() { commit(a, hour(1), big(low)) },
			func() { commit(b, hour(1), big(mid, high)) },
		}
		if !sourceFirst {
			cycles[0], cycles[1] = cycles[1], cycles[0]
		}
		for _, cycle := range cycles {
			cycle()
		}
		if events(a.View()) != [4]uint64{} || events(b.View()) != [4]uint64{} {
			t.Errorf("events %v and %v", events(a.View()), events(b.View()))
		}
		if got := events(commit(b, hour(2), big(high))); got != [4]uint64{0, 0, 1} {
			t.Errorf("what leaves its new node is %v", got)
		}
		// What the old node had measured is no baseline again.
		if got := events(commit(b, hour(3), big(high, "{"+mid+"}:2"))); got != [4]uint64{1, 0, 1} {
			t.Errorf("what is made on a new node is %v", got)
		}
	}
}

// TestSuccessor: another server with the same keys counts on, and so it does
// behind a restart of the program.
func TestSuccessor(t *testing.T) {
	target := NewTarget()
	a, b := nodes(target)
	commit(a, start, big(low))
	commit(b, start, big(high))
	commit(a, start.Add(time.Hour), big(low, mid))
	for about, after := range map[string]*Target{"a failover": target, "a restart": Restore(target.State())} {
		next := after.Tracker(a.View().New, a.View().Resolved)
		next.Own(span(0, 8191))
		if got := events(next.View()); got != [4]uint64{1} || len(next.View().Listed) != 1 {
			t.Errorf("%s: before the first cycle %v, listed %+v", about, got, next.View().Listed)
		}
		if got := events(commit(next, start.Add(2*time.Hour), big(low, mid))); got != [4]uint64{1} {
			t.Errorf("%s: %v", about, got)
		}
		if got := events(commit(next, start.Add(3*time.Hour), big(low, mid, "{"+low+"}"))); got != [4]uint64{2} {
			t.Errorf("%s: what comes later is %v", about, got)
		}
	}
}

// TestPolicyOvertakes: a cycle that began under the old policy is left out once
// another node judges by the new one.
func TestPolicyOvertakes(t *testing.T) {
	a, b := nodes(NewTarget())
	a.SetPolicy("old")
	b.SetPolicy("old")
	commit(a, start, nil)
	commit(b, start, nil)
	finds, looked := b.Begin(start, 0, 1), b.Look(start)
	finds.Add(bigKey(high), "ns", warning, start)
	looked.Add(bigKey(high), "ns", warning, start)
	a.SetPolicy("new")
	b.Commit(finds, start.Add(time.Hour))
	if b.Update(looked) || b.View().Tracked != 0 {
		t.Errorf("%d tracked", b.View().Tracked)
	}
	b.SetPolicy("new")
	if got := events(commit(b, start.Add(2*time.Hour), big(high))); got != [4]uint64{} {
		t.Errorf("the baseline under the new policy is %v", got)
	}
}

// TestOverflowOfNodes: what several cycles find at once fits, or is refused.
func TestOverflowOfNodes(t *testing.T) {
	a, b := nodes(NewTarget())
	fill := func(tracker *Tracker, prefix string) *Finds {
		finds := tracker.Begin(start, 0, 1)
		for i := range Capacity / 3 * 2 {
			k := bigKey("{" + prefix + "}")
			k.Hash = uint64(i)<<8 | uint64(prefix[0])
			finds.Add(k, "ns", critical, start)
		}
		return finds
	}
	first, second := fill(a, low), fill(b, high)
	a.Commit(first, start)
	b.Commit(second, start)
	if view := b.View(); view.Tracked != Capacity || !view.Overflow {
		t.Errorf("%d tracked, overflow %v", view.Tracked, view.Overflow)
	}
}
