package scanner

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

func TestCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(small(250)...)
		node.dbs[3] = [][]keyspace.Key{{stringKey(3, "big:1", 20_000)}}
		s := New(node, opts)
		defer s.closeSession()
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		state := s.State()
		snap := state.Snapshot
		if snap == nil || len(snap.Suspect) > 0 || snap.Coverage != 1 || len(snap.DBs) != 2 {
			t.Fatalf("snapshot %+v", snap)
		}
		if n := snap.DBs[0].Types[keyspace.String].Keys.Value; n != 250 {
			t.Errorf("%v keys in db0", n)
		}
		if big := snap.DBs[1].Types[keyspace.String].Big[policy.Warning]; big.Keys != 1 || big.Bytes != 20_000 {
			t.Errorf("big keys of db3: %+v", big)
		}
		st := state.Status
		if !st.Up || st.Keys != 251 || st.Cycles[snapshot.Complete] != 1 || st.Progress != 1 || st.Scanning {
			t.Errorf("status %+v", st)
		}
		// Each key is probed once, a candidate's length is asked for once.
		if got := st.Commands[keyspace.CmdMemoryUsage]; got != 251 {
			t.Errorf("%d MEMORY USAGE", got)
		}
		if got := st.Commands[keyspace.CmdStrlen]; got != 1 {
			t.Errorf("%d STRLEN", got)
		}
	})
}

// TestEmptyPages: pages without names are normal; only cursor 0 ends a walk.
func TestEmptyPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake()
		node.dbs[0] = [][]keyspace.Key{{}, {}, small(100), {}, small(1), {}}
		s := New(node, opts)
		defer s.closeSession()
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.State().Snapshot.DBs[0].Keys(); got != 101 {
			t.Errorf("%v keys", got)
		}
		if want := []uint64{0, 1, 2, 3, 4, 5}; !slices.Equal(node.cursors, want) {
			t.Errorf("cursors %v", node.cursors)
		}
	})
}

// TestAbort: a cycle that fails anywhere publishes nothing, counts its reason,
// leaves the last snapshot in place, and the next one begins at cursor 0 on a
// new connection.
func TestAbort(t *testing.T) {
	for _, tc := range []struct {
		about string
		err   error
		want  fault.Reason
		up    bool
	}{
		{"connection lost", fault.Newf(fault.ConnLost, "EOF"), fault.ConnLost, false},
		{"timeout", fault.Newf(fault.Timeout, "i/o timeout"), fault.Timeout, false},
		{"loading", fault.Newf(fault.NotReady, "LOADING"), fault.NotReady, true},
		{"rights taken away", fault.Newf(fault.Permission, "NOPERM"), fault.Permission, true},
		{"garbage", fault.Newf(fault.Protocol, "garbage"), fault.Protocol, false},
		{"an error that nobody foresaw", context.DeadlineExceeded, fault.Protocol, false},
	} {
		t.Run(tc.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, _ := testOptions(t)
				node := newFake(small(300)...)
				s := New(node, opts)
				defer s.closeSession()
				if err := s.RunCycle(t.Context()); err != nil {
					t.Fatal(err)
				}
				first := s.State().Snapshot
				node.onPage = func(_ context.Context, n int, _ *Page) error {
					if n == 4+3 {
						return tc.err
					}
					return nil
				}
				if err := s.RunCycle(t.Context()); fault.ReasonOf(err) != tc.want {
					t.Fatalf("err = %v", err)
				}
				state := s.State()
				if state.Snapshot != first {
					t.Error("an aborted cycle published")
				}
				if st := state.Status; st.Aborts[tc.want] != 1 || st.Cycles[snapshot.Aborted] != 1 || st.Up != tc.up || st.Scanning || st.LastFault == nil {
					t.Errorf("status %+v", st)
				}
				node.cursors = nil
				if err := s.RunCycle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if node.opens != 3 || node.cursors[0] != 0 || len(node.cursors) != 3 {
					t.Errorf("%d connections, cursors %v", node.opens, node.cursors)
				}
				if state := s.State(); state.Snapshot == first || state.Status.LastFault != nil {
					t.Error("the cycle after the fault did not publish")
				}
			})
		})
	}
}

