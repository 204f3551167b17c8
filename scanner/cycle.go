package scanner

import (
	"context"
	"fmt"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/snapshot"
)

// maxDeniedKeys is how many keys may be closed to us by key patterns of the ACL
// before a cycle gives up: SCAN names them all, and each probe of one would be
// an entry in the server's ACL LOG.
const maxDeniedKeys = 100

// cycle is one walk over all databases of a node.
type cycle struct {
	*Scanner
	started time.Time
	first   Info // at the cycle's start
	total   int64
	names   int64 // that SCAN returned so far
	denied  int   // keys that the ACL closes to us
	builder *snapshot.Builder
	finds   *bigkeys.Finds
	sample  sample
	server  *serverProbe // nil = there is no primary to ask

	page       *Page
	draws      []snapshot.Draw // of page.Keys
	candidates []*keyspace.Key
	index      []int // of the candidates, in page.Keys
	problems   []fault.KeyProblem
}

func (c *cycle) run(ctx context.Context) error {
	c.state.begin(c.started)
	if err := c.open(ctx); err != nil {
		return err
	}
	first, err := c.look(ctx)
	if err != nil {
		return err
	}
	c.first = first
	c.tracker.Own(first.Slots)
	c.total, _ = first.keys()
	if c.server, err = c.probeServer(ctx, &first); err != nil {
		return err
	}
	previous := c.state.get().Snapshot
	c.sample = newSample(c.opts, c.tracker, previous, c.class, c.total)
	c.closer = closerFacts(&first, c.policy)
	c.touches.begin(c.class, c.sample.k)
	c.finds = c.tracker.Begin(c.started, c.sample.class, c.sample.k)
	c.builder = snapshot.NewBuilder(c.policy, c.finds, c.opts.TopKeys, previous, c.started)
	c.page = &Page{Count: c.pace.firstCount(c.opts.Count)}
	for _, db := range first.DBs {
		if err := c.patiently(ctx, func() error { return c.session.Select(ctx, db.DB) }); err != nil {
			return err
		}
		if err := c.walk(ctx, db); err != nil {
			return err
		}
	}
	last, err := c.look(ctx)
	if err != nil {
		return err
	}
	primary := c.endOfServer(ctx, &last)
	if err := ctxFault(ctx); err != nil {
		return err
	}
	c.publish(&last, primary)
	return nil
}

// walk scans one database from cursor 0 to cursor 0.
func (c *cycle) walk(ctx context.Context, db snapshot.DBInfo) error {
	p := c.page
	p.DB, p.Cursor, p.Scan, p.Keys = db.DB, 0, true, p.Keys[:0]
	end := newEndless(db)
	for {
		c.draw(db)
		if err := c.inspect(ctx, db); err != nil {
			return err
		}
		if err := c.judge(db); err != nil {
			return err
		}
		if !p.Scan {
			return nil
		}
		if err := end.check(p); err != nil {
			return err
		}
		c.names += int64(len(p.Next))
		c.state.page(c, len(p.Next))
		p.Keys, p.Next = p.Next, p.Keys[:0]
		// An empty page says nothing; only cursor 0 ends a walk.
		p.Cursor, p.Scan = p.NextCursor, p.NextCursor != 0
		if err := c.breathe(ctx); err != nil {
			return err
		}
	}
}

// endless notices a SCAN that would never end: what answers is no Redis, or a
// proxy that mixes up the cursors of several.
type endless struct {
	names, maxNames int64
	empty           int // pages in a row
}

// maxEmptyPages are as many as a table of 10⁹ buckets has that lost its keys:
// a SCAN visits ten buckets for each name that it may return.
const maxEmptyPages = 1 << 20

func newEndless(db snapshot.DBInfo) endless {
	return endless{maxNames: 10*max(db.Keys, 0) + 1_000_000}
}

func (e *endless) check(p *Page) error {
	e.names += int64(len(p.Next))
	if e.empty++; len(p.Next) > 0 {
		e.empty = 0
	}
	if p.NextCursor != 0 && p.NextCursor == p.Cursor || e.names > e.maxNames || e.empty > maxEmptyPages {
		return fault.Newf(fault.Protocol, "SCAN of db%d does not end: cursor %d after %d, %d names so far", p.DB, p.NextCursor, p.Cursor, e.names)
	}
	return nil
}

// detail are the facts that need a probe beyond MEMORY USAGE. Where INFO says
// that nothing expires, no TTL is asked for: see judge.
func detail(db snapshot.DBInfo) keyspace.Facts {
	if db.Expires == 0 {
		return keyspace.FactType
	}
	return keyspace.FactType | keyspace.FactTTL
}

// draw settles what is asked of each key of the page.
func (c *cycle) draw(db snapshot.DBInfo) {
	p := c.page
	p.Wants, c.draws = p.Wants[:0], c.draws[:0]
	for i := range p.Keys {
		draw, wants := c.sample.draw(&p.Keys[i]), keyspace.Facts(0)
		if draw&(snapshot.Certain|snapshot.Measured) != 0 {
			wants |= keyspace.FactBytes
		}
		if draw&(snapshot.Certain|snapshot.Detailed) != 0 {
			wants |= detail(db)
		}
		if draw&(snapshot.Certain|snapshot.Fixed) != 0 {
			wants |= keyspace.FactBytes | detail(db) | c.closer&^keyspace.FactHead
		}
		p.Wants, c.draws = append(p.Wants, wants), append(c.draws, draw)
	}
}

