package scanner

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-kit/log/level"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

const (
	// refreshEvery is how often the topology is asked.
	refreshEvery = 10 * time.Second

	// minRefresh is the least time between two questions: scanners that lose
	// their connections ask for more.
	minRefresh = time.Second
)

// errLeft ends the scan of a node: a cycle is never continued on another one.
var errLeft = fault.Newf(fault.Topology, "the node left the topology, or its role changed")

// Supervisor runs a scanner for each node of a topology and joins them all.
type Supervisor struct {
	topology Topology
	shared   *deployment
	report   *reporter
	unknown  *nodeState // shown while no node is known

	mu      sync.Mutex
	opts    Options    // SetPolicy changes it
	running []*running // Run alone changes it
}

// running is a scanner at work.
type running struct {
	*Scanner
	slots  *keyspace.Slots // of the node, when it was last asked
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// NewSupervisor makes a supervisor. Nothing is asked before Run.
func NewSupervisor(topology Topology, opts Options) *Supervisor {
	id := topology.ID()
	shared := newDeployment(id.Target, &opts)
	return &Supervisor{
		topology: topology,
		shared:   shared,
		report:   &reporter{logger: opts.Logger, logged: map[string]time.Time{}},
		unknown:  newState(id, id.Node, &opts, &bigkeys.View{}),
		opts:     opts,
	}
}

// Run scans until ctx ends, and returns when every goroutine has.
func (s *Supervisor) Run(ctx context.Context) {
	defer func() { stop(s.running, ctx.Err()) }()
	for ctx.Err() == nil {
		asked, least := time.Now(), time.Duration(0)
		nodes, err := s.topology.Nodes(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			s.report.recovered(s.topology.ID(), "the topology is known again")
			s.reconcile(ctx, nodes)
		default:
			least = fault.ReasonOf(err).Wait()
			s.failed(err, max(refreshEvery, least))
		}
		s.rest(ctx, asked, least)
	}
}

// stop ends scans and waits until they have.
func stop(running []*running, why error) {
	for _, r := range running {
		r.cancel(why)
	}
	for _, r := range running {
		<-r.done
	}
}

// rest waits until the topology is to be asked again. Whatever changes, it is not
// asked within least.
func (s *Supervisor) rest(ctx context.Context, asked time.Time, least time.Duration) {
	wait := func(until time.Time, changed <-chan struct{}) {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
	}
	wait(asked.Add(max(minRefresh, least)), nil)
	if least < refreshEvery {
		wait(asked.Add(refreshEvery), s.shared.changed)
	}
}

// failed notes that the topology could not be asked. What is known of it stays.
func (s *Supervisor) failed(err error, pause time.Duration) {
	msg := "the topology could not be asked; its nodes are scanned as they were"
	if len(s.running) == 0 {
		msg = "no node to scan is known"
		s.unknown.aborted(false, err)
	}
	s.report.trouble(s.topology.ID(), msg, err, pause)
}

// reconcile ends the scans of nodes that left, and begins those of nodes that
// joined.
func (s *Supervisor) reconcile(ctx context.Context, nodes []Node) {
	var left []*running
	for _, r := range s.running {
		if !slices.Contains(nodes, r.node) {
			left = append(left, r)
		}
	}
	stop(left, errLeft)
	for _, r := range left {
		level.Info(s.opts.Logger).Log("msg", "node left", "target", r.node.ID().Target, "node", r.node.ID().Node, "address", r.node.Address())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := make([]*running, 0, len(nodes))
	scanners := make([]*Scanner, 0, len(nodes))
	for _, node := range nodes {
		i := slices.IndexFunc(s.running, func(r *running) bool { return r.node == node })
		if i >= 0 {
			now = append(now, s.running[i])
			s.running[i].follow()
		} else {
			now = append(now, s.start(ctx, node, left))
		}
		scanners = append(scanners, now[len(now)-1].Scanner)
	}
	s.running = now
	s.shared.scan(scanners)
}

// start begins the scan of a node, which follows the one that left with the same
// keys. mu must be held.
func (s *Supervisor) start(ctx context.Context, node Node, left []*running) *running {
	shard := node.Shard()
	var predecessor *Scanner
	for _, r := range left {
		if r.node.Shard().Slots.Equal(shard.Slots) {
			predecessor = r.Scanner
		}
	}
	if shard.Role != "" {
		level.Info(s.opts.Logger).Log("msg", "node joined", "target", node.ID().Target, "node", node.ID().Node,
			"address", node.Address(), "role", shard.Role, "slots", shard.Slots)
	}
	r := &running{Scanner: newScanner(node, s.opts, s.shared, predecessor), slots: shard.Slots, done: make(chan struct{})}
	ctx, r.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(r.done)
		defer node.Close()
		defer context.AfterFunc(ctx, node.Close)()
		r.Run(ctx)
	}()
	return r
}

// follow has the node list the keys of the slots that it holds now: at once, with
// the other nodes, so that no key is without a series in between.
func (r *running) follow() {
	slots := r.node.Shard().Slots
	if !slots.Equal(r.slots) {
		r.slots = slots
		r.tracker.Own(slots)
		r.state.lists(r.tracker.View())
	}
}

// SetPolicy changes what keys are judged by, from each node's next cycle on.
func (s *Supervisor) SetPolicy(p *policy.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Policy = p
	for _, r := range s.running {
		r.SetPolicy(p)
	}
}

// States is what is known of each node now.
func (s *Supervisor) States() []snapshot.NodeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.running) == 0 {
		return []snapshot.NodeState{s.unknown.get()}
	}
	states := make([]snapshot.NodeState, 0, len(s.running))
	for _, r := range s.running {
		states = append(states, r.State())
	}
	return states
}
