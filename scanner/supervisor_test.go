package scanner

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/state"
)

// fakeTopology is one whose nodes the test names.
type fakeTopology struct {
	mu    sync.Mutex
	nodes []Node
	err   error
	asked []time.Time
}

func (f *fakeTopology) ID() keyspace.NodeID {
	return keyspace.NodeID{Target: "fake", Node: "seed:6379"}
}

func (f *fakeTopology) Nodes(context.Context) ([]Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, time.Now())
	return f.nodes, f.err
}

func (f *fakeTopology) become(err error, nodes ...*fakeNode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes, f.err = nil, err
	for _, n := range nodes {
		f.nodes = append(f.nodes, n)
	}
}

func (f *fakeTopology) questions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

// supervise runs a supervisor until what is returned is called.
func supervise(topology Topology, opts Options) (*Supervisor, func()) {
	sup := NewSupervisor(topology, opts)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		sup.Run(ctx)
	}()
	return sup, func() { cancel(); <-done }
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// named is a fake of that name, which holds slots; nil = every key.
func named(name string, slots *keyspace.Slots, keys ...keyspace.Key) *fakeNode {
	n := newFake(keys...)
	n.name, n.shard = name, Shard{Slots: slots, Role: "primary", Replicas: 1}
	n.info.Slots = slots
	return n
}

func names(sup *Supervisor) string {
	var all []string
	for _, n := range sup.States() {
		all = append(all, n.Status.Node.Node)
	}
	return strings.Join(all, " ")
}

// TestFailover: the cycle on the old node is aborted, another begins on the new
// one at once; what was found stands until then, counters go on, and what was
// known is no news.
func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		old := named("old:1", nil, append(small(300), stringKey(0, "big:1", 20_000))...)
		next := named("new:1", nil, append(small(300), stringKey(0, "big:1", 20_000), stringKey(0, "big:2", 20_000))...)
		topology := &fakeTopology{}
		topology.become(nil, old)
		next.pageTime = 3 * time.Second
		old.onPage = func(_ context.Context, n int, _ *Page) error {
			if n > 5 { // the second cycle's first one
				return old.hang()
			}
			return nil
		}
		sup, stop := supervise(topology, opts)
		defer stop()
		after(time.Minute + 5*time.Second)
		topology.become(nil, next)
		after(refreshEvery)
		n := sup.States()[0]
		if names(sup) != "new:1" || n.Status.Aborts[fault.Topology] != 1 || n.Status.Cycles[snapshot.Complete] != 1 || n.Snapshot == nil || n.Snapshot.DBs[0].Named != 301 {
			t.Errorf("at the start: %s, aborts %v, cycles %v", names(sup), n.Status.Aborts, n.Status.Cycles)
		}
		if old.open != 0 {
			t.Errorf("%d connections are left", old.open)
		}
		after(time.Minute)
		n = sup.States()[0]
		if n.Snapshot.DBs[0].Named != 302 || n.Status.Cycles[snapshot.Complete] < 2 {
			t.Errorf("then: %d keys, cycles %v", n.Snapshot.DBs[0].Named, n.Status.Cycles)
		}
		if got := n.BigKeys.New[keyspace.String][policy.Warning]; got != 1 {
			t.Errorf("%d are new", got)
		}
		stop()
		if next.cursors[0] != 0 {
			t.Errorf("the scan went on at cursor %d", next.cursors[0])
		}
	})
}

