package scanner

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/state"
)

// nodeState is what a scanner shows of itself. The scanner's goroutine writes it,
// scrapes read it; the lock is held for the copy of a few values only.
type nodeState struct {
	mu    sync.Mutex
	now   snapshot.NodeState
	sent  [keyspace.NumCommands]uint64 // by the sessions that have ended
	known keyspace.NodeID              // as configured
	class int                          // of the next cycle
	// touches are those that the state file has: only the scanner knows the latest.
	touches []state.Touch

	dutySince time.Time // start of the stretch that the next duty is taken over
	dutyBusy  time.Duration
}

// dutyStretch is the least time that a duty is taken over: a small keyspace is
// walked in milliseconds, in which the server may well be all ours.
const dutyStretch = 5 * time.Second

func newState(id keyspace.NodeID, address string, opts *Options, view *bigkeys.View) *nodeState {
	st := &nodeState{known: id, dutySince: time.Now()}
	st.now.BigKeys = view
	st.now.Status = snapshot.Status{
		Node:        id,
		Info:        snapshot.ServerInfo{Address: address},
		Evaluated:   make([]bool, len(opts.Policy.Rules())),
		SampleRatio: 1 / float64(max(opts.Sample, 1)),
		DetailRatio: 1,
		Interval:    opts.Interval,
	}
	return st
}

// restore shows what the last run found until this one has found something: as
// old as it is, see scan_cycle_completed_timestamp_seconds. inInfo: which primary
// the node is of, it tells itself.
func (st *nodeState) restore(last *state.Node, inInfo bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := &st.now.Status
	if inInfo {
		s.Node = last.ID
	}
	st.class = last.Class
	s.CycleDuration = last.Duration
	if snap := last.Snapshot; snap != nil {
		st.now.Snapshot = snap
		s.CycleCompleted, s.Coverage, s.Evaluated = snap.Completed, snap.Coverage, snap.Evaluated
	}
}

// succeed goes on where the scanner ended that scanned the same keys on another
// server: what it found stands until there is better.
func (st *nodeState) succeed(old *nodeState, role string) {
	last := old.get()
	st.mu.Lock()
	defer st.mu.Unlock()
	s := last.Status
	if s.LastFault != nil && fault.ReasonOf(s.LastFault) != fault.Topology {
		// Its cycle broke off before anybody knew why, and is not tried again.
		s.Cycles[snapshot.Aborted]++
		s.Aborts[fault.Topology]++
	}
	s.Node, s.Up, s.Scanning, s.Progress, s.Duty, s.LastFault = st.known, false, false, 0, 0, nil
	s.Info.Address, s.Info.Role, s.Info.Server, s.Info.Version = st.now.Status.Info.Address, role, "", ""
	clear(s.Capabilities[:])
	st.now.Status, st.now.Snapshot, st.now.Watched = s, last.Snapshot, last.Watched
	st.sent, st.dutyBusy, st.class = s.Commands, s.Busy, old.class
}

// touched takes over what the state file says of our touches.
func (st *nodeState) touched(list []state.Touch) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.touches = list
}

// remember is the node's part of the state file.
func (st *nodeState) remember(address string) state.Node {
	st.mu.Lock()
	defer st.mu.Unlock()
	now, s := &st.now, &st.now.Status
	return state.Node{
		Address: address, ID: s.Node, Class: st.class, Duration: s.CycleDuration,
		New: now.BigKeys.New, Resolved: now.BigKeys.Resolved, Snapshot: now.Snapshot, Touches: st.touches,
	}
}

func (st *nodeState) get() snapshot.NodeState {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.now
}

func (st *nodeState) id() keyspace.NodeID { return st.get().Status.Node }

func (st *nodeState) update(change func(*snapshot.Status)) {
	st.mu.Lock()
	defer st.mu.Unlock()
	change(&st.now.Status)
}

// begin starts a cycle.
func (st *nodeState) begin(at time.Time) {
	st.update(func(s *snapshot.Status) {
		s.Scanning, s.Progress, s.CycleStarted = true, 0, at
	})
}

// contacted takes over what INFO told. While it is denied, the last values go.
func (st *nodeState) contacted(info *Info, session Session, busy time.Duration) {
	st.update(func(s *snapshot.Status) {
		s.Up, s.LastFault = true, nil
		s.Info = info.ServerInfo
		s.Node = st.known
		if info.PrimaryAddress != "" {
			s.Node.Node = info.PrimaryAddress
		}
		st.effort(s, session, busy)
	})
}

