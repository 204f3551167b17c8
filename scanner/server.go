package scanner

import (
	"context"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// serverProbe is what is asked of the primary for the rules about servers, once
// a cycle and beyond INFO.
type serverProbe struct {
	known  map[string]bool      // see policy.ServerFacts
	config *policy.ServerConfig // nil = off or denied
}

// probeServer asks the primary; nil = there is none to ask.
func (c *cycle) probeServer(ctx context.Context, info *Info) (*serverProbe, error) {
	probe := &serverProbe{}
	ask := func(primary Session) (trips int, err error) {
		if probe.known, err = primary.KnownCommands(ctx, policy.ForbiddenCommands()); err != nil || !c.opts.ConfigProbe {
			return 1, err
		}
		probe.config, err = primary.Config(ctx)
		return 3, err
	}
	if info.Role != "primary" {
		if !c.askPrimary(ctx, func(s Session) error { _, err := ask(s); return err }) {
			return nil, ctxFault(ctx)
		}
		return probe, nil
	}
	var spent cost
	err := c.patiently(ctx, func() error {
		return c.measure(&spent, func() (trips int, err error) { return ask(c.session) })
	})
	c.pace.charge(spent.took, spent.trips, 0, spent.commands)
	return probe, err
}

// askPrimary asks the primary of the replica that is scanned, on a connection of
// its own: a replica's statistics, memory and settings tell nothing of it. That
// it cannot is no reason to end the cycle.
func (c *cycle) askPrimary(ctx context.Context, ask func(Session) error) bool {
	primary := c.node.Primary()
	if primary == nil {
		return false
	}
	defer primary.Close()
	defer context.AfterFunc(ctx, primary.Close)()
	session, err := primary.Open(ctx)
	if err != nil {
		return false
	}
	defer session.Close()
	err = ask(session)
	c.state.asked(session)
	return err == nil
}

// endOfServer is what the primary tells when the cycle ends; nil = nothing.
func (c *cycle) endOfServer(ctx context.Context, last *Info) *Info {
	if c.server == nil || last.Role == "primary" {
		return last
	}
	var told *Info
	c.askPrimary(ctx, func(primary Session) error {
		info, err := primary.Info(ctx)
		if err == nil && info.Role == "primary" {
			c.infosOfPrimary++
			told = &info
		}
		return err
	})
	return told
}

// counted is where a primary's statistics stood when a cycle was published.
type counted struct {
	runID      string
	calls      map[string]snapshot.Usage
	infos, own int64 // calls of INFO that it counts, and ours
}

// serverFacts gathers what the server rules judge when a cycle ends, and begins
// the stretch that the next ones are about, from what the primary tells; nil = it
// was not asked.
func (c *cycle) serverFacts(last *Info) *policy.ServerFacts {
	if c.server == nil || last == nil || last.Role != "primary" {
		c.counted = nil
		return nil
	}
	before := c.counted
	c.counted = &counted{
		runID: last.RunID,
		calls: last.Calls,
		infos: last.Usage[keyspace.CmdInfo].Calls,
		own:   c.infos,
	}
	if c.first.Role != "primary" {
		c.counted.own = c.infosOfPrimary
	}
	facts := &policy.ServerFacts{
		Known:          c.server.known,
		Config:         c.server.config,
		DBs:            len(last.DBs),
		EvictionPolicy: last.EvictionPolicy,
		UsedBytes:      last.UsedBytes,
		MaxBytes:       last.MaxBytes,
	}
	for _, db := range last.DBs {
		facts.Keys, facts.Expires = facts.Keys+db.Keys, facts.Expires+db.Expires
	}
	if before != nil {
		facts.Called, facts.Reset = c.counted.since(before)
	}
	return facts
}

// since tells what was called between two probes; nil = one of them lacks the
// statistics. After a restart, or CONFIG RESETSTAT, it is what was called since
// then: a reset shows in the server counting fewer INFOs than it answered us, or
// fewer calls of a command than before.
func (c *counted) since(before *counted) (called map[string]int64, reset bool) {
	if c.infos == 0 || before.infos == 0 {
		return nil, false
	}
	reset = c.runID != before.runID || c.infos-before.infos < c.own-before.own
	for cmd, use := range c.calls {
		reset = reset || use.Calls < before.calls[cmd].Calls
	}
	called = make(map[string]int64, len(c.calls))
	for cmd, use := range c.calls {
		called[cmd] = use.Calls
		if !reset {
			called[cmd] -= before.calls[cmd].Calls
		}
	}
	return called, reset
}