func TestRestartedServer(t *testing.T) {
	for _, tc := range []struct {
		about string
		calls int // the INFO that shows another process
	}{
		{"at the cycle's end", 2},
		{"between two pages", 2},
	} {
		t.Run(tc.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, _ := testOptions(t)
				node := newFake(small(300)...)
				if tc.about == "between two pages" {
					node.pageTime = contactEvery // so that INFO comes after each
				}
				node.onInfo = func(n int, info *Info) error {
					if n >= tc.calls {
						info.RunID = "run-2"
					}
					return nil
				}
				s := New(node, opts)
				defer s.closeSession()
				err := s.RunCycle(t.Context())
				if fault.ReasonOf(err) != fault.Restarted || s.State().Snapshot != nil {
					t.Errorf("err = %v, snapshot %v", err, s.State().Snapshot)
				}
				if tc.about == "between two pages" && node.pages > 2 {
					t.Errorf("noticed after %d pages only", node.pages)
				}
			})
		})
	}
}

func TestNotReady(t *testing.T) {
	for about, change := range map[string]func(*Info){
		"loading": func(i *Info) { i.Loading = true },
		"syncing": func(i *Info) { i.Syncing = true },
	} {
		synctest.Test(t, func(t *testing.T) {
			opts, _ := testOptions(t)
			node := newFake(small(10)...)
			node.onInfo = func(_ int, info *Info) error { change(info); return nil }
			s := New(node, opts)
			defer s.closeSession()
			err := s.RunCycle(t.Context())
			if fault.ReasonOf(err) != fault.NotReady || node.pages > 0 || !s.State().Status.Up {
				t.Errorf("%s: err = %v, %d pages, up %v", about, err, node.pages, s.State().Status.Up)
			}
			if s.State().Status.Info.Role != "primary" {
				t.Errorf("%s: INFO was not taken over", about)
			}
		})
	}
}

func TestSuspect(t *testing.T) {
	dbs := func(keys int64) []snapshot.DBInfo { return []snapshot.DBInfo{{Keys: keys, Expires: keys}} }
	for _, tc := range []struct {
		about         string
		before, after func(*Info)
		suspect       bool
	}{
		{"quiet", func(*Info) {}, func(*Info) {}, false},
		{"flushed", func(*Info) {}, func(i *Info) { i.Flushes = 1 }, true},
		{"flushed long ago", func(i *Info) { i.Flushes = 1 }, func(i *Info) { i.Flushes = 1 }, false},
		{"2000 seen of 2222", func(*Info) {}, func(i *Info) { i.DBs = dbs(2222) }, false},
		{"2000 seen of 2223", func(*Info) {}, func(i *Info) { i.DBs = dbs(2223) }, true},
		{"the rest expired", func(i *Info) { i.DBs = dbs(3000) }, func(i *Info) { i.DBs, i.ExpiredKeys = dbs(2000), 700 }, false},
		{"not all of the rest expired", func(i *Info) { i.DBs = dbs(3000) }, func(i *Info) { i.DBs, i.ExpiredKeys = dbs(2000), 699 }, true},
		{"emptied behind us", func(i *Info) { i.DBs = dbs(2000) }, func(i *Info) { i.DBs = nil }, false},
		{"2000 seen of 1819", func(i *Info) { i.DBs = dbs(1819) }, func(i *Info) { i.DBs = dbs(1819) }, false},
		{"2000 seen of 1818", func(i *Info) { i.DBs = dbs(1818) }, func(i *Info) { i.DBs = dbs(1818) }, true},
		{"the surplus expired", func(i *Info) { i.DBs = dbs(1700) }, func(i *Info) { i.DBs, i.ExpiredKeys = dbs(1700), 130 }, false},
		{"not all of the surplus expired", func(i *Info) { i.DBs = dbs(1700) }, func(i *Info) { i.DBs, i.ExpiredKeys = dbs(1700), 129 }, true},
		{"the rest was evicted", func(i *Info) { i.DBs = dbs(3000) }, func(i *Info) { i.DBs, i.EvictedKeys = dbs(2000), 700 }, false},
		{"statistics were reset", func(i *Info) { i.Flushes, i.ExpiredKeys = 5, 1_000_000 }, func(*Info) {}, false},
		{"the primary is back at the end", func(i *Info) { i.PrimaryLinkDown = true }, func(*Info) {}, true},
		{"a replica without its primary", func(*Info) {}, func(i *Info) { i.PrimaryLinkDown = true }, true},
		{"no counts to compare with", func(i *Info) { i.DBs[0].Keys = -1 }, func(*Info) {}, false},
	} {
		t.Run(tc.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, _ := testOptions(t)
				node := newFake(small(2000)...)
				node.onInfo = func(n int, info *Info) error {
					if n == 1 {
						tc.before(info)
					} else {
						tc.after(info)
					}
					return nil
				}
				s := New(node, opts)
				defer s.closeSession()
				if err := s.RunCycle(t.Context()); err != nil {
					t.Fatal(err)
				}
				state := s.State()
				if got := len(state.Snapshot.Suspect) > 0; got != tc.suspect {
					t.Errorf("suspect %v", state.Snapshot.Suspect)
				}
				want := snapshot.Complete
				if tc.suspect {
					want = snapshot.Suspect
				}
				if state.Status.Cycles[want] != 1 {
					t.Errorf("cycles %v", state.Status.Cycles)
				}
			})
		})
	}
}

