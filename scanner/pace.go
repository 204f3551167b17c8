package scanner

import "time"

const (
	// quantum is how much sleep is gathered before it is taken: a few long
	// sleeps leave the server's caches warm for the pages between them, and give
	// a quarter more keys at the same duty than a short one after each page.
	quantum = 50 * time.Millisecond

	// minKeysPerSecond keeps a slow server from starving the scan: time spent
	// queueing behind others counts as busy, too.
	minKeysPerSecond = 500

	// What a page costs the server at the least, measured: noise in the round
	// trip must not free the brake.
	busyPerName    = 1300 * time.Nanosecond
	busyPerCommand = 800 * time.Nanosecond
)

// pacer holds the load budget: busy ÷ wall ≤ duty.
type pacer struct {
	duty             float64       // share of one server core; 1 = no sleep
	maxKeysPerSecond float64       // 0 = no such limit
	leastPing        time.Duration // of the present connection
	owed             time.Duration // sleep that is due; negative = slept too long
	busy             time.Duration // server time spent on us, in all
}

// charge accounts for one exchange: how long it took in how many round trips,
// and what was asked.
func (p *pacer) charge(took time.Duration, roundTrips, names, commands int) {
	least := time.Duration(names)*busyPerName + time.Duration(commands)*busyPerCommand
	busy := max(took-time.Duration(roundTrips)*p.leastPing, least)
	p.busy += busy

	sleep := time.Duration(float64(busy) * (1/p.duty - 1))
	if names > 0 {
		sleep = min(sleep, max(0, timeFor(names, minKeysPerSecond)-took))
		if p.maxKeysPerSecond > 0 {
			sleep = max(sleep, timeFor(names, p.maxKeysPerSecond)-took)
		}
	}
	p.owed += sleep
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
