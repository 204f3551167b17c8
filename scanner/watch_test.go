package scanner

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// TestWatchBeatsTheScan: while a cycle takes hours, what becomes of a known big
// key shows within one watch interval.
func TestWatchBeatsTheScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(append([]keyspace.Key{
			stringKey(0, "grows:1", 20_000), stringKey(0, "shrinks:1", 20_000), stringKey(0, "goes:1", 20_000), stringKey(0, "stays:1", 20_000),
		}, small(20_000)...)...)
		node.dbs[3] = [][]keyspace.Key{{stringKey(3, "other:1", 20_000)}}
		sup, stop := run(opts, node)
		defer stop()
		state := func() (fresh, resolved uint64, listed map[string]int64) {
			v := sup.States()[0].BigKeys
			listed = map[string]int64{}
			for _, l := range v.Listed {
				listed[l.Label] = l.Bytes
			}
			return v.New[keyspace.String][policy.Critical], v.Resolved[keyspace.String][policy.Warning], listed
		}
		time.Sleep(opts.Interval / 2)
		if st := sup.States()[0]; st.BigKeys.Watched != 5 || st.Status.Cycles[snapshot.Complete] != 1 {
			t.Fatalf("%d keys are watched after %v cycles", st.BigKeys.Watched, st.Status.Cycles)
		}
		node.change(func() { node.pageTime = 10 * time.Second }) // the next cycle takes half an hour
		time.Sleep(5 * time.Minute)
		node.change(func() {
			page := node.dbs[0][0]
			page[0] = stringKey(0, "grows:1", 6<<20)
			page[1] = stringKey(0, "shrinks:1", 200)
			node.dbs[0][0] = append(page[:2:2], page[3:]...)
		})
		const within = defaultWatchInterval + 10*time.Second // it is the server that is this slow
		time.Sleep(within + time.Second)
		fresh, resolved, listed := state()
		if fresh != 1 || resolved != 2 || listed["grows:1"] != 6<<20 || len(listed) != 1 {
			t.Errorf("%d new critical, %d resolved, listed %v", fresh, resolved, listed)
		}
		node.change(func() {
			node.dbs[0][0][0] = stringKey(0, "grows:1", 7<<20)
			node.dbs[3] = nil
		})
		time.Sleep(within + time.Second)
		if _, resolved, listed := state(); resolved != 3 || listed["grows:1"] != 7<<20 {
			t.Errorf("%d resolved, listed %v", resolved, listed)
		}
		if st := sup.States()[0].Status; st.Cycles[snapshot.Complete] != 1 || !st.Scanning {
			t.Errorf("cycles %v: the scan itself may have seen it", st.Cycles)
		}
	})
}

// TestWatchIsWithinTheBudget: a watch list that costs more than its share is
// looked at less often, and the scan goes on.
func TestWatchIsWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.MaxDuty, opts.Interval = 0.1, 0
		node := newFake()
		for db := range 10 {
			node.dbs[db] = [][]keyspace.Key{append(small(99), stringKey(db, "big:1", 20_000))}
		}
		node.pageTime, node.lookTime = 20*time.Millisecond, 90*time.Millisecond // a look: 0.9 s, every 18 s at half the budget
		sup, stop := run(opts, node)
		defer stop()
		time.Sleep(time.Hour)
		var looks int
		node.change(func() { looks = node.looks / 10 })
		if looks < 180 || looks > 202 {
			t.Errorf("%d looks in an hour", looks)
		}
		if st := sup.States()[0].Status; st.Cycles[snapshot.Complete] < 400 || st.Busy > time.Duration(1.05*opts.MaxDuty*float64(time.Hour)) {
			t.Errorf("%d cycles, busy for %v", st.Cycles[snapshot.Complete], st.Busy)
		}
	})
}

// TestWatchInTrouble: what befalls a key while it is looked at costs nothing but
// that look; a connection that breaks ends the cycle like any other.
func TestWatchInTrouble(t *testing.T) {
	for name, tc := range map[string]struct {
		problem fault.KeyProblem
		err     error
		left    uint64
	}{
		"gone":       {problem: fault.Gone, left: 1},
		"moved":      {problem: fault.Moved},
		"permission": {problem: fault.KeyPermission},
		"odd reply":  {problem: fault.OddReply},
		"connection": {err: fault.Newf(fault.ConnLost, "broken pipe")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, _ := testOptions(t)
				node := newFake(stringKey(0, "big:1", 20_000))
				s := New(node, opts)
				defer s.closeSession()
				if err := s.RunCycle(t.Context()); err != nil {
					t.Fatal(err)
				}
				node.dbs[0][0][0] = stringKey(0, "big:1", 200)
				node.onLook = func(problems []fault.KeyProblem) error {
					problems[0] = tc.problem
					return tc.err
				}
				s.lookDue = time.Time{}
				if err := s.lookAtWatched(t.Context()); (err == nil) != (tc.err == nil) {
					t.Errorf("error %v", err)
				}
				if left := s.State().BigKeys.Resolved[keyspace.String][policy.Warning]; left != tc.left {
					t.Errorf("%d resolved", left)
				}
			})
		})
	}
}

