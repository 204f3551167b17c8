package scanner

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDuty: busy ÷ wall keeps to the budget over a whole cycle, and makes use of
// it, near and far from the server.
func TestDuty(t *testing.T) {
	for _, tc := range []struct {
		duty float64
		rtt  time.Duration
	}{
		{0.05, 0},
		{0.25, 0},
		{0.5, 0},
		{0.01, 10 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			opts, _ := testOptions(t)
			opts.MaxDuty = tc.duty
			node := newFake(small(100_000)...)
			node.pageTime, node.rtt = 500*time.Microsecond, tc.rtt
			s := New(node, opts)
			defer s.closeSession()
			start := time.Now()
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
			busy := time.Duration(1001) * node.pageTime
			got := float64(busy) / float64(time.Since(start)+s.pace.owed) // the last sleep is still owed
			if got > 1.001*tc.duty || got < 0.8*tc.duty {
				t.Errorf("duty %v at %v round trips, budget %v", got, tc.rtt, tc.duty)
			}
			if reported := s.State().Status.Duty; time.Since(start) > 2*dutyStretch && (reported > 1.02*tc.duty || reported < 0.8*tc.duty) {
				t.Errorf("reported duty %v at %v round trips, budget %v", reported, tc.rtt, tc.duty)
			}
		})
	}
}

// TestFloor: however slow the server, 500 keys a second are walked, be there
// candidates in each page or not.
func TestFloor(t *testing.T) {
	for _, candidates := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			opts, _ := testOptions(t)
			opts.MaxDuty = 0.01
			node := newFake()
			for i := range 100 {
				page := small(100)
				if candidates {
					page[7] = stringKey(0, fmt.Sprint("big:", i), 20_000)
				}
				node.dbs[0] = append(node.dbs[0], page)
			}
			node.pageTime, node.lenTime = 50*time.Millisecond, 50*time.Millisecond
			s := New(node, opts)
			defer s.closeSession()
			start := time.Now()
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if rate := 10_000 / time.Since(start).Seconds(); rate < 0.95*minKeysPerSecond || rate > 1.1*minKeysPerSecond {
				t.Errorf("candidates %v: %.0f keys/s", candidates, rate)
			}
		})
	}
}

// TestIdleTimePays: what contacts between two cycles owe is paid by the waiting.
func TestIdleTimePays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.MaxDuty, opts.Interval = 0.05, time.Hour
		node := newFake(small(1000)...)
		node.infoTime = 10 * time.Millisecond
		sup, stop := run(opts, node)
		defer stop()
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		if st := sup.States()[0].Status; st.Cycles[snapshot.Complete] != 2 || st.CycleDuration > 5*time.Second {
			t.Errorf("%d cycles, the last took %v", st.Cycles[snapshot.Complete], st.CycleDuration)
		}
	})
}

// TestRoundTripOfAConnection: a new connection may take another way.
func TestRoundTripOfAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(small(2000)...)
		s := New(node, opts)
		defer s.closeSession()
		for _, node.rtt = range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
			before := s.pace.busy
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if busy := s.pace.busy - before; busy > 50*time.Millisecond {
				t.Errorf("at %v round trips: busy %v", node.rtt, busy)
			}
		}
	})
}

// TestUpStaysFresh: `up` is never older than 15 s, in a slow scan, while a rate
// limit sleeps for minutes, and between cycles.
func TestUpStaysFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.MaxKeysPerSecond = 1 // 100 s for each page
		opts.Interval = time.Hour
		node := newFake(small(300)...)
		var last time.Time
		worst := time.Duration(0)
		node.onInfo = func(int, *Info) error {
			if !last.IsZero() {
				worst = max(worst, time.Since(last))
			}
			last = time.Now()
			return nil
		}
		sup, stop := run(opts, node)
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if sup.States()[0].Snapshot == nil {
			t.Error("no cycle completed")
		}
		stop()
		if worst > 15*time.Second || worst == 0 {
			t.Errorf("INFO was as old as %v", worst)
		}
		if node.open != 0 {
			t.Errorf("%d connections left", node.open)
		}
	})
}

