package collector

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/testtools"
)

var update = flag.Bool("update", false, "write golden files and generated docs anew")

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type states []snapshot.NodeState

func (s states) States() []snapshot.NodeState { return s }

func rules(t testing.TB) *policy.Policy {
	p, err := policy.New(policy.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// status is that of a node on which a little of everything happened.
func nodeStatus(t testing.TB, target string) snapshot.Status {
	p := rules(t)
	s := snapshot.Status{
		Node: keyspace.NodeID{Target: target, Node: target + ":6379"}, Up: true,
		Info: snapshot.ServerInfo{
			Address: "10.0.0.1:6379", Role: "primary", Server: "redis", Version: "7.0.15",
			DBs:       []snapshot.DBInfo{{DB: 0, Keys: 10, Expires: 4}, {DB: 3, Keys: 1, Expires: 1}},
			HasMemory: true, UsedBytes: 5000, MaxBytes: 9000, DatasetBytes: 3000,
		},
		Keys: 22, Busy: 1500 * time.Millisecond, Progress: 1,
		CycleStarted: at.Add(-time.Second), CycleCompleted: at, CycleDuration: time.Second,
		Coverage: 1, Duty: 0.04, SampleRatio: 1, DetailRatio: 1, Interval: time.Minute,
		Evaluated: p.Evaluated(everything(), policy.On),
	}
	s.Commands[keyspace.CmdScan] = 4
	s.Commands[keyspace.CmdMemoryUsage] = 22
	s.Cycles[snapshot.Complete] = 2
	s.Cycles[snapshot.Aborted] = 1
	s.Aborts[fault.Timeout] = 1
	s.KeyErrors[fault.Gone] = 3
	s.Capabilities[keyspace.CmdScan] = snapshot.Allowed
	s.Capabilities[keyspace.CmdNoTouch] = snapshot.Denied
	return s
}

func everything() keyspace.Available {
	var a keyspace.Available
	for t := range a {
		a[t] = keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL | keyspace.FactLength | keyspace.FactEncoding | keyspace.FactIdle | keyspace.FactFrequency
	}
	return a
}

// node is a state with findings made by the real builder and tracker.
func node(t testing.TB, target string) snapshot.NodeState {
	tracker := bigkeys.New()
	tracker.Commit(tracker.Begin(at, 0, 1), at.Add(-time.Hour))
	finds := tracker.Begin(at, 0, 1)
	b := snapshot.NewBuilder(rules(t), finds, 3, nil, at.Add(-time.Second))
	encodings := map[keyspace.Type]keyspace.Encoding{keyspace.String: keyspace.EncodingRaw, keyspace.List: keyspace.EncodingQuicklist, keyspace.Hash: keyspace.EncodingHashtable}
	add := func(db int, name string, typ keyspace.Type, size, length int64, ttl time.Duration) {
		k := keyspace.Key{DB: db, Name: name, NameBytes: int64(len(name)), Hash: keyspace.HashName(name), Type: typ, Bytes: size, Length: length, TTL: ttl}
		k.Known = keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL
		if length > 0 {
			k.Known |= keyspace.FactLength
		}
		if detailed := length > 0 || name == "user:2"; detailed {
			k.Known |= keyspace.FactEncoding | keyspace.FactIdle | keyspace.FactFrequency
			k.Encoding, k.Idle, k.Frequency = encodings[typ], 45*24*time.Hour, uint8(200+length%50)
		}
		b.Add(&k, snapshot.Measured|snapshot.Detailed|snapshot.Fixed, at)
	}
	add(0, "user:1", keyspace.String, 100, 0, time.Hour)
	add(0, "user:2", keyspace.String, 100, 0, keyspace.NoTTL)
	add(0, "", keyspace.String, 90, 0, time.Minute)
	add(0, "a:\xff\n\"", keyspace.String, 20_000, 19_000, 40*24*time.Hour)
	add(0, "feed:all", keyspace.List, 700_000, 12_000, keyspace.NoTTL)
	add(3, "h:1", keyspace.Hash, 1000, 0, time.Hour)
	tracker.Commit(finds, at)
	n := snapshot.NodeState{
		Status: nodeStatus(t, target),
		Snapshot: b.Finish(snapshot.Outcome{
			Completed: at, Coverage: 1, Available: everything(),
			Primary: &policy.ServerFacts{Config: settings(), Called: map[string]int64{"keys": 1}, DBs: 2, MaxBytes: 9000, UsedBytes: 5000, EvictionPolicy: "noeviction"},
			Calls:   map[string]snapshot.Usage{"keys": {Calls: 7, Time: time.Second}, "del": {Calls: 1000, Time: 2500 * time.Millisecond}},
		}),
		BigKeys: tracker.View(),
		Watched: []snapshot.WatchedKey{
			{DB: 0, Label: "queue:mail", Namespace: "queues", Type: keyspace.List, Bytes: 900, Elements: 12},
			{DB: 0, Label: "user:1", Namespace: "default", Type: keyspace.String, Bytes: 100, Elements: -1},
		},
	}
	n.Status.Evaluated = n.Snapshot.Evaluated
	return n
}

// settings are those of a server that frees what expires in the background.
func settings() *policy.ServerConfig {
	return &policy.ServerConfig{LazyFree: map[string]bool{policy.ConfigLazyExpire: true}, Timeout: -1, ReplicaLimit: -1}
}

func configuration(t testing.TB) func() Configuration {
	c := Configuration{Loaded: at, Namespaces: rules(t).Namespaces()}
	return func() Configuration { return c }
}

func gatherer(t testing.TB, source Source, maxSeries int) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(New(Options{Source: source, MaxSeries: maxSeries, Configuration: configuration(t)})); err != nil {
		t.Fatal(err)
	}
	return registry
}

// TestGolden compares the whole exposition.
func TestGolden(t *testing.T) {
	fresh := snapshot.NodeState{Status: nodeStatus(t, "fresh"), BigKeys: &bigkeys.View{}}
	fresh.Status = snapshot.Status{
		Node: fresh.Status.Node, Info: snapshot.ServerInfo{Address: "fresh:6379"}, SampleRatio: 1, DetailRatio: 1,
		Evaluated: make([]bool, len(policy.Rules())),
	}
	for name, source := range map[string]states{
		"scanned": {node(t, "orders")},
		"fresh":   {fresh}, // nothing was reached yet
		"none":    {},
	} {
		t.Run(name, func(t *testing.T) {
			registry := gatherer(t, source, 20_000)
			got := exposition(t, registry)
			path := filepath.Join("testdata", name+".prom")
			golden(t, path, got)
			if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
				t.Errorf("lint: %v, %v", problems, err)
			}
			check := exec.Command(testtools.Program(t, "promtool"), "check", "metrics")
			check.Stdin = bytes.NewReader(got)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("promtool check metrics: %v\n%s", err, out)
			}
		})
	}
}