// inspect sends the page, then what its candidates lack, and charges the cost of
// both.
func (c *cycle) inspect(ctx context.Context, db snapshot.DBInfo) error {
	p := c.page
	var spent cost
	err := c.patiently(ctx, func() error {
		return c.measure(&spent, func() (int, error) {
			err := c.session.Page(ctx, p)
			return p.RoundTrips, err
		})
	})
	if err == nil {
		p.Count = c.pace.pageCount(spent.took, spent.trips, c.opts.Count)
		err = c.inspectCandidates(ctx, db, &spent)
	}
	if err != nil && fault.ReasonOf(err) == fault.Timeout {
		c.pace.tooMuch(c.opts.Count)
	}
	// The first page brings names only, the last one inspects keys only.
	c.pace.charge(spent.took, spent.trips, max(len(p.Keys), len(p.Next)), spent.commands)
	return err
}

// judge hands the page's keys to the builder.
func (c *cycle) judge(db snapshot.DBInfo) error {
	p, now := c.page, time.Now()
	var problems [fault.NumKeyProblems]uint64
	defer func() { c.state.problems(&problems) }()
	for i := range p.Keys {
		k := &p.Keys[i]
		problems[p.Problems[i]]++
		switch p.Problems[i] {
		case fault.Gone:
			continue
		case fault.Moved:
			c.shared.keyMoved()
			continue
		case fault.OversizedName, fault.OddReply:
			c.draws[i] = snapshot.Certain // it can never be measured
		case fault.KeyPermission:
			c.draws[i] = snapshot.Certain
			if c.denied++; c.denied > maxDeniedKeys {
				return fault.Newf(fault.Permission, "the ACL user may not read more than %d keys, %s among them: grant it all of them (%%R~*, or ~* before Redis 7)", maxDeniedKeys, k.Label())
			}
		}
		if db.Expires == 0 && (c.draws[i]&^snapshot.Measured != 0 || k.Has(keyspace.FactType)) {
			k.Known, k.TTL = k.Known|keyspace.FactTTL, keyspace.NoTTL
		}
		c.builder.Add(k, c.draws[i], now)
	}
	return nil
}

// breathe sleeps when enough sleep is owed, and does what is due meanwhile.
func (c *cycle) breathe(ctx context.Context) error {
	due := c.pace.due()
	if due == 0 && time.Since(c.contacted) < contactEvery && time.Now().Before(c.lookDue) {
		return ctxFault(ctx)
	}
	return c.wait(ctx, due)
}

// publish makes the snapshot and hands it over, together with what it says of
// big keys: a suspect cycle raises no event. primary is what that one told; nil =
// nothing.
func (c *cycle) publish(last, primary *Info) {
	now := time.Now()
	coverage, suspect := coherence(&c.first, last, c.names)
	if c.shared.movedSince(c.started) {
		suspect = append(suspect, "slots are moving: keys were found on a node that does not hold them")
	}
	outcome := snapshot.Outcome{
		Completed: now,
		Suspect:   suspect,
		Coverage:  coverage,
		Available: available(c.session.Capabilities(), c.told()),
		Primary:   c.serverFacts(primary),
	}
	if outcome.Primary != nil {
		outcome.Calls = primary.Calls
	}
	s := c.builder.Finish(outcome)
	if len(suspect) == 0 {
		c.tracker.Commit(c.finds, now)
	}
	c.class++
	c.state.publish(c, s, c.tracker.View())
	if len(suspect) == 0 {
		c.remember() // behind the findings: a slow disk must not hold them up
	}
	c.report.completed(c.state.id(), s, c.session.Capabilities())
}

// maxDrift is how far the names seen may be from DBSIZE, beyond what expired.
const maxDrift = 0.1

// minDrift is the number of keys that may differ in any case: in a small
// keyspace a handful of writes is more than 10 %.
const minDrift = 100

// coherence compares a cycle's names with the server's own counts and looks for
// signs that the data was replaced under the walk.
func coherence(first, last *Info, names int64) (coverage float64, suspect []string) {
	if last.Flushes > first.Flushes {
		suspect = append(suspect, "FLUSHALL, FLUSHDB or SWAPDB was called during the cycle")
	}
	if !last.Slots.Equal(first.Slots) {
		suspect = append(suspect, "slots were moved during the cycle")
	}
	if last.PrimaryLinkDown || first.PrimaryLinkDown {
		suspect = append(suspect, "the replica has lost its primary, its data may be old")
	}
	before, known := first.keys()
	after, alsoKnown := last.keys()
	if !known || !alsoKnown {
		return 1, suspect
	}
	size := max(before, after)
	coverage = 1
	if size > 0 {
		coverage = float64(names) / float64(size)
	}
	went := max(0, last.ExpiredKeys-first.ExpiredKeys) + max(0, last.EvictedKeys-first.EvictedKeys)
	slack := max(int64(maxDrift*float64(size)), minDrift)
	if names+went < size-slack || names > size+slack+went {
		suspect = append(suspect, fmt.Sprintf("%d names were seen where the server counts %d keys (%d expired or evicted meanwhile)", names, size, went))
	}
	return coverage, suspect
}

func ctxFault(ctx context.Context) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return nil
}

func total(counts [keyspace.NumCommands]uint64) uint64 {
	var n uint64
	for _, c := range counts {
		n += c
	}
	return n
}
