package scanner

import (
	"slices"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/snapshot"
)

const (
	// quantum is how much sleep is gathered before it is taken: a few long
	// sleeps leave the server's caches warm for the pages between them, and give
	// a quarter more keys at the same duty than a short one after each page.
	quantum = 50 * time.Millisecond

	// minKeysPerSecond keeps a slow server from starving the scan: time spent
	// queueing behind others counts as busy, too.
	minKeysPerSecond = 500

	// What the server spends on a name and a command at the least, measured,
	// until its own statistics tell: noise in the round trip must not free the
	// brake. Of each, overhead is the part that they do not count: reading,
	// parsing and writing.
	busyPerName    = 1300 * time.Nanosecond
	busyPerCommand = 800 * time.Nanosecond
	overhead       = 400 * time.Nanosecond

	// maxCorrection bounds what the server's statistics may make of these.
	maxCorrection = 100

	// maxStretch is how many times its model cost an exchange may count where
	// the network's jitter drowns what it really took.
	maxStretch = 2

	// jitterWeight is how many PINGs the average of the jitter forgets over.
	jitterWeight = 8

	// minSample is how many commands a correction must rest on.
	minSample = 1000

	// slowPage is how long an exchange may take beyond the round trip before the
	// next page asks for half as many names; after calmPages in a row that took a
	// quarter of it, jitter aside, for twice as many.
	slowPage  = 50 * time.Millisecond
	calmPages = 50
	minCount  = 10

	// maxContactSleep is the longest sleep for an exchange without names. A PING
	// that took seconds says that the server hung, not that we burdened it.
	maxContactSleep = time.Second

	// slowDown is how much longer the scan sleeps while the server suffers.
	slowDown = 2
)

// pacer holds the load budget: busy ÷ wall ≤ duty.
type pacer struct {
	duty             float64 // share of one server core; 1 = no sleep
	maxKeysPerSecond float64 // 0 = no such limit

	leastPing time.Duration // of the present connection
	jitter    time.Duration // by how much PINGs exceed it, on average
	suffering bool          // the own PING takes twice its time

	perName, perCommand time.Duration // model cost; 0 = not corrected yet
	count, calm         int           // names per page now, fast pages in a row

	owed time.Duration // sleep that is due; negative = slept too long
	busy time.Duration // server time spent on us, in all
}

// connected forgets what was known of the last connection's round trips.
func (p *pacer) connected() { p.leastPing, p.jitter, p.suffering = 0, 0, false }

// pinged takes some PINGs in a row into account: the least of them is the
// network's and the server's, by how much the others exceed it is noise.
func (p *pacer) pinged(took []time.Duration) {
	least := max(slices.Min(took), 1)
	first := p.leastPing == 0
	if first || least < p.leastPing {
		p.leastPing = least
	}
	for i, t := range took {
		weight := time.Duration(jitterWeight)
		if first {
			weight = time.Duration(i + 1) // their mean
		}
		p.jitter += (t - p.leastPing - p.jitter) / weight
	}
	p.suffering = least > 2*p.leastPing+time.Millisecond && p.duty < 1
}

// charge accounts for one exchange: how long it took in how many round trips,
// and what was asked.
func (p *pacer) charge(took time.Duration, roundTrips, names, commands int) {
	model := p.model(names, commands)
	busy := max(took-time.Duration(roundTrips)*p.leastPing, model)
	if p.jitter > maxStretch*model {
		// PINGs vary by more than this can have cost: its time tells nothing.
		busy = min(busy, maxStretch*model)
	}
	p.busy += busy

	// The network's share of the exchange is wall time already.
	wall := float64(busy) / p.duty
	if p.suffering {
		wall *= slowDown
	}
	sleep := time.Duration(min(wall, float64(time.Hour))) - took
	if names == 0 {
		sleep = min(sleep, maxContactSleep)
	} else {
		sleep = min(sleep, timeFor(names, minKeysPerSecond)-took)
		if p.maxKeysPerSecond > 0 {
			sleep = max(sleep, timeFor(names, p.maxKeysPerSecond)-took)
		}
	}
	p.owed += max(sleep, 0)
}

func (p *pacer) model(names, commands int) time.Duration {
	perName, perCommand := busyPerName, busyPerCommand
	if p.perName > 0 {
		perName = p.perName
	}
	if p.perCommand > 0 {
		perCommand = p.perCommand
	}
	return time.Duration(names)*perName + time.Duration(commands)*perCommand
}

// correct derives the model from the server's statistics over a stretch of
// time: used is what all clients called meanwhile, sent and names what we did.
func (p *pacer) correct(used [keyspace.NumCommands]snapshot.Usage, sent [keyspace.NumCommands]uint64, names uint64) {
	if scan := used[keyspace.CmdScan]; names >= minSample && scan.Calls > 0 {
		ours := scan.Time / time.Duration(scan.Calls) * time.Duration(sent[keyspace.CmdScan])
		p.perName = corrected(ours/time.Duration(names), busyPerName)
	}
	var spent time.Duration
	var commands uint64
	for cmd := keyspace.CmdScan + 1; cmd < keyspace.NumCommands; cmd++ {
		if u := used[cmd]; u.Calls > 0 && keyspace.Command(cmd) != keyspace.CmdInfo {
			spent += time.Duration(float64(u.Time) / float64(u.Calls) * float64(sent[cmd]))
			commands += sent[cmd]
		}
	}
	if commands >= minSample {
		p.perCommand = corrected(spent/time.Duration(commands), busyPerCommand)
	}
}

func corrected(executing, usual time.Duration) time.Duration {
	return min(max(executing+overhead, usual/2), maxCorrection*usual)
}

// firstCount is how many names the first page of a cycle asks for.
func (p *pacer) firstCount(limit int) int {
	if p.count == 0 || p.count > limit {
		p.count = limit
	}
	return p.count
}

// tooMuch takes it that the last page was more than the server bears.
func (p *pacer) tooMuch(limit int) {
	p.count, p.calm = max(p.firstCount(limit)/2, min(minCount, limit)), 0
}

// pageCount is how many names the next page asks for, given how long the last
// one took.
func (p *pacer) pageCount(took time.Duration, roundTrips, limit int) int {
	p.firstCount(limit)
	switch took -= time.Duration(roundTrips) * p.leastPing; {
	case took > slowPage:
		p.tooMuch(limit)
	case took > slowPage/4+2*p.jitter:
		p.calm = 0
	default:
		if p.calm++; p.calm >= calmPages {
			p.count, p.calm = min(2*p.count, limit), 0
		}
	}
	return p.count
}

// due is how long to sleep now.
func (p *pacer) due() time.Duration {
	if p.owed < quantum {
		return 0
	}
	return p.owed
}

// slept pays back. Oversleeping is credited up to one quantum: a machine that
// was suspended must not be followed by a burst.
func (p *pacer) slept(d time.Duration) {
	p.owed = max(p.owed-d, -quantum)
}

func timeFor(names int, perSecond float64) time.Duration {
	return time.Duration(float64(names) / perSecond * float64(time.Second))
}
