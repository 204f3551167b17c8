// Package scanner walks the keyspace of one Redis node in the background, for
// ever and gently: a cycle is one complete SCAN of every database on one
// connection. What it finds is published whole or not at all.
package scanner

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/state"
)

// Options are the settings of a scan.
type Options struct {
	Policy           *policy.Policy // until SetPolicy
	Interval         time.Duration  // least time between the starts of two cycles
	WatchInterval    time.Duration  // between two looks at the watch list; 0 = 15 s
	Count            int            // names per page
	MaxDuty          float64        // share of one server core, above 0 and at most 1
	MaxKeysPerSecond float64        // 0 = no limit
	Sample           int            // MEMORY USAGE on 1 key in so many: 1, 2, 4, 8 or 16
	Detail           int            // TYPE and PTTL on 1 key in so many, 1 to 16; 0 = by the number of keys
	TopKeys          int            // length of a top list
	Concurrency      int            // nodes that are scanned at once; 0 = 4
	ConfigProbe      bool           // read a few settings by CONFIG GET
	SlowlogHints     bool           // look into the slow log for names of keys
	StateFile        string         // "" = none; written after each coherent cycle
	Remembered       *state.State   // of the last run; nil = nothing
	Logger           log.Logger
}

const (
	// contactEvery is how often the server is asked for its state while a cycle
	// sleeps or waits for the next one, so that `up` is never older than 15 s.
	contactEvery = 10 * time.Second

	defaultWatchInterval = 15 * time.Second

	minBackoff = time.Second
	maxBackoff = 15 * time.Second

	// busyPatience is how long a page is held and tried again while a script
	// blocks the server: the cursor stays valid on its connection.
	busyPatience = 5 * time.Minute

	// minCycleGap keeps an empty keyspace at --scan.interval=0s from turning
	// into a storm of connections.
	minCycleGap = 100 * time.Millisecond
)

// Scanner scans one node. Run belongs to one goroutine; State and SetPolicy may be
// called from any.
type Scanner struct {
	node    Node
	shared  *deployment
	opts    Options
	next    atomic.Pointer[policy.Policy] // for the next cycle
	policy  *policy.Policy                // of this cycle, and of the watch list until the next
	state   *nodeState
	report  *reporter
	tracker *bigkeys.Tracker
	pace    pacer
	touches touches
	closer  keyspace.Facts // that candidates and the fixed sample are asked for, as of the last cycle's start

	class          int     // cycles published, which rotates the classes
	session        Session // nil = none is open
	runID          string  // of the process behind the session; "" = not known yet
	usage          *usage  // at the last contact of this session
	contacted      time.Time
	lookDue        time.Time                          // at the watch list
	pinned         map[bigkeys.ID]snapshot.WatchedKey // what the last look found of the keys that the policy names
	saved          time.Time                          // the state file
	unsaved        bool                               // what the watch list found since
	infos          int64                              // INFOs that the server answered
	infosOfPrimary int64                              // by the primary, where a replica is scanned
	counted        *counted                           // when the last cycle was published; nil = not a primary's, or none
}

// New makes a scanner of a node that is all of its deployment.
func New(node Node, opts Options) *Scanner {
	shared := newDeployment(node.ID().Target, &opts)
	s := newScanner(node, opts, shared, nil)
	shared.scan([]*Scanner{s})
	return s
}

// newScanner makes a scanner of one of a deployment's nodes. It goes on where its
// predecessor ended, which scanned the same keys on another server; nil = there is
// none.
func newScanner(node Node, opts Options, shared *deployment, predecessor *Scanner) *Scanner {
	opts.WatchInterval = cmp.Or(opts.WatchInterval, defaultWatchInterval)
	s := &Scanner{
		node:   node,
		shared: shared,
		opts:   opts,
		policy: opts.Policy,
		pace:   pacer{duty: opts.MaxDuty, maxKeysPerSecond: opts.MaxKeysPerSecond},
	}
	var (
		last  *state.Node
		shard = node.Shard()
		then  = &bigkeys.View{}
	)
	if predecessor != nil {
		then = predecessor.tracker.View()
	} else if last = shared.remembered.Node(node.Address(), node.ID()); last != nil {
		then = &bigkeys.View{New: last.New, Resolved: last.Resolved}
	}
	s.tracker = shared.bigKeys.Tracker(then.New, then.Resolved)
	s.tracker.Own(shard.Slots)
	s.SetPolicy(opts.Policy)
	s.state = newState(node.ID(), node.Address(), &s.opts, s.tracker.View())
	switch {
	case predecessor != nil:
		s.state.succeed(predecessor.state, shard.Role)
		s.pace.busy = predecessor.pace.busy
	case last != nil:
		s.state.restore(last, shard.Role == "")
		s.touches.restore(last.Touches, s.state.class)
	}
	s.class = s.state.class
	s.report = &reporter{logger: opts.Logger, logged: map[string]time.Time{}}
	return s
}