func exposition(t *testing.T, registry *prometheus.Registry) []byte {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	encoder := expfmt.NewEncoder(&buf, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

// golden compares with a file, or writes it under -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	gotLines, wantLines := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		if i >= len(gotLines) || i >= len(wantLines) || gotLines[i] != wantLines[i] {
			t.Fatalf("%s differs from line %d on (make generate writes it anew):\n got %s\nwant %s", path, i+1, line(gotLines, i), line(wantLines, i))
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}

// TestNeverAHealthyZero: what was not judged has no series.
func TestNeverAHealthyZero(t *testing.T) {
	n := node(t, "x")
	b := snapshot.NewBuilder(rules(t), bigkeys.New().Begin(at, 0, 1), 3, nil, at)
	k := keyspace.Key{Name: "a:1", NameBytes: 3, Known: keyspace.FactType, Type: keyspace.Hash}
	b.Add(&k, snapshot.Measured|snapshot.Detailed, at)
	var denied keyspace.Available
	for i := range denied {
		denied[i] = keyspace.FactType
	}
	n.Snapshot = b.Finish(snapshot.Outcome{Completed: at, Coverage: 1, Available: denied})
	n.Status.Evaluated = n.Snapshot.Evaluated
	text := string(exposition(t, gatherer(t, states{n}, 20_000)))
	for _, absent := range []string{
		"memory_bytes{db", "memory_bytes_stderr", "key_memory_bytes", "key_elements", "big_keys{", "big_keys_memory", "ttl_seconds",
		`rule="big_string",target="x"} 1`, `rule_violations{db="db0",level="mandatory",namespace="default",node="x:6379",rule="big_string"`, `rule="ttl_missing"} `,
	} {
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, namespace+absent) || strings.HasPrefix(absent, "rule") && strings.Contains(l, absent) {
				t.Errorf("nothing of it was judged: %s", l)
			}
		}
	}
	if !strings.Contains(text, `redis_keyhealth_rule_evaluated{node="x:6379",rule="big_string",target="x"} 0`) {
		t.Error("rule_evaluated does not say so")
	}
}