// TestWatchIsSaved: an event of the watch list survives a restart, and costs one
// write of the state file a minute at the most.
func TestWatchIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.StateFile = filepath.Join(t.TempDir(), "state")
		node := newFake(stringKey(0, "a", 20_000), stringKey(0, "b", 20_000), stringKey(0, "c", 20_000))
		s := New(node, opts)
		defer s.closeSession()
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, tc := range []struct {
			after   time.Duration
			shrinks bool
			saved   bool
		}{
			{saveEvery, true, true},
			{saveEvery / 2, true, false},
			{saveEvery, false, true}, // the last one
			{saveEvery, false, false},
			{saveEvery, true, true},
		} {
			time.Sleep(tc.after)
			before := s.saved
			if tc.shrinks {
				node.dbs[0][0] = node.dbs[0][0][1:]
			}
			if err := s.lookAtWatched(t.Context()); err != nil {
				t.Fatal(err)
			}
			if saved := s.saved.After(before); saved != tc.saved {
				t.Errorf("look %d: saved %v", i, saved)
			}
		}
	})
}

// TestWatchedByPolicy: keys that the policy names are measured whatever their
// size, from the first look on, and shown while they exist.
func TestWatchedByPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		rules, err := policy.New(policy.Spec{Watch: []policy.WatchedKey{{Name: "queue:mail"}, {Name: "user:1"}, {Name: "none:1"}, {DB: 3, Name: "queue:mail"}, {Name: "big:1"}}})
		if err != nil {
			t.Fatal(err)
		}
		opts.Policy = rules
		queue := stringKey(0, "queue:mail", 700)
		queue.Type, queue.Length = keyspace.List, 12
		node := newFake(queue, stringKey(0, "big:1", 20_000))
		sup, stop := run(opts, node)
		defer stop()
		time.Sleep(defaultWatchInterval + time.Second)
		want := func(about string, all ...snapshot.WatchedKey) {
			t.Helper()
			if got := sup.States()[0].Watched; !slices.Equal(got, all) {
				t.Errorf("%s: %+v", about, got)
			}
		}
		big := snapshot.WatchedKey{Label: "big:1", Namespace: "default", Type: keyspace.String, Bytes: 20_000, Elements: -1}
		mail := snapshot.WatchedKey{Label: "queue:mail", Namespace: "default", Type: keyspace.List, Bytes: 700, Elements: 12}
		want("two exist", big, mail)
		node.change(func() {
			node.dbs[0][0] = node.dbs[0][0][:1]
			node.dbs[0][0][0].Bytes, node.dbs[0][0][0].Length = 900, 15
			node.dbs[3] = [][]keyspace.Key{{stringKey(3, "queue:mail", 64)}}
		})
		time.Sleep(defaultWatchInterval + time.Second)
		mail.Bytes, mail.Elements = 900, 15
		want("one went, one came", mail, snapshot.WatchedKey{DB: 3, Label: "queue:mail", Namespace: "default", Type: keyspace.String, Bytes: 64, Elements: -1})
		if v := sup.States()[0].BigKeys; v.Watched != 0 || v.Resolved[keyspace.String][policy.Warning] != 1 {
			t.Errorf("the big one is not resolved: %+v", v)
		}

		// As many bytes, for the allocator has classes of sizes; and another policy.
		named, err := policy.New(policy.Spec{
			Namespaces: []policy.NamespaceSpec{{Name: "queues", Match: []policy.Pattern{{Text: "queue:*"}}}},
			Watch:      []policy.WatchedKey{{Name: "queue:mail"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		sup.SetPolicy(named)
		node.change(func() { node.dbs[0][0][0].Length = 16 })
		time.Sleep(opts.Interval + defaultWatchInterval)
		mail.Elements, mail.Namespace = 16, "queues"
		want("renamed and grown within the same bytes", mail)
	})
}

// TestSlowKeys: a big key that someone uses is found within a watch interval, in
// whichever database, before the scan comes by.
func TestSlowKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.SlowlogHints, opts.Interval = true, time.Hour
		node := newFake(stringKey(0, "used:1", 100), stringKey(0, "small:1", 100))
		node.dbs[3] = [][]keyspace.Key{{stringKey(3, "x:1", 100)}}
		sup, stop := run(opts, node)
		defer stop()
		time.Sleep(time.Minute)
		node.change(func() {
			node.dbs[0][0][0] = stringKey(0, "used:1", 20_000)
			node.dbs[3][0] = append(node.dbs[3][0], stringKey(3, "used:1", 6<<20))
			node.slowKeys = []string{"used:1", "small:1", "gone:1"}
		})
		time.Sleep(defaultWatchInterval + time.Second)
		v := sup.States()[0].BigKeys
		if v.New[keyspace.String][policy.Warning] != 1 || v.New[keyspace.String][policy.Critical] != 1 || v.Watched != 2 || len(v.Listed) != 2 {
			t.Errorf("%+v", v)
		}
	})
}
