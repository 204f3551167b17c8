package integration

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"

	"redis_keyhealth_exporter/collector"
	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/topology"
	"redis_keyhealth_exporter/scanner"
)

// fleet is a deployment of real servers under a supervisor, with its metrics.
type fleet struct {
	*scanner.Supervisor
	t        *testing.T
	registry *prometheus.Registry
	logs     *lockedBuffer
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newFleet scans a deployment, each node once a second, until the test ends.
func newFleet(t *testing.T, flags config.RedisFlags, change func(*scanner.Options)) *fleet {
	t.Helper()
	return newFleetAt(t, flags, topology.Options{}, change)
}

// newFleetAt is newFleet with rules about announced addresses.
func newFleetAt(t *testing.T, flags config.RedisFlags, addresses topology.Options, change func(*scanner.Options)) *fleet {
	t.Helper()
	flags.Name = "test"
	deployment, err := flags.Validate()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(policy.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, registry: prometheus.NewPedanticRegistry(), logs: &lockedBuffer{}}
	opts := scanner.Options{Policy: rules, Interval: time.Second, Count: 100, MaxDuty: 1, TopKeys: 10, Logger: log.NewLogfmtLogger(f.logs)}
	if change != nil {
		change(&opts)
	}
	f.Supervisor = scanner.NewSupervisor(topology.New(deployment, addresses), opts)
	f.registry.MustRegister(collector.New(collector.Options{Source: f, MaxSeries: 20_000, Configuration: func() collector.Configuration {
		return collector.Configuration{Loaded: time.Now(), Namespaces: opts.Policy.Namespaces()}
	}}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		start := time.Now()
		<-done
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("took %v to end", took)
		}
		if t.Failed() {
			t.Logf("log:\n%s", f.logs)
		}
	})
	return f
}

// node is what is known of a node; nil = it is not there.
func (f *fleet) node(name string) *snapshot.NodeState {
	for _, n := range f.States() {
		if n.Status.Node.Node == name {
			return &n
		}
	}
	return nil
}

// scanned waits until each of the nodes, and no other, has completed a cycle that
// began after now.
func (f *fleet) scanned(names ...string) {
	f.t.Helper()
	now := time.Now()
	eventually(f.t, "cycles of "+strings.Join(names, " "), func() bool {
		states := f.States()
		for _, n := range states {
			if n.Snapshot == nil || n.Snapshot.Started.Before(now) || len(n.Snapshot.Suspect) > 0 {
				return false
			}
		}
		for _, name := range names {
			if f.node(name) == nil {
				return false
			}
		}
		return len(states) == len(names)
	})
}

// sums adds up the series of all nodes: name{label=value,…}.
func (f *fleet) sums() map[string]float64 {
	f.t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		f.t.Fatalf("gather: %v", err)
	}
	sums := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			sums[series(strings.TrimPrefix(family.GetName(), "redis_keyhealth_"), m)] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sums
}

// events are the new and the resolved big keys so far.
func (f *fleet) events() (entered, resolved float64) {
	for s, v := range f.sums() {
		switch {
		case strings.HasPrefix(s, "new_big_keys_total"):
			entered += v
		case strings.HasPrefix(s, "resolved_big_keys_total"):
			resolved += v
		}
	}
	return entered, resolved
}