// worst is a node with as much as default settings let it have: every type,
// full top lists that all keys of the last one stay in, and full event lists.
func worst(t testing.TB, target string, dbs int) snapshot.NodeState {
	const topKeys = 20
	tracker := bigkeys.New()
	tracker.Commit(tracker.Begin(at, 0, 1), at)
	var last *snapshot.Snapshot
	for cycle := range 2 {
		finds := tracker.Begin(at, 0, 1)
		b := snapshot.NewBuilder(rules(t), finds, topKeys, last, at)
		for db := range dbs {
			for _, typ := range keyspace.Types() {
				for i := range 2 * topKeys {
					name := fmt.Sprint("k:", typ, i, cycle*(i%2))
					k := keyspace.Key{
						DB: db, Name: name, NameBytes: int64(len(name)), Hash: keyspace.HashName(name),
						Known: everything()[typ],
						Type:  typ, Bytes: 200 << 20, Length: 20_000, TTL: time.Hour,
						Encoding: keyspace.Encoding(i % 3), Frequency: 255,
					}
					b.Add(&k, snapshot.Measured|snapshot.Detailed|snapshot.Fixed, at)
				}
			}
		}
		tracker.Commit(finds, at)
		last = b.Finish(snapshot.Outcome{Completed: at, Available: everything(), Primary: &policy.ServerFacts{Config: settings()}})
	}
	s := nodeStatus(t, target)
	for i := range s.Capabilities {
		s.Capabilities[i] = snapshot.Allowed
	}
	return snapshot.NodeState{Status: s, Snapshot: last, BigKeys: tracker.View()}
}

func seriesOf(t *testing.T, registry *prometheus.Registry) int {
	t.Helper()
	n := 0
	for l := range strings.Lines(string(exposition(t, registry))) {
		if !strings.HasPrefix(l, "#") {
			n++
		}
	}
	return n
}

func TestSeriesOfOneNode(t *testing.T) {
	n := seriesOf(t, gatherer(t, states{worst(t, "x", 1)}, 20_000))
	t.Logf("%d series", n)
	if n >= 1200 || n < 600 {
		t.Errorf("%d series in the worst case, the contract says below 1,200", n)
	}
}

