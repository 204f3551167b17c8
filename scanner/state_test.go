package scanner

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/state"
)

// TestRestart: with a state file nothing old is new after a restart, what was
// listed still is, counters go on, and what became big meanwhile is news.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.StateFile = filepath.Join(t.TempDir(), "state")
		node := newFake(append(small(10), stringKey(0, "old:1", 20_000))...)
		cycle := func(s *Scanner) *bigkeys.View {
			t.Helper()
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
			return s.State().BigKeys
		}
		isNew := func(view *bigkeys.View) uint64 { return view.New[keyspace.String][policy.Warning] }

		first := New(node, opts)
		defer first.closeSession()
		cycle(first)
		node.dbs[0] = append(node.dbs[0], []keyspace.Key{stringKey(0, "new:1", 20_000)})
		if view := cycle(first); isNew(view) != 1 || len(view.Listed) != 1 {
			t.Fatalf("%d new, listed %+v", isNew(view), view.Listed)
		}

		saved, err := state.Load(opts.StateFile, "fake")
		if err != nil {
			t.Fatal(err)
		}
		opts.Remembered = saved
		second := New(node, opts)
		defer second.closeSession()
		if view := second.State().BigKeys; isNew(view) != 1 || len(view.Listed) != 1 || view.Listed[0].Label != "new:1" || view.Tracked != 2 {
			t.Errorf("before its first cycle: %d new, %d tracked, listed %+v", isNew(view), view.Tracked, view.Listed)
		}
		if st := second.State(); st.Snapshot == nil || st.Snapshot.DBs[0].Named != 12 || !st.Status.CycleCompleted.Equal(first.State().Status.CycleCompleted) {
			t.Errorf("what the last run found does not show: %+v", st.Snapshot)
		}
		if view := cycle(second); isNew(view) != 1 || len(view.Listed) != 1 {
			t.Errorf("old keys are new: %d, listed %+v", isNew(view), view.Listed)
		}
		node.dbs[0] = append(node.dbs[0], []keyspace.Key{stringKey(0, "new:2", 20_000)})
		third := New(node, opts)
		defer third.closeSession()
		if view := cycle(third); isNew(view) != 2 {
			t.Errorf("what became big while nobody watched is no news: %d", isNew(view))
		}
	})
}

// TestStateCannotBeSaved: a full disk or a directory that may not be written
// costs a metric and a log line.
func TestStateCannotBeSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, logs := testOptions(t)
		opts.StateFile = filepath.Join(t.TempDir(), "no", "such", "directory")
		s := New(newFake(small(10)...), opts)
		defer s.closeSession()
		for range 3 {
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.State().Status.StateErrors; n != 3 {
			t.Errorf("%d errors counted", n)
		}
		if n := strings.Count(logs.String(), "could not be written"); n != 1 {
			t.Errorf("%d lines:\n%s", n, logs)
		}
	})
}

// TestTouchesSurviveARestart: a server that has no NO-TOUCH takes our own length
// commands for use. What was accessed before them is remembered over a restart.
func TestTouchesSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var before touches
		key := keyspace.Key{Hash: 7, Known: keyspace.FactIdle | keyspace.FactTTL, TTL: keyspace.NoTTL, Idle: 40 * 24 * time.Hour}
		before.look(&key, 3, time.Now())
		var after touches
		after.restore(before.remember(), 3)
		time.Sleep(time.Hour)
		after.begin(4, 1)
		key.Idle = time.Hour // since we looked
		if after.look(&key, 4, time.Now()); key.Idle < 40*24*time.Hour || after.full {
			t.Errorf("idle for %v", key.Idle)
		}
		time.Sleep(time.Hour)
		key.Idle = time.Minute // somebody used it
		if after.look(&key, 5, time.Now()); key.Idle != time.Minute {
			t.Errorf("used a minute ago, and idle for %v", key.Idle)
		}
	})
}