// TestEndlessScan: a SCAN that never returns to 0 ends the cycle.
func TestEndlessScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(small(300)...)
		node.onPage = func(_ context.Context, _ int, p *Page) error {
			p.NextCursor = 1
			return nil
		}
		s := New(node, opts)
		defer s.closeSession()
		if err := s.RunCycle(t.Context()); fault.ReasonOf(err) != fault.Protocol || !strings.Contains(err.Error(), "does not end") {
			t.Errorf("err = %v", err)
		}
	})
	for _, tc := range []struct {
		about string
		names int // in each page
		pages int // that are still fine
	}{
		{"names without end", 1000, (10*50 + 1_000_000) / 1000},
		{"empty pages without end", 0, maxEmptyPages},
	} {
		end := newEndless(snapshot.DBInfo{Keys: 50})
		page := &Page{Next: small(tc.names)}
		for n := range tc.pages + 1 {
			page.Cursor, page.NextCursor = uint64(n), uint64(n+1)
			if err := end.check(page); (err != nil) != (n == tc.pages) {
				t.Fatalf("%s: page %d: %v", tc.about, n, err)
			}
		}
	}
}

// TestTimeoutHalvesCount: after a page that timed out, the next cycle asks for
// less.
func TestTimeoutHalvesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(small(1000)...)
		var counts []int
		node.onPage = func(_ context.Context, n int, p *Page) error {
			counts = append(counts, p.Count)
			if n <= 5 {
				return fault.Newf(fault.Timeout, "i/o timeout")
			}
			return nil
		}
		s := New(node, opts)
		defer s.closeSession()
		for range 5 {
			if err := s.RunCycle(t.Context()); fault.ReasonOf(err) != fault.Timeout {
				t.Fatal(err)
			}
		}
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []int{100, 50, 25, 12, minCount, minCount}; !slices.Equal(counts[:6], want) {
			t.Errorf("COUNT was %v, want %v", counts[:6], want)
		}
	})
}

// TestSmallKeyspaceDrifts: in a small keyspace a handful of writes is more than
// 10 %.
func TestSmallKeyspaceDrifts(t *testing.T) {
	for keys, want := range map[int64]bool{20 + minDrift: false, 20 + minDrift + 1: true} {
		synctest.Test(t, func(t *testing.T) {
			opts, _ := testOptions(t)
			node := newFake(small(20)...)
			node.onInfo = func(_ int, info *Info) error {
				info.DBs = []snapshot.DBInfo{{Keys: keys, Expires: keys}}
				return nil
			}
			s := New(node, opts)
			defer s.closeSession()
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := len(s.State().Snapshot.Suspect) > 0; got != want {
				t.Errorf("20 seen of %d: suspect %v", keys, got)
			}
		})
	}
}

// TestGoneBeforeItsLength: a candidate that went between its TYPE and its length
// is no key of the snapshot.
func TestGoneBeforeItsLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(append(small(10), stringKey(0, "big:1", 20_000), stringKey(0, "big:2", 20_000))...)
		node.onLens = func(problems []fault.KeyProblem) { problems[1] = fault.Gone }
		s := New(node, opts)
		defer s.closeSession()
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		stats := s.State().Snapshot.DBs[0].Types[keyspace.String]
		if stats.Keys.Value != 11 || stats.Big[policy.Warning].Keys != 1 || s.State().Status.KeyErrors[fault.Gone] != 1 {
			t.Errorf("%v keys, big %+v, errors %v", stats.Keys, stats.Big, s.State().Status.KeyErrors)
		}
	})
}