// TestMaxSeries: detail goes first, totals never, and series_dropped counts.
func TestMaxSeries(t *testing.T) {
	source := states{worst(t, "x", 4), worst(t, "y", 4)}
	count := func(limit int) (byPrefix func(string) int, dropped float64) {
		text := string(exposition(t, gatherer(t, source, limit)))
		return func(prefix string) int { return strings.Count(text, "\n"+namespace+prefix) }, value(t, text, "series_dropped")
	}
	all, dropped := count(1 << 20)
	if dropped != 0 || all("top_key_memory_bytes{") == 0 || all("rule_violations{") == 0 {
		t.Fatalf("dropped %v of what fits", dropped)
	}
	some, dropped := count(seriesOf(t, gatherer(t, source, 1<<20)) - 1)
	if some("top_key_memory_bytes{") != 0 || some("big_key_memory_bytes{") != 0 || some("rule_violations{") != all("rule_violations{") {
		t.Errorf("detail is still there, or more is gone; dropped %v", dropped)
	}
	few, more := count(1000)
	if few("rule_violations{") != 0 || few("key_memory_bytes_bucket") != 0 || more <= dropped {
		t.Errorf("breakdowns are still there, dropped %v", more)
	}
	for _, total := range []string{"keys{", "memory_bytes{", "big_keys{", "up{", "scan_cycles_total{", "new_big_keys_total{"} {
		if few(total) == 0 || few(total) != all(total) {
			t.Errorf("%s: %d of %d left", total, few(total), all(total))
		}
	}
}

// TestManyDatabases: a server with thousands of databases stays within the limit,
// those with most keys are shown, and what is not is counted.
func TestManyDatabases(t *testing.T) {
	const dbs, limit = 3000, 20_000
	b := snapshot.NewBuilder(rules(t), bigkeys.New().Begin(at, 0, 1), 3, nil, at)
	for db := range dbs {
		for i := range 1 + db/2999 { // the last one has two
			name := fmt.Sprint("k:", i)
			k := keyspace.Key{DB: db, Name: name, NameBytes: int64(len(name)), Hash: keyspace.HashName(name), Known: keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL, Type: keyspace.String, Bytes: 100, TTL: time.Hour}
			b.Add(&k, snapshot.Measured|snapshot.Detailed, at)
		}
	}
	n := snapshot.NodeState{Status: nodeStatus(t, "x"), BigKeys: &bigkeys.View{}}
	n.Snapshot = b.Finish(snapshot.Outcome{Completed: at, Available: everything()})
	registry := gatherer(t, states{n}, limit)
	if got := seriesOf(t, registry); got > limit {
		t.Errorf("%d series", got)
	}
	text := string(exposition(t, registry))
	if !strings.Contains(text, `redis_keyhealth_keys{db="db2999",key_type="string"`) || value(t, text, "series_dropped") < dbs {
		t.Error("the largest database is not shown, or nothing is said of the others")
	}
}

func value(t *testing.T, text, name string) float64 {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+namespace+name+" ")
	if !ok {
		t.Fatalf("no %s", name)
	}
	var v float64
	if _, err := fmt.Sscan(rest, &v); err != nil {
		t.Fatal(errors.Join(err))
	}
	return v
}

// TestBadLabel: a value that the exposition would choke on costs itself only.
func TestBadLabel(t *testing.T) {
	n := node(t, "x")
	n.Status.Info.Version = "\xff"
	text := string(exposition(t, gatherer(t, states{n}, 20_000)))
	if strings.Contains(text, "node_info{") || value(t, text, "series_dropped") != 1 {
		t.Error("an invalid label was not dropped and counted")
	}
	if !strings.Contains(text, "redis_keyhealth_up{") {
		t.Error("the rest of the scrape is gone")
	}
}

