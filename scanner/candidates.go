package scanner

import (
	"context"
	"slices"
	"strings"
	"time"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// closerFacts are those of candidates and of the fixed sample that a server can
// tell. A replica's idle times and LFU counters tell nothing of its primary's,
// and a server keeps one of the two. Under the policies that evict what was
// least recently modified an idle time is that since the last write.
func closerFacts(info *Info, p *policy.Policy) keyspace.Facts {
	facts := keyspace.FactEncoding | p.Needs()&keyspace.FactHead
	switch eviction := info.EvictionPolicy; {
	case info.Role != "primary" || eviction == "" || strings.HasSuffix(eviction, "-lrm"):
	case strings.HasSuffix(eviction, "-lfu"):
		facts |= keyspace.FactFrequency
	default:
		facts |= keyspace.FactIdle
	}
	return facts
}

// told are the closer facts that the cycle could tell of every key.
func (c *cycle) told() keyspace.Facts {
	if c.touches.full {
		return c.closer &^ keyspace.FactIdle
	}
	return c.closer
}

// inspectCandidates asks the keys that are large enough to break a rule which
// needs it for what is missing: their type, which shows that most of them are too
// small for it, and then the others' TTL, length and what OBJECT tells. Length commands touch LRU and LFU where the server has no
// NO-TOUCH, so of the others only those of the fixed sample pay, where a rule
// looks into them.
func (c *cycle) inspectCandidates(ctx context.Context, db snapshot.DBInfo, spent *cost) error {
	rules := c.policy
	err := c.probe(ctx, spent, keyspace.FactType, func(k *keyspace.Key, _ snapshot.Draw) bool {
		return !k.Has(keyspace.FactType) && rules.Candidate(k)
	})
	if err != nil {
		return err
	}
	sampled := func(k *keyspace.Key, draw snapshot.Draw) bool {
		return draw&(snapshot.Certain|snapshot.Fixed) != 0 && rules.LooksInto(k)
	}
	err = c.probe(ctx, spent, detail(db)|keyspace.FactLength|c.closer&^keyspace.FactHead, func(k *keyspace.Key, draw snapshot.Draw) bool {
		return rules.Candidate(k) || sampled(k, draw)
	})
	if c.touches.matter(c.closer, c.session) {
		now := time.Now()
		for _, k := range c.candidates {
			c.touches.look(k, c.class, now)
		}
	}
	if err != nil || c.closer&keyspace.FactHead == 0 {
		return err
	}
	return c.probe(ctx, spent, keyspace.FactHead, func(k *keyspace.Key, draw snapshot.Draw) bool {
		return rules.Candidate(k) && rules.LooksInto(k) || sampled(k, draw)
	})
}

// probe gathers the page's keys that lack facts and sends for those.
func (c *cycle) probe(ctx context.Context, spent *cost, facts keyspace.Facts, lacks func(*keyspace.Key, snapshot.Draw) bool) error {
	p := c.page
	c.candidates, c.index = c.candidates[:0], c.index[:0]
	for i := range p.Keys {
		if k := &p.Keys[i]; p.Problems[i] == fault.NoProblem && lacks(k, c.draws[i]) {
			c.candidates, c.index = append(c.candidates, k), append(c.index, i)
		}
	}
	if len(c.candidates) == 0 {
		return nil
	}
	err := c.patiently(ctx, func() error {
		c.problems = slices.Grow(c.problems[:0], len(c.candidates))[:len(c.candidates)]
		clear(c.problems)
		return c.measure(spent, func() (int, error) { return 1, c.session.Inspect(ctx, c.candidates, facts, c.problems) })
	})
	for i, problem := range c.problems {
		if problem != fault.NoProblem {
			p.Problems[c.index[i]] = problem
		}
	}
	return err
}

// available derives the facts that could be had from the commands that were
// allowed, and those of closer facts that were asked for. A length is only asked
// of keys that MEMORY USAGE finds to be large enough.
func available(capabilities [keyspace.NumCommands]snapshot.Capability, closer keyspace.Facts) keyspace.Available {
	can := func(cmd keyspace.Command) bool { return capabilities[cmd] != snapshot.Denied }
	var common keyspace.Facts
	for _, by := range []struct {
		fact keyspace.Facts
		cmd  keyspace.Command
	}{
		{keyspace.FactBytes, keyspace.CmdMemoryUsage},
		{keyspace.FactTTL, keyspace.CmdPTTL},
		{keyspace.FactType, keyspace.CmdType},
		{closer & keyspace.FactEncoding, keyspace.CmdObjectEncoding},
		{closer & keyspace.FactIdle, keyspace.CmdObjectIdletime},
		{closer & keyspace.FactFrequency, keyspace.CmdObjectFreq},
	} {
		if can(by.cmd) {
			common |= by.fact
		}
	}
	var facts keyspace.Available
	for _, t := range keyspace.Types() {
		facts[t] = common
		if cmd, ok := keyspace.LengthCommand(t); ok && can(cmd) && common&keyspace.FactBytes != 0 {
			facts[t] |= keyspace.FactLength
		}
	}
	if can(keyspace.CmdGetRange) && common&keyspace.FactBytes != 0 {
		facts[keyspace.String] |= closer & keyspace.FactHead
	}
	return facts
}