// TestClusterNodes: each node counts its own keys; one that leaves takes its
// series along, what another takes over of it is neither new nor resolved; all of
// them are in one state file.
func TestClusterNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.StateFile = filepath.Join(t.TempDir(), "state")
		lower, upper := &keyspace.Slots{}, &keyspace.Slots{}
		lower.Add(0, 8191)
		upper.Add(8192, keyspace.NumSlots-1)
		a := named("a:1", lower, stringKey(0, "hello", 20_000), stringKey(0, "bar", 20_000))
		b := named("b:1", upper, stringKey(0, "foo", 20_000))
		topology := &fakeTopology{}
		topology.become(nil, a, b)
		sup, stop := supervise(topology, opts)
		after(time.Minute)
		if names(sup) != "a:1 b:1" || sup.States()[0].Snapshot.DBs[0].Named != 2 || sup.States()[1].Snapshot.DBs[0].Named != 1 {
			t.Fatalf("scanned are %s", names(sup))
		}
		saved, err := state.Load(opts.StateFile, "fake")
		if err != nil || len(saved.Nodes) != 2 || len(saved.BigKeys.Keys) != 3 {
			t.Fatalf("saved are %+v, %v", saved, err)
		}
		if s := sup.States()[0].Status; !s.Placed || s.Replicas != 1 {
			t.Errorf("placed %v, %d replicas", s.Placed, s.Replicas)
		}

		all := &keyspace.Slots{}
		all.Add(0, keyspace.NumSlots-1)
		one := named("a:1", all, stringKey(0, "hello", 20_000), stringKey(0, "bar", 20_000), stringKey(0, "foo", 20_000))
		topology.become(nil, one)
		after(2 * refreshEvery)
		n := sup.States()[0]
		if names(sup) != "a:1" || n.Snapshot.DBs[0].Named != 3 || n.BigKeys.New != [keyspace.NumTypes][policy.NumSeverities]uint64{} {
			t.Errorf("scanned are %s, %d keys, new %v", names(sup), n.Snapshot.DBs[0].Named, n.BigKeys.New)
		}
		stop()

		opts.Remembered = saved
		topology = &fakeTopology{}
		topology.become(nil, named("a:1", lower, stringKey(0, "hello", 20_000), stringKey(0, "new", 20_000)), named("b:1", upper, stringKey(0, "foo", 20_000)))
		sup, stop = supervise(topology, opts)
		defer stop()
		after(5 * time.Second)
		events := func(i int) (entered, resolved uint64) {
			view := sup.States()[i].BigKeys
			return view.New[keyspace.String][policy.Warning], view.Resolved[keyspace.String][policy.Warning]
		}
		if entered, resolved := events(0); entered != 1 || resolved != 1 {
			t.Errorf("after a restart: %d new, %d resolved", entered, resolved)
		}
		if entered, resolved := events(1); entered != 0 || resolved != 0 {
			t.Errorf("after a restart, on the other node: %d new, %d resolved", entered, resolved)
		}
	})
}

// TestSlotsMove: a cycle during which the node's slots changed is suspect, and so
// is each that was under way when a key was found on a node that does not hold it.
func TestSlotsMove(t *testing.T) {
	for about, move := range map[string]func(a *fakeNode, moved *atomic.Bool){
		"slots change":       func(a *fakeNode, _ *atomic.Bool) { a.change(func() { a.info.Slots = &keyspace.Slots{1} }) },
		"a key is elsewhere": func(_ *fakeNode, moved *atomic.Bool) { moved.Store(true) },
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, _ := testOptions(t)
				slots := [2]*keyspace.Slots{{3}, {12}}
				a, b := named("a:1", slots[0], small(300)...), named("b:1", slots[1], small(300)...)
				a.pageTime, b.pageTime = time.Second, time.Second
				var moved atomic.Bool
				b.onPage = func(_ context.Context, _ int, p *Page) error {
					if moved.Load() {
						for i := range p.Problems {
							p.Problems[i] = fault.Moved
						}
					}
					return nil
				}
				topology := &fakeTopology{}
				topology.become(nil, a, b)
				sup, stop := supervise(topology, opts)
				defer stop()
				time.Sleep(1500 * time.Millisecond)
				move(a, &moved)
				after(20 * time.Second)
				if s := sup.States()[0].Snapshot; s == nil || len(s.Suspect) == 0 {
					t.Errorf("the cycle is not suspect: %+v", s)
				}
				if n := topology.questions(); n < 3 {
					t.Errorf("the topology was asked %d times in 20 s", n)
				}
			})
		})
	}
}

