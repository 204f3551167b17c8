package scanner

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// TestCalledSince: restarts and CONFIG RESETSTAT neither hide a call nor make
// one up.
func TestCalledSince(t *testing.T) {
	at := func(run string, infos, own, keys int64) *counted {
		return &counted{runID: run, infos: infos, own: own, calls: map[string]snapshot.Usage{"keys": {Calls: keys}}}
	}
	for _, tc := range []struct {
		about       string
		before, now *counted
		called      int64 // -1 = not known
		reset       bool
	}{
		{"not called", at("a", 10, 4, 7), at("a", 14, 8, 7), 0, false},
		{"called", at("a", 10, 4, 7), at("a", 14, 8, 9), 2, false},
		{"others ask for INFO, too", at("a", 10, 4, 7), at("a", 99, 8, 7), 0, false},
		{"restarted", at("a", 10, 4, 7), at("b", 14, 8, 7), 7, true},
		{"statistics reset, called since", at("a", 10, 4, 7), at("a", 3, 8, 1), 1, true},
		{"statistics reset, INFO called as often since", at("a", 4, 4, 1), at("a", 4, 8, 1), 1, true},
		{"statistics reset, others asked for INFO since", at("a", 10, 4, 7), at("a", 99, 8, 6), 6, true},
		{"no statistics before", at("a", 0, 4, 0), at("a", 14, 8, 7), -1, false},
		{"no statistics now", at("a", 10, 4, 7), at("a", 0, 8, 0), -1, false},
	} {
		called, reset := tc.now.since(tc.before)
		n, known := called["keys"]
		if !known {
			n = -1
		}
		if n != tc.called || reset != tc.reset {
			t.Errorf("%s: %d calls, reset %v; want %d, %v", tc.about, n, reset, tc.called, tc.reset)
		}
	}
}

// TestServerRules: findings come with a complete cycle, from a primary alone,
// and the settings only by consent.
func TestServerRules(t *testing.T) {
	fake := newFake(small(10)...)
	fake.known = map[string]bool{"keys": true}
	fake.config = &policy.ServerConfig{Timeout: 0, ReplicaLimit: 1}
	fake.info.Calls = map[string]snapshot.Usage{"keys": {Calls: 5}}
	fake.info.MaxBytes, fake.info.UsedBytes, fake.info.EvictionPolicy = 100, 95, "noeviction"
	fake.onInfo = func(n int, info *Info) error {
		info.Usage[keyspace.CmdInfo].Calls = int64(n)
		return nil
	}
	opts, _ := testOptions(t)
	s := New(fake, opts)
	cycle := func(want map[string]policy.Finding) {
		t.Helper()
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		state := s.State()
		for i, r := range opts.Policy.Rules() {
			if got := state.Snapshot.Server.Findings[i]; got != want[r.ID] {
				t.Errorf("%s: %v, want %v", r.ID, got, want[r.ID])
			}
			if r.AboutServer() && state.Status.Evaluated[i] != (want[r.ID] != policy.NotJudged) {
				t.Errorf("%s: evaluated %v", r.ID, state.Status.Evaluated[i])
			}
		}
	}
	want := map[string]policy.Finding{
		"cmd_forbidden_enabled": policy.Violated, "maxmemory_policy": policy.Violated,
		"multi_db": policy.Kept, "mixed_business": policy.Kept,
	}
	cycle(want)
	if got := s.State().Snapshot.Server.Calls["keys"].Calls; got != 5 {
		t.Errorf("%d calls of KEYS", got)
	}

	fake.info.Calls = map[string]snapshot.Usage{"keys": {Calls: 6}}
	want["cmd_forbidden_used"], want["cmd_multi_key_used"] = policy.Violated, policy.Kept
	cycle(want)
	want["cmd_forbidden_used"] = policy.Kept
	cycle(want)

	s.opts.ConfigProbe = true
	want["limits_unset"] = policy.Violated
	cycle(want)
	if n := s.State().Status.Commands[keyspace.CmdConfigGet]; n != 1 {
		t.Errorf("CONFIG GET was sent %d times", n)
	}

	asked := s.State().Status.Commands[keyspace.CmdCommandInfo]
	fake.info.Role = "" // INFO is denied
	cycle(nil)
	fake.info.Role = "replica"
	cycle(nil)
	if n := s.State().Status.Commands[keyspace.CmdCommandInfo]; n != asked {
		t.Errorf("COMMAND INFO was sent %d times to no primary", n-asked)
	}
	if calls := s.State().Snapshot.Server.Calls; calls != nil {
		t.Errorf("calls of a replica: %v", calls)
	}
	fake.info.Role = "primary"
	delete(want, "cmd_forbidden_used")
	delete(want, "cmd_multi_key_used")
	cycle(want)
}

