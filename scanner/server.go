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

// primary is the session that the primary can be asked on; nil = there is none.
// A replica's statistics, memory and settings tell nothing of its primary's: one
// that is scanned needs a second session, which comes with the deployments that
// know where their primaries are.
func (c *cycle) primary(info *Info) Session {
	if info.Role != "primary" {
		return nil
	}
	return c.session
}

// probeServer asks the primary; nil = there is none to ask.
func (c *cycle) probeServer(ctx context.Context, info *Info) (*serverProbe, error) {
	primary := c.primary(info)
	if primary == nil {
		return nil, nil
	}
	probe := &serverProbe{}
	var spent cost
	err := c.patiently(ctx, func() error {
		return c.measure(&spent, func() (trips int, err error) {
			if probe.known, err = primary.KnownCommands(ctx, policy.ForbiddenCommands()); err != nil || !c.opts.ConfigProbe {
				return 1, err
			}
			probe.config, err = primary.Config(ctx)
			return 3, err
		})
	})
	c.pace.charge(spent.took, spent.trips, 0, spent.commands)
	return probe, err
}

// counted is where a primary's statistics stood when a cycle was published.
type counted struct {
	runID      string
	calls      map[string]snapshot.Usage
	infos, own int64 // calls of INFO that it counts, and ours
}

// serverFacts gathers what the server rules judge when a cycle ends, and begins
// the stretch that the next ones are about; nil = the primary was not asked.
func (c *cycle) serverFacts(last *Info) *policy.ServerFacts {
	if c.server == nil || c.primary(last) == nil {
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