// count takes over what a session sent and learnt. mu must be held.
func (st *nodeState) count(s *snapshot.Status, session Session) {
	for i, n := range session.Sent() {
		s.Commands[i] = st.sent[i] + n
	}
	for i, capability := range session.Capabilities() {
		if capability != snapshot.Untried {
			s.Capabilities[i] = capability
		}
	}
}

// endSession keeps the counts of a session that is closed.
func (st *nodeState) endSession(session Session) {
	st.update(func(s *snapshot.Status) {
		st.count(s, session)
		st.sent = s.Commands
	})
}

// asked adds what a session with the primary of a replica sent and learnt, which
// has ended.
func (st *nodeState) asked(session Session) {
	st.update(func(s *snapshot.Status) {
		for i, n := range session.Sent() {
			st.sent[i] += n
			s.Commands[i] += n
		}
		capabilities := session.Capabilities()
		for _, cmd := range []keyspace.Command{keyspace.CmdCommandInfo, keyspace.CmdConfigGet} {
			if capabilities[cmd] != snapshot.Untried {
				s.Capabilities[cmd] = capabilities[cmd]
			}
		}
	})
}

// page counts the names that a page brought.
func (st *nodeState) page(c *cycle, names int) {
	st.update(func(s *snapshot.Status) {
		s.Keys += uint64(names)
		if c.total > 0 {
			s.Progress = min(float64(c.names)/float64(c.total), 1)
		}
		st.effort(s, c.session, c.pace.busy)
	})
}

// effort updates what the scan costs. mu must be held.
func (st *nodeState) effort(s *snapshot.Status, session Session, busy time.Duration) {
	s.Busy = busy
	if now := time.Now(); now.Sub(st.dutySince) >= dutyStretch {
		s.Duty = float64(busy-st.dutyBusy) / float64(now.Sub(st.dutySince))
		st.dutySince, st.dutyBusy = now, busy
	}
	st.count(s, session)
}

func (st *nodeState) problems(n *[fault.NumKeyProblems]uint64) {
	st.update(func(s *snapshot.Status) {
		for i := range n {
			s.KeyErrors[i] += n[i]
		}
	})
}

// busy counts a page that has to wait for a script.
func (st *nodeState) busy(err error) {
	st.update(func(s *snapshot.Status) {
		s.KeyErrors[fault.PageBusy]++
		s.Up, s.LastFault, s.LastFaultAt = true, err, time.Now()
	})
}

// lost notes that a contact between two cycles failed.
func (st *nodeState) lost(up bool, err error) {
	st.update(func(s *snapshot.Status) {
		s.Up, s.Duty = up, 0
		s.LastFault, s.LastFaultAt = err, time.Now()
	})
}

// aborted ends a cycle that failed.
func (st *nodeState) aborted(up bool, err error) {
	reason := fault.ReasonOf(err)
	st.update(func(s *snapshot.Status) {
		s.Scanning, s.Progress = false, 0
		s.Cycles[snapshot.Aborted]++
		s.Aborts[reason]++
		s.Up, s.Duty = up, 0
		s.LastFault, s.LastFaultAt = err, time.Now()
	})
}

// looked takes over what a look at the watch list left.
func (st *nodeState) looked(view *bigkeys.View, pinned map[bigkeys.ID]snapshot.WatchedKey) {
	var watched []snapshot.WatchedKey
	for _, w := range pinned {
		if w.Bytes != unmeasured {
			watched = append(watched, w)
		}
	}
	slices.SortFunc(watched, func(a, b snapshot.WatchedKey) int {
		return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Label, b.Label))
	})
	st.mu.Lock()
	defer st.mu.Unlock()
	st.now.BigKeys, st.now.Watched = view, watched
}

// lists takes over which big keys are the node's.
func (st *nodeState) lists(view *bigkeys.View) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.now.BigKeys = view
}

// publish ends a cycle with its results.
func (st *nodeState) publish(c *cycle, snap *snapshot.Snapshot, view *bigkeys.View) {
	result := snapshot.Complete
	if len(snap.Suspect) > 0 {
		result = snapshot.Suspect
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	s := &st.now.Status
	s.Scanning, s.Progress = false, 1
	s.Cycles[result]++
	s.CycleCompleted = snap.Completed
	s.CycleDuration = snap.Completed.Sub(c.started)
	s.Coverage = snap.Coverage
	s.Evaluated = snap.Evaluated
	s.DetailRatio = 1 / float64(c.sample.d)
	st.effort(s, c.session, c.pace.busy)
	st.now.Snapshot = snap
	st.now.BigKeys = view
	st.class = c.class
}