// TestBackoff: tries come 1, 2, 4, 8 and then every 15 s (±20 %), an
// authentication failure each minute; the log has one line a minute; and the
// scan is back within one backoff after the server is.
func TestBackoff(t *testing.T) {
	for _, tc := range []struct {
		reason     fault.Reason
		least, max int // tries within 10 minutes
		up         bool
	}{
		{fault.Down, 36, 55, false},
		{fault.NotReady, 36, 55, true},
		{fault.Protocol, 33, 42, false},
		{fault.Auth, 8, 10, false}, // accounts get locked
	} {
		synctest.Test(t, func(t *testing.T) {
			opts, logs := testOptions(t)
			node := newFake(small(10)...)
			var mended atomic.Bool
			node.onOpen = func(context.Context, int) error {
				if !mended.Load() {
					return fault.Newf(tc.reason, "no luck")
				}
				return nil
			}
			sup, stop := run(opts, node)
			defer stop()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			st := sup.States()[0].Status
			if tries := int(st.Aborts[tc.reason]); tries < tc.least || tries > tc.max || st.Up != tc.up {
				t.Errorf("%v: %d tries in 10 minutes, up %v", tc.reason, tries, st.Up)
			}
			if n := strings.Count(logs.String(), "\n"); n < 5 || n > 10 {
				t.Errorf("%v: %d lines in 10 minutes:\n%s", tc.reason, n, logs)
			}
			if !strings.Contains(logs.String(), tc.reason.Advice()[:20]) {
				t.Errorf("%v: no advice in\n%s", tc.reason, logs)
			}
			mended.Store(true)
			wait := max(maxBackoff, tc.reason.Wait()) * 12 / 10
			time.Sleep(wait)
			synctest.Wait()
			if st := sup.States()[0].Status; !st.Up || st.Cycles[snapshot.Complete] == 0 {
				t.Errorf("%v: not back after %v: up %v, cycles %v", tc.reason, wait, st.Up, st.Cycles)
			}
			if !strings.Contains(logs.String(), "works again") {
				t.Errorf("%v: recovery is not logged:\n%s", tc.reason, logs)
			}
		})
	}
}

// TestLostWhileIdle: a connection that dies between two cycles is noticed at the
// next contact, and the next cycle does not wait for the interval.
func TestLostWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.Interval = time.Hour
		node := newFake(small(10)...)
		var dead atomic.Bool
		node.onInfo = func(int, *Info) error {
			if dead.Load() {
				return fault.Newf(fault.ConnLost, "EOF")
			}
			return nil
		}
		sup, stop := run(opts, node)
		defer stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if sup.States()[0].Status.Cycles[snapshot.Complete] != 1 {
			t.Fatal("no first cycle")
		}
		dead.Store(true)
		time.Sleep(contactEvery + time.Second)
		synctest.Wait()
		if st := sup.States()[0].Status; st.Up {
			t.Error("still up")
		}
		dead.Store(false)
		time.Sleep(maxBackoff * 2)
		synctest.Wait()
		if st := sup.States()[0].Status; !st.Up || st.Cycles[snapshot.Complete] != 2 {
			t.Errorf("up %v, cycles %v", st.Up, st.Cycles)
		}
	})
}

func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.Interval = time.Minute
		node := newFake(small(300)...)
		node.pageTime = 5 * time.Second // a cycle of 20 s
		sup, stop := run(opts, node)
		defer stop()
		time.Sleep(10*time.Minute - time.Second)
		synctest.Wait()
		if s := sup.States()[0].Status; s.Cycles[snapshot.Complete] != 10 || s.Interval != time.Minute {
			t.Errorf("%d cycles in 10 minutes, the interval shown is %v", s.Cycles[snapshot.Complete], s.Interval)
		}
	})
}

// TestShutdown: whatever a scanner is at, a cancelled context ends it, since the
// supervisor closes the node; nothing is logged or counted as trouble.
func TestShutdown(t *testing.T) {
	for about, arrange := range map[string]func(*fakeNode, *Options){
		"in a page that hangs": func(n *fakeNode, _ *Options) { n.onPage = func(context.Context, int, *Page) error { return n.hang() } },
		"in a dial that hangs": func(n *fakeNode, _ *Options) { n.onOpen = func(context.Context, int) error { return n.hang() } },
		"in a ping that hangs": func(n *fakeNode, _ *Options) { n.onPing = func(context.Context) error { return n.hang() } },
		"in a pace sleep":      func(_ *fakeNode, o *Options) { o.MaxKeysPerSecond = 0.001 },
		"between cycles":       func(_ *fakeNode, o *Options) { o.Interval = time.Hour },
		"in backoff": func(n *fakeNode, _ *Options) {
			n.onOpen = func(context.Context, int) error { return fault.Newf(fault.Auth, "no") }
		},
		"while a script blocks": func(n *fakeNode, _ *Options) {
			n.onPage = func(context.Context, int, *Page) error { return fault.Newf(fault.Busy, "BUSY") }
		},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, _ := testOptions(t)
				node := newFake(small(300)...)
				arrange(node, &opts)
				_, stop := run(opts, node)
				time.Sleep(30*time.Second + time.Millisecond)
				synctest.Wait()
				start := time.Now()
				stop()
				if took := time.Since(start); took > 0 {
					t.Errorf("took %v", took)
				}
				if node.open != 0 {
					t.Errorf("%d connections left", node.open)
				}
			})
		})
	}
}