// TestSuspectRaisesNoEvent: what a suspect cycle finds is news only when a
// coherent one finds it again.
func TestSuspectRaisesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(small(10)...)
		s := New(node, opts)
		defer s.closeSession()
		cycle := func() uint64 {
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
			return s.State().BigKeys.New[keyspace.String][policy.Warning]
		}
		cycle()
		node.dbs[0][0] = append(node.dbs[0][0], stringKey(0, "big:1", 20_000))
		flushes := int64(0)
		node.onInfo = func(_ int, info *Info) error { flushes++; info.Flushes = flushes; return nil }
		if n := cycle(); n != 0 || len(s.State().Snapshot.Suspect) == 0 {
			t.Errorf("%d events from a suspect cycle", n)
		}
		if n := s.State().Snapshot.DBs[0].Types[keyspace.String].Big[policy.Warning].Keys; n != 1 {
			t.Errorf("the suspect cycle's figures do not stand: %d big keys", n)
		}
		node.onInfo = nil
		if n := cycle(); n != 1 {
			t.Errorf("%d events from the coherent cycle", n)
		}
	})
}

// TestBusy: a script that blocks the server holds a page up, it does not end
// the cycle.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, logs := testOptions(t)
		node := newFake(small(300)...)
		node.onPage = func(_ context.Context, n int, _ *Page) error {
			if 3 <= n && n <= 6 {
				return fault.Newf(fault.Busy, "BUSY Redis is busy running a script")
			}
			return nil
		}
		s := New(node, opts)
		defer s.closeSession()
		start := time.Now()
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != (1+2+4+8)*time.Second {
			t.Errorf("waited %v", waited)
		}
		st := s.State().Status
		if st.KeyErrors[fault.PageBusy] != 4 || !st.Up || node.opens != 1 {
			t.Errorf("%d waits, up %v, %d connections", st.KeyErrors[fault.PageBusy], st.Up, node.opens)
		}
		if got := s.State().Snapshot.DBs[0].Keys(); got != 300 {
			t.Errorf("%v keys", got)
		}
		if n := strings.Count(logs.String(), "\n"); n != 2 { // held up, works again
			t.Errorf("%d lines:\n%s", n, logs)
		}
	})
}

func TestBusyForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(small(300)...)
		node.onPage = func(context.Context, int, *Page) error { return fault.Newf(fault.Busy, "BUSY") }
		s := New(node, opts)
		defer s.closeSession()
		if err := s.RunCycle(t.Context()); fault.ReasonOf(err) != fault.Busy {
			t.Errorf("err = %v", err)
		}
		if s.State().Status.Aborts[fault.Busy] != 1 {
			t.Error("not counted")
		}
	})
}

// TestDeniedKeys: an ACL that closes keys to us must not be hammered, and what
// is left of the keyspace is not shown as if it were all.
func TestDeniedKeys(t *testing.T) {
	for denied, want := range map[int]fault.Reason{maxDeniedKeys: 255, maxDeniedKeys + 1: fault.Permission} {
		synctest.Test(t, func(t *testing.T) {
			opts, _ := testOptions(t)
			node := newFake(small(1000)...)
			left := denied
			node.onPage = func(_ context.Context, _ int, p *Page) error {
				for i := range p.Problems {
					if left > 0 {
						p.Problems[i], p.Keys[i].Known, left = fault.KeyPermission, 0, left-1
					}
				}
				return nil
			}
			s := New(node, opts)
			defer s.closeSession()
			err := s.RunCycle(t.Context())
			if want == fault.Permission {
				if fault.ReasonOf(err) != want || node.pages > 3 {
					t.Errorf("%d denied: err = %v after %d pages", denied, err, node.pages)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := s.State().Status.KeyErrors[fault.KeyPermission]; n != uint64(denied) {
				t.Errorf("%d counted of %d", n, denied)
			}
		})
	}
}