// TestResetShowsInOurINFOs: a server that counts fewer INFOs than it answered us
// has begun to count anew, even where a command was called as often since.
func TestResetShowsInOurINFOs(t *testing.T) {
	fake := newFake(small(10)...)
	fake.info.Calls = map[string]snapshot.Usage{"keys": {Calls: 5}}
	fake.onInfo = func(_ int, info *Info) error {
		info.Usage[keyspace.CmdInfo].Calls = 100
		return nil
	}
	opts, _ := testOptions(t)
	s := New(fake, opts)
	defer s.closeSession()
	row, err := policy.Find(opts.Policy.Rules(), "cmd_forbidden_used")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []policy.Finding{policy.NotJudged, policy.Violated} {
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.State().Snapshot.Server.Findings[row]; got != want {
			t.Errorf("cycle %d: %v, want %v", i, got, want)
		}
	}
}

// TestUsageIsOfOneSession: what another connection sent is no part of a
// comparison.
func TestUsageIsOfOneSession(t *testing.T) {
	opts, _ := testOptions(t)
	s := New(newFake(small(10)...), opts)
	defer s.closeSession()
	if err := s.RunCycle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.usage == nil {
		t.Fatal("a cycle leaves nothing to compare with")
	}
	if err := s.open(t.Context()); err != nil || s.usage != nil || s.runID != "" {
		t.Errorf("%v, %+v, %q", err, s.usage, s.runID)
	}
}

// TestServerOfReplica: where a replica is scanned, its primary is asked, and its
// counters are shown; that it cannot be asked costs these alone.
func TestServerOfReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.ConfigProbe = true
		node, primary := named("replica:1", nil, small(10)...), newFake()
		node.info.Role, node.shard.Role, node.primary = "replica", "replica", primary
		primary.known = map[string]bool{"keys": true}
		primary.config = &policy.ServerConfig{Timeout: 0}
		primary.info.Calls = map[string]snapshot.Usage{"keys": {Calls: 7}}
		s := New(node, opts)
		defer s.closeSession()
		cycle := func() *snapshot.Snapshot {
			t.Helper()
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
			return s.State().Snapshot
		}
		evaluated := func(id string) bool {
			return s.State().Status.Evaluated[slices.IndexFunc(opts.Policy.Rules(), func(r policy.Rule) bool { return r.ID == id })]
		}
		snap := cycle()
		if snap.Server.Calls["keys"].Calls != 7 || !evaluated("cmd_forbidden_enabled") || !evaluated("limits_unset") {
			t.Errorf("calls %v, evaluated %v", snap.Server.Calls, s.State().Status.Evaluated)
		}
		if sent := s.State().Status.Commands; sent[keyspace.CmdCommandInfo] != 1 || sent[keyspace.CmdConfigGet] != 1 {
			t.Errorf("sent %v", sent)
		}
		if primary.opens != 2 || primary.open != 0 {
			t.Errorf("%d connections, %d are left", primary.opens, primary.open)
		}
		primary.onOpen = func(context.Context, int) error { return fault.Newf(fault.Down, "refused") }
		if snap := cycle(); snap.Server.Calls != nil || evaluated("cmd_forbidden_enabled") || len(snap.DBs) != 1 {
			t.Errorf("calls %v", snap.Server.Calls)
		}
	})
}