func TestTwoNodesOfTwoTargets(t *testing.T) {
	text := string(exposition(t, gatherer(t, states{node(t, "a"), node(t, "b")}, 20_000)))
	for _, want := range []string{
		`redis_keyhealth_topology_nodes{role="primary",target="a"} 1`,
		`redis_keyhealth_topology_nodes{role="primary",target="b"} 1`,
		`redis_keyhealth_up{node="b:6379",target="b"} 1`,
		`redis_keyhealth_tracked_big_keys{target="b"} 2`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

func BenchmarkScrape(b *testing.B) {
	for _, nodes := range []int{1, 100} {
		b.Run(fmt.Sprint(nodes, " nodes"), func(b *testing.B) {
			var source states
			for i := range nodes {
				source = append(source, worst(b, fmt.Sprint("n", i), 1))
			}
			registry := prometheus.NewRegistry()
			registry.MustRegister(New(Options{Source: source, MaxSeries: 1 << 20, Configuration: configuration(b)}))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := registry.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestNamespaces: each namespace has its own level, none has series of what it is
// exempt from, and their owners are told.
func TestNamespaces(t *testing.T) {
	mandatory := policy.Mandatory
	p, err := policy.New(policy.Spec{Namespaces: []policy.NamespaceSpec{
		{Name: "strict", Match: []policy.Pattern{{Text: "s:*"}}, Owner: "team", Rules: []policy.RuleSpec{{ID: "ttl_missing", Level: &mandatory}}},
		{Name: "free", Match: []policy.Pattern{{Text: "f:*"}}, Rules: []policy.RuleSpec{{ID: "ttl_missing", Exempt: true, ApprovedBy: "x"}}},
		{Name: "empty", Match: []policy.Pattern{{Text: "e:*"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	tracker := bigkeys.New()
	builder := snapshot.NewBuilder(p, tracker.Begin(at, 0, 1), 5, nil, at)
	for _, name := range []string{"s:1", "f:1", "f:2", "o:1"} {
		builder.Add(&keyspace.Key{
			Name: name, NameBytes: 3, Hash: keyspace.HashName(name), Type: keyspace.String, Bytes: 100, TTL: keyspace.NoTTL,
			Known: keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL,
		}, snapshot.Measured|snapshot.Detailed, at)
	}
	var available keyspace.Available
	for i := range available {
		available[i] = keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL | keyspace.FactLength
	}
	n := node(t, "orders")
	n.Snapshot = builder.Finish(snapshot.Outcome{Completed: at, Coverage: 1, Available: available})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(New(Options{Source: states{n}, MaxSeries: 20_000, Configuration: func() Configuration {
		return Configuration{Loaded: at, Failed: true, Namespaces: p.Namespaces()}
	}}))
	text := string(exposition(t, registry))
	for _, want := range []string{
		`rule_violations{db="db0",level="mandatory",namespace="strict",node="orders:6379",rule="ttl_missing",target="orders"} 1`,
		`rule_violations{db="db0",level="recommended",namespace="default",node="orders:6379",rule="ttl_missing",target="orders"} 1`,
		`rule_violations{db="db0",level="recommended",namespace="free",node="orders:6379",rule="name_format",target="orders"} 0`,
		`top_key_memory_bytes{db="db0",key="f:1",key_type="string",namespace="free",node="orders:6379",target="orders"} 100`,
		`namespace_info{namespace="default",owner=""} 1`,
		`namespace_info{namespace="strict",owner="team"} 1`,
		`namespace_info{namespace="empty",owner=""} 1`,
		"config_last_reload_successful 0",
	} {
		if !strings.Contains(text, "\nredis_keyhealth_"+want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "rule_violations") && (strings.Contains(line, `namespace="empty"`) || strings.Contains(line, `namespace="free"`) && strings.Contains(line, `rule="ttl_missing"`)) {
			t.Errorf("too much: %s", line)
		}
	}
}

// TestReplicaHasNoCommandSeries: nobody asked the primary what it was called for,
// and a 0 would say that it was called for nothing.
func TestReplicaHasNoCommandSeries(t *testing.T) {
	n := node(t, "x")
	const family = "redis_keyhealth_forbidden_command_calls_total{"
	if text := string(exposition(t, gatherer(t, states{n}, 20_000))); !strings.Contains(text, family) {
		t.Error("a primary has none")
	}
	n.Snapshot.Server.Calls = nil
	text := string(exposition(t, gatherer(t, states{n}, 20_000)))
	for _, of := range []string{family, "_on_command_", "_multi_key_command_"} {
		if strings.Contains(text, of) {
			t.Errorf("there are series of %s", of)
		}
	}
}
