// Package integration holds the whole way from a real redis-server to the
// metrics against known truth.
package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"redis_keyhealth_exporter/collector"
	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/topology"
	"redis_keyhealth_exporter/scanner"
)

func TestMain(m *testing.M) {
	topology.RouteLogs(log.NewNopLogger())
	goleak.VerifyTestMain(m)
}

// rig is a scanner of one real server, with the metrics that it makes.
type rig struct {
	t        *testing.T
	node     scanner.Node
	scanner  *scanner.Scanner
	registry *prometheus.Registry
}

// States makes the rig a collector.Source.
func (r *rig) States() []snapshot.NodeState { return []snapshot.NodeState{r.scanner.State()} }

// newRig scans the server at flags.Addr as fast as it can, unless change says
// otherwise.
func newRig(t *testing.T, flags config.RedisFlags, change func(*scanner.Options)) *rig {
	t.Helper()
	flags.Name = "test"
	redis, err := flags.Validate()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(policy.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	opts := scanner.Options{Policy: rules, Interval: time.Minute, Count: 100, MaxDuty: 1, TopKeys: 10, Logger: log.NewNopLogger()}
	if change != nil {
		change(&opts)
	}
	r := &rig{t: t, node: topology.Standalone(redis), registry: prometheus.NewPedanticRegistry()}
	r.scanner = scanner.New(r.node, opts)
	r.registry.MustRegister(collector.New(collector.Options{Source: r, MaxSeries: 20_000, Configuration: func() collector.Configuration {
		return collector.Configuration{Loaded: time.Now(), Namespaces: opts.Policy.Namespaces()}
	}}))
	t.Cleanup(r.node.Close)
	return r
}

// cycle makes one and fails the test if it does not complete.
func (r *rig) cycle() {
	r.t.Helper()
	if err := r.scanner.RunCycle(r.t.Context()); err != nil {
		r.t.Fatalf("cycle: %v", err)
	}
}

// start scans in the background until the test ends.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.scanner.Run(ctx)
	}()
	r.t.Cleanup(func() {
		cancel()
		r.node.Close()
		<-done
	})
}

func (r *rig) status() snapshot.Status { return r.scanner.State().Status }

// metrics are all series but those of the exporter itself: name{label=value,…}
// without target and node; of a histogram its cumulative buckets and count.
func (r *rig) metrics() map[string]float64 {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Fatalf("gather: %v", err)
	}
	all := map[string]float64{}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "redis_keyhealth_")
		for _, m := range f.GetMetric() {
			switch f.GetType() {
			case dto.MetricType_HISTOGRAM:
				for _, b := range m.GetHistogram().GetBucket() {
					all[series(name+"_bucket", m, fmt.Sprintf("le=%g", b.GetUpperBound()))] = float64(b.GetCumulativeCount())
				}
				all[series(name+"_count", m)] = float64(m.GetHistogram().GetSampleCount())
				all[series(name+"_sum", m)] = m.GetHistogram().GetSampleSum()
			case dto.MetricType_COUNTER:
				all[series(name, m)] = m.GetCounter().GetValue()
			default:
				all[series(name, m)] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}

func series(name string, m *dto.Metric, more ...string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() != "target" && l.GetName() != "node" {
			more = append(more, l.GetName()+"="+l.GetValue())
		}
	}
	return label(name, more...)
}

// label spells a series as metrics does.
func label(name string, labels ...string) string {
	slices.Sort(labels)
	return name + "{" + strings.Join(labels, ",") + "}"
}

// same compares all series of the named families with the truth, both ways.
func same(t *testing.T, got, truth map[string]float64, families ...string) {
	t.Helper()
	wanted := func(s string) bool {
		name, _, _ := strings.Cut(s, "{")
		return slices.Contains(families, name)
	}
	wrong := 0
	report := func(format string, args ...any) {
		t.Helper()
		if wrong++; wrong <= 20 {
			t.Errorf(format, args...)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(truth)) {
		if !wanted(s) {
			t.Fatalf("the truth about %s is compared with nothing", s)
		}
		if v, ok := got[s]; !ok {
			report("%s is missing, want %v", s, truth[s])
		} else if v != truth[s] {
			report("%s = %v, want %v", s, v, truth[s])
		}
	}
	for _, s := range slices.Sorted(maps.Keys(got)) {
		if _, ok := truth[s]; !ok && wanted(s) && got[s] != 0 {
			report("%s = %v, which nobody planted", s, got[s])
		}
	}
	if wrong > 20 {
		t.Errorf("and %d more", wrong-20)
	}
}

// eventually polls until what happens or a minute is over.
func eventually(t *testing.T, what string, happens func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !happens() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// load sends commands in pipelines of a thousand.
func load(t *testing.T, client *redis.Client, db int, commands ...[]any) {
	t.Helper()
	conn := client.Conn()
	defer conn.Close()
	if err := conn.Select(t.Context(), db).Err(); err != nil {
		t.Fatal(err)
	}
	for chunk := range slices.Chunk(commands, 1000) {
		pipe := conn.Pipeline()
		for _, c := range chunk {
			pipe.Do(t.Context(), c...)
		}
		if _, err := pipe.Exec(t.Context()); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
	}
	if err := conn.Select(t.Context(), 0).Err(); err != nil {
		t.Fatal(err)
	}
}

// small are n small keys of one prefix that never expire.
func small(prefix string, n int) [][]any {
	commands := make([][]any, n)
	for i := range commands {
		commands[i] = []any{"SET", fmt.Sprintf("%s:%d", prefix, i), "v"}
	}
	return commands
}

func flagsOf(addr string) config.RedisFlags { return config.RedisFlags{Addr: addr} }
