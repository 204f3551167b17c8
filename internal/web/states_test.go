package web

import (
	"errors"
	"strings"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// now is when the reports of the tests are made.
var now = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// longName is as long as a label gets.
var longName = "session:" + strings.Repeat("eyJhbGciOiJIUzI1NiJ9", 10)[:keyspace.MaxLabelBytes-len("session:")]

// fake is a Source of states that do not change.
type fake []snapshot.NodeState

func (f fake) States() []snapshot.NodeState { return f }

// shop is a node in the middle of its life: it was scanned and is being scanned.
func shop() snapshot.NodeState {
	rules := policy.Rules()
	s := &snapshot.Snapshot{
		Started:   now.Add(-19 * time.Minute),
		Completed: now.Add(-4*time.Minute - 12*time.Second),
		Coverage:  0.9991,
		Rules:     make([]snapshot.Rule, len(rules)),
		Evaluated: make([]bool, len(rules)),
		Examples:  make([][]snapshot.Example, len(rules)),
		Server:    snapshot.Server{Findings: make([]policy.Finding, len(rules))},
		TopBytes: []snapshot.Top{
			{Label: "shop:catalogue:full", Type: keyspace.Hash, Bytes: 412 << 20, Length: 2_345_678},
			{Label: "shop:basket:4711", Type: keyspace.String, Bytes: 6 << 20, Length: 5_300_000, Expires: now.Add(26 * time.Hour)},
			{Label: longName, Type: keyspace.String, Bytes: 3 << 20, Length: 3_000_000, Expires: now.Add(40 * time.Minute)},
			{Label: "<script>alert(1)</script>", Type: keyspace.List, Bytes: 1 << 20, Length: -1, ID: bigkeys.ID{DB: 3}},
			{Label: `queue:mail\x0a`, Type: keyspace.Stream, Bytes: 900 << 10, Length: 84_000},
		},
		TopElements: []snapshot.Top{
			{Label: "shop:catalogue:full", Type: keyspace.Hash, Bytes: 412 << 20, Length: 2_345_678},
			{Label: `queue:mail\x0a`, Type: keyspace.Stream, Bytes: 900 << 10, Length: 84_000},
		},
	}
	violations, levels := make([]snapshot.Estimate, len(rules)), make([]policy.Level, len(rules))
	for i, rule := range rules {
		words, _ := rule.Words(rule.Defaults())
		s.Rules[i] = snapshot.Rule{Level: rule.Level, Violated: words}
		s.Evaluated[i], levels[i] = rule.ID != "name_unknown_prefix", rule.Level
		switch rule.ID {
		case "maxmemory_policy", "cmd_forbidden_used":
			s.Server.Findings[i] = policy.Violated
		case "multi_db", "cmd_forbidden_enabled":
			s.Server.Findings[i] = policy.Kept
		}
		switch rule.ID {
		case "big_string":
			violations[i].Value = 17
			s.Examples[i] = []snapshot.Example{
				{Label: "shop:basket:4711", Type: keyspace.String, Bytes: 6 << 20, Length: 5_300_000},
				{Label: longName, Type: keyspace.String, Bytes: 3 << 20, Length: 3_000_000},
			}
		case "many_elements":
			violations[i].Value = 3
			s.Examples[i] = []snapshot.Example{{Label: "shop:catalogue:full", Type: keyspace.Hash, Bytes: 412 << 20, Length: 2_345_678}}
		case "ttl_missing":
			violations[i].Value = 1_204_331
			s.Examples[i] = []snapshot.Example{
				{Label: "shop:catalogue:full", Type: keyspace.Hash, Bytes: 412 << 20, Length: 2_345_678},
				{Label: "<script>alert(1)</script>", ID: bigkeys.ID{DB: 3}, Type: keyspace.List, Bytes: 1 << 20, Length: -1},
				{Label: keyspace.EmptyLabel, Type: keyspace.Unknown, Bytes: -1, Length: -1},
			}
		case "name_special_char":
			violations[i].Value = 42
			s.Examples[i] = []snapshot.Example{{Label: `queue:mail\x0a`, Type: keyspace.Stream, Bytes: 900 << 10, Length: 84_000}}
		}
	}
	db := snapshot.DB{DB: 0, Named: 4_812_004, NamingBroken: 2_912, Namespaces: []snapshot.Namespace{{Name: policy.DefaultNamespace, Levels: levels, Violations: violations}}}
	addType := func(db *snapshot.DB, t keyspace.Type, keys, bytes float64, warning, critical uint64) {
		db.Types[t] = snapshot.TypeStats{
			Keys:  snapshot.Estimate{Value: keys},
			Bytes: &snapshot.Estimate{Value: bytes},
			Big:   &[policy.NumSeverities]snapshot.BigStats{policy.Warning: {Keys: warning}, policy.Critical: {Keys: critical}},
		}
	}
	addType(&db, keyspace.String, 4_800_000, 1.9e9, 15, 2)
	addType(&db, keyspace.Hash, 12_000, 8e8, 2, 1)
	addType(&db, keyspace.Stream, 4, 1.1e6, 1, 0)
	other := snapshot.DB{DB: 3, Named: 1}
	addType(&other, keyspace.List, 1, 1<<20, 0, 0)
	s.DBs = []snapshot.DB{db, other}

	status := snapshot.Status{
		Node: keyspace.NodeID{Target: "shop", Node: "10.0.0.7:6379"},
		Up:   true,
		Info: snapshot.ServerInfo{
			Address: "10.0.0.8:6379", Role: "replica", Server: "redis", Version: "7.4.2",
			DBs: []snapshot.DBInfo{{DB: 0, Keys: 4_812_004, Expires: 3_607_673}, {DB: 3, Keys: 1}},
		},
		Keys: 19_248_016, Scanning: true, Progress: 0.37, CycleStarted: now.Add(-time.Minute),
		CycleCompleted: s.Completed, CycleDuration: 14*time.Minute + 48*time.Second,
		Coverage: 0.9991, Duty: 0.0312, SampleRatio: 1, DetailRatio: 1, Evaluated: s.Evaluated,
	}
	status.Capabilities[keyspace.CmdNoTouch] = snapshot.Denied
	return snapshot.NodeState{
		Status: status, Snapshot: s,
		BigKeys: &bigkeys.View{Listed: []bigkeys.Listed{
			{Label: "shop:basket:4711", Type: keyspace.String, Severity: policy.Critical, Since: now.Add(-3 * time.Hour), Bytes: 6 << 20, Elements: -1},
			{Label: "shop:orders:2026", Type: keyspace.ZSet, Severity: policy.Warning, Since: now.Add(-50 * time.Hour), Bytes: 700 << 10, Elements: 5_210},
		}},
	}
}

// idle is the shop between two cycles.
func idle() snapshot.NodeState {
	n := shop()
	n.Status.Scanning, n.Status.Progress = false, 1
	return n
}

// fresh is the shop right after its first cycle, when many_elements has one
// offender.
func fresh() snapshot.NodeState {
	n := idle()
	n.Status.Duty = 0
	for i, rule := range policy.Rules() {
		if rule.ID == "many_elements" {
			n.Snapshot.DBs[0].Namespaces[0].Violations[i].Value = 1
		}
	}
	return n
}

// down is the shop after its server was lost.
func down() snapshot.NodeState {
	n := idle()
	n.Status.Up = false
	n.Status.LastFault = fault.New(fault.Down, errors.New("dial tcp 10.0.0.8:6379: connect: connection refused"))
	n.Status.LastFaultAt = now.Add(-30 * time.Second)
	return n
}

// unscanned is a node that was not contacted yet.
func unscanned() snapshot.NodeState {
	return snapshot.NodeState{
		Status: snapshot.Status{
			Node: keyspace.NodeID{Target: "shop", Node: "10.0.0.7:6379"},
			Info: snapshot.ServerInfo{Address: "10.0.0.7:6379"},
		},
		BigKeys: &bigkeys.View{},
	}
}

// refused is a node that never let us in.
func refused() snapshot.NodeState {
	n := unscanned()
	n.Status.LastFault = fault.New(fault.Auth, errors.New("WRONGPASS invalid username-password pair or user is disabled."))
	return n
}

// firstCycle is a node whose first cycle is under way.
func firstCycle() snapshot.NodeState {
	n := shop()
	n.Snapshot, n.BigKeys = nil, &bigkeys.View{}
	n.Status.CycleCompleted, n.Status.CycleDuration, n.Status.Coverage = time.Time{}, 0, 0
	return n
}

// empty is a node without keys.
func empty() snapshot.NodeState {
	n := idle()
	n.Status.Info.DBs = nil
	n.Status.Info.Role, n.Status.Info.Address = "primary", n.Status.Node.Node
	s := *n.Snapshot
	s.DBs, s.TopBytes, s.TopElements, s.Examples = nil, nil, nil, make([][]snapshot.Example, len(s.Evaluated))
	n.Snapshot, n.BigKeys = &s, &bigkeys.View{}
	return n
}

// suspect is a node whose last cycle is doubtful.
func suspect() snapshot.NodeState {
	n := idle()
	s := *n.Snapshot
	s.Suspect = []string{"FLUSHALL, FLUSHDB or SWAPDB was called during the cycle"}
	n.Snapshot = &s
	return n
}

// infoDenied is a node that does not let us call INFO.
func infoDenied() snapshot.NodeState {
	n := idle()
	n.Status.Info = snapshot.ServerInfo{
		Address: "10.0.0.7:6379",
		DBs:     []snapshot.DBInfo{{DB: 0, Keys: 4_812_004, Expires: -1}, {DB: 3, Keys: 1, Expires: -1}},
	}
	n.Status.Capabilities[keyspace.CmdInfo] = snapshot.Denied
	return n
}