// State is what is known of the node now.
func (s *Scanner) State() snapshot.NodeState {
	now := s.state.get()
	if shard := s.node.Shard(); shard.Role != "" {
		now.Status.Placed, now.Status.Replicas = true, shard.Replicas
	}
	return now
}

// SetPolicy changes what keys are judged by, from the next cycle on: the figures
// of one cycle follow from one policy.
func (s *Scanner) SetPolicy(p *policy.Policy) { s.next.Store(p) }

// Run scans until ctx ends. The caller closes the node when ctx ends, so that
// no read is waited for.
func (s *Scanner) Run(ctx context.Context) {
	defer func() {
		s.closeSession()
		if s.unsaved {
			s.remember()
		}
	}()
	backoff := minBackoff
	for {
		next, trouble := time.Time{}, "scan aborted"
		err := s.turn(ctx)
		if err != nil {
			s.state.lost(s.answered(err), err)
			trouble = "contact lost while other nodes are scanned"
		} else {
			next = time.Now().Add(max(s.opts.Interval, minCycleGap))
			err = s.RunCycle(ctx)
			<-s.shared.turns
		}
		if err == nil {
			backoff = minBackoff
			// A contact that fails ends the waiting: the next cycle finds out what
			// became of the server.
			if err = s.wait(ctx, time.Until(next)); err != nil {
				s.state.lost(s.answered(err), err)
				trouble = "contact lost between two cycles"
			}
		}
		if err == nil {
			continue
		}
		s.closeSession()
		if ctx.Err() != nil {
			return
		}
		s.shared.suspectChange()
		pause := jitter(backoff)
		if least := fault.ReasonOf(err).Wait(); pause < least {
			pause = least + rand.N(least/5)
		}
		s.report.trouble(s.state.id(), trouble, err, pause)
		if s.sleep(ctx, pause) != nil {
			return
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// RunCycle makes one cycle. It publishes a snapshot and returns nil, or counts
// why it was aborted, leaves the last snapshot as it is and returns a
// *fault.Error.
func (s *Scanner) RunCycle(ctx context.Context) error {
	s.policy = s.next.Load()
	s.tracker.SetPolicy(s.policy.BigKeys())
	c := &cycle{Scanner: s, started: time.Now()}
	err := c.run(ctx)
	if err != nil {
		if ctx.Err() != nil {
			// Whatever broke, broke because the node was closed.
			err = ended(ctx)
		}
		s.state.aborted(s.answered(err), err)
	}
	return err
}

// answered tells whether a fault still means that the server was reached. Of an
// address that is refused nobody was asked.
func (s *Scanner) answered(err error) bool {
	reason := fault.ReasonOf(err)
	return reason.Answered() && (reason != fault.Config || s.session != nil)
}

// open replaces the session by a fresh one: a cursor must not outlive its
// connection, and a new password shows at the next cycle.
func (s *Scanner) open(ctx context.Context) error {
	s.closeSession()
	session, err := s.node.Open(ctx)
	if err != nil {
		return err
	}
	s.session, s.runID, s.usage = session, "", nil
	s.pace.connected()
	return nil
}

// remember writes the state file. That it cannot is a pity, no more: the scan
// goes on.
func (s *Scanner) remember() {
	if s.opts.StateFile == "" {
		return
	}
	s.saved, s.unsaved = time.Now(), false
	s.state.touched(s.touches.remember())
	if err := s.shared.save(); err != nil {
		s.state.update(func(st *snapshot.Status) { st.StateErrors++ })
		s.report.unsaved(s.state.id(), err)
	}
}

func (s *Scanner) closeSession() {
	if s.session != nil {
		s.session.Close()
		s.state.endSession(s.session)
		s.session = nil
	}
}

// contact asks the server for its state, which refreshes `up` and what is exact
// from INFO, and measures the round trip. It fails where a walk would find part
// of the data only.
func (s *Scanner) contact(ctx context.Context) (Info, error) {
	if err := s.ping(ctx); err != nil {
		return Info{}, err
	}
	start, before := time.Now(), s.session.Sent()
	info, err := s.session.Info(ctx)
	sent := s.session.Sent()
	commands := int(total(sent) - total(before))
	trips := 1
	if info.Denied {
		trips = commands // it asks each database
	}
	s.pace.charge(time.Since(start), trips, 0, commands)
	if err != nil {
		return Info{}, err
	}
	s.contacted = time.Now()
	s.infos += int64(sent[keyspace.CmdInfo] - before[keyspace.CmdInfo])
	s.state.contacted(&info, s.session, s.pace.busy)
	switch {
	case info.Loading:
		return info, fault.Newf(fault.NotReady, "the server is loading its data")
	case info.Syncing:
		return info, fault.Newf(fault.NotReady, "the replica is receiving its data")
	case s.runID != "" && info.RunID != s.runID:
		return info, fault.Newf(fault.Restarted, "run_id changed from %.8s to %.8s", s.runID, info.RunID)
	}
	s.runID = info.RunID
	if !info.Slots.Equal(s.node.Shard().Slots) {
		s.shared.suspectChange()
	}
	s.correctPace(&info)
	return info, nil
}

// pings is how many round trips one measurement may take; it ends with one that
// took maxPing, lest a slow server delay the INFO behind it.
const (
	pings   = 5
	maxPing = 500 * time.Millisecond
)

// ping measures the round trip. Where one PING is as fast as ever, it is enough.
func (s *Scanner) ping(ctx context.Context) error {
	var took []time.Duration
	for range pings {
		t, err := s.session.Ping(ctx)
		if err != nil {
			return err
		}
		s.pace.charge(min(t, s.pace.leastPing), 1, 0, 1)
		if took = append(took, t); s.pace.leastPing > 0 && t <= 2*s.pace.leastPing || t > maxPing {
			break
		}
	}
	s.pace.pinged(took)
	return nil
}

// usage is what a server had spent and we had sent at one moment.
type usage struct {
	server [keyspace.NumCommands]snapshot.Usage
	sent   [keyspace.NumCommands]uint64
	names  uint64
}

// correctPace compares the server's statistics with those of the last contact.
func (s *Scanner) correctPace(info *Info) {
	now := &usage{server: info.Usage, sent: s.session.Sent(), names: s.state.get().Status.Keys}
	if last := s.usage; last != nil {
		var used [keyspace.NumCommands]snapshot.Usage
		var sent [keyspace.NumCommands]uint64
		for i := range used {
			used[i] = snapshot.Usage{Calls: now.server[i].Calls - last.server[i].Calls, Time: now.server[i].Time - last.server[i].Time}
			sent[i] = now.sent[i] - last.sent[i]
		}
		s.pace.correct(used, sent, now.names-last.names)
	}
	s.usage = now
}

// cost is what some exchanges took.
type cost struct {
	took            time.Duration
	trips, commands int
}

// measure adds an exchange to what was spent.
func (s *Scanner) measure(spent *cost, exchange func() (trips int, err error)) error {
	before, start := total(s.session.Sent()), time.Now()
	trips, err := exchange()
	spent.took += time.Since(start)
	spent.trips += trips
	spent.commands += int(total(s.session.Sent()) - before)
	return err
}

// look is a contact that waits for a script to end.
func (s *Scanner) look(ctx context.Context) (info Info, err error) {
	err = s.patiently(ctx, func() (err error) { info, err = s.contact(ctx); return err })
	return info, err
}

// patiently repeats what fails because a script blocks the server.
func (s *Scanner) patiently(ctx context.Context, exchange func() error) error {
	deadline := time.Now().Add(busyPatience)
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		err := exchange()
		if err == nil || fault.ReasonOf(err) != fault.Busy || time.Now().After(deadline) {
			return err
		}
		s.state.busy(err)
		s.report.trouble(s.state.id(), "scan held up", err, pause)
		if err := s.sleep(ctx, pause); err != nil {
			return err
		}
	}
}