// TestReshardKeepsList: a new big key is listed all the time, by whichever node
// holds it, so that no alert about it ends and fires again.
func TestReshardKeepsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.Interval, opts.WatchInterval = time.Hour, time.Hour
		lower, upper, all, none := &keyspace.Slots{}, &keyspace.Slots{}, &keyspace.Slots{}, &keyspace.Slots{}
		lower.Add(0, 8191)
		upper.Add(8192, keyspace.NumSlots-1)
		all.Add(0, keyspace.NumSlots-1)
		a, b := named("a:1", lower), named("b:1", upper, small(10)...)
		topology := &fakeTopology{}
		topology.become(nil, a, b)
		sup, stop := supervise(topology, opts)
		defer stop()
		after(time.Minute)
		a.change(func() { a.dbs[0] = [][]keyspace.Key{{stringKey(0, "hello", 20_000)}} })
		after(time.Hour)
		listed := func() (nodes string) {
			for _, n := range sup.States() {
				for _, l := range n.BigKeys.Listed {
					nodes += n.Status.Node.Node + " " + l.Label
				}
			}
			return nodes
		}
		if got := listed(); got != "a:1 hello" {
			t.Fatalf("listed are %q", got)
		}
		a.become(none)
		b.become(all)
		after(2 * refreshEvery)
		if got := listed(); got != "b:1 hello" {
			t.Errorf("listed are %q", got)
		}
	})
}

// TestConcurrency: so many nodes are scanned at once and no more; those that wait
// are in contact.
func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.Concurrency, opts.Interval = 2, time.Second
		var (
			mu            sync.Mutex
			running, most int
			last          = map[string]time.Time{}
			oldest        time.Duration
			nodes         []*fakeNode
		)
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			n := named(name, &keyspace.Slots{1 << i}, small(300)...)
			n.onPage = func(_ context.Context, _ int, p *Page) error {
				mu.Lock()
				if running++; running > most {
					most = running
				}
				mu.Unlock()
				time.Sleep(10 * time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				return nil
			}
			n.onInfo = func(int, *Info) error {
				mu.Lock()
				defer mu.Unlock()
				if at, ok := last[name]; ok {
					oldest = max(oldest, time.Since(at))
				}
				last[name] = time.Now()
				return nil
			}
			nodes = append(nodes, n)
		}
		topology := &fakeTopology{}
		topology.become(nil, nodes...)
		sup, stop := supervise(topology, opts)
		defer stop()
		after(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most != 2 {
			t.Errorf("%d nodes were scanned at once", most)
		}
		if oldest > 2*contactEvery {
			t.Errorf("a node was not heard of for %v", oldest)
		}
		for _, n := range sup.States() {
			if n.Status.Cycles[snapshot.Complete] < 2 || !n.Status.Up {
				t.Errorf("%s: %d cycles, up %v", n.Status.Node.Node, n.Status.Cycles[snapshot.Complete], n.Status.Up)
			}
		}
	})
}

// TestTopologyUnknown: while no node is known, the deployment itself is shown to
// be down; afterwards an error changes nothing.
func TestTopologyUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, logs := testOptions(t)
		topology := &fakeTopology{}
		topology.become(fault.Newf(fault.Config, "no such master"))
		sup, stop := supervise(topology, opts)
		defer stop()
		after(90 * time.Second) // what only a person can mend is tried once a minute
		s := sup.States()[0].Status
		if names(sup) != "seed:6379" || s.Up || s.Aborts[fault.Config] != 2 || topology.questions() != 2 {
			t.Errorf("%s, up %v, aborts %v, asked %d times", names(sup), s.Up, s.Aborts, topology.questions())
		}
		if n := strings.Count(logs.String(), "no such master"); n != 2 {
			t.Errorf("logged:\n%s", logs)
		}
		a := named("a:1", nil, small(10)...)
		topology.become(nil, a)
		after(time.Minute)
		topology.become(fault.Newf(fault.Down, "nobody there"))
		after(time.Minute)
		if s := sup.States()[0].Status; names(sup) != "a:1" || !s.Up || s.Aborts[fault.Down] != 0 {
			t.Errorf("%s, up %v", names(sup), s.Up)
		}
	})
}

// TestConnectionErrorAsks: a scanner that loses its connection has the topology
// asked at once, but not more than once a second.
func TestConnectionErrorAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		a := named("a:1", nil, small(10)...)
		a.onOpen = func(context.Context, int) error { return fault.Newf(fault.Down, "refused") }
		topology := &fakeTopology{}
		topology.become(nil, a)
		_, stop := supervise(topology, opts)
		defer stop()
		after(8 * time.Second)
		if n := topology.questions(); n < 3 || n > 9 {
			t.Errorf("the topology was asked %d times within 8 s", n)
		}
	})
}
