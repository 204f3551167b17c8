package scanner

import (
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/state"
)

const (
	// maxTouches is how many keys' touches are remembered, some 80 bytes each.
	maxTouches = 1 << 16

	// idleError is by how much an idle time may be off: a server counts seconds,
	// by a clock that it looks at now and then.
	idleError = 2 * time.Second
)

// touches remembers what our own length commands do to idle times, where the
// server has no NO-TOUCH: each resets that of a candidate, so that in the next
// cycle a key which nobody uses looks as if somebody did.
type touches struct {
	last map[bigkeys.ID]touch
	full bool // in this cycle: of some keys the idle time is not known
}

// touch is the last look at a key, and the last access before it that was not
// ours.
type touch struct {
	at, accessed time.Time
	cycle        int
}

// matter tells whether our length commands touch keys of a server whose idle
// times are asked for.
func (t *touches) matter(closer keyspace.Facts, session Session) bool {
	return closer&keyspace.FactIdle != 0 && session.Capabilities()[keyspace.CmdNoTouch] == snapshot.Denied
}

// remember is what a restart needs to know: to the server, all that we touched
// looks used since.
func (t *touches) remember() []state.Touch {
	list := make([]state.Touch, 0, len(t.last))
	for id, last := range t.last {
		list = append(list, state.Touch{DB: id.DB, Hash: id.Hash, At: last.at.Unix(), Accessed: last.accessed.Unix()})
	}
	return list
}

// restore takes over what the last run remembered up to cycle n.
func (t *touches) restore(list []state.Touch, n int) {
	t.last = make(map[bigkeys.ID]touch, min(len(list), maxTouches))
	for _, last := range list[:min(len(list), maxTouches)] {
		t.last[bigkeys.ID{DB: last.DB, Hash: last.Hash}] = touch{time.Unix(last.At, 0), time.Unix(last.Accessed, 0), n}
	}
}

// begin starts cycle number n of which k together see every key: what none of
// the last k saw again is gone.
func (t *touches) begin(n, k int) {
	t.full = false
	for id, last := range t.last {
		if n-last.cycle > k {
			delete(t.last, id)
		}
	}
}

// look corrects the idle time of a permanent key that is touched now, in cycle n.
func (t *touches) look(k *keyspace.Key, n int, now time.Time) {
	if !k.Has(keyspace.FactIdle|keyspace.FactTTL) || k.TTL != keyspace.NoTTL {
		return
	}
	id := bigkeys.ID{DB: k.DB, Hash: k.Hash}
	accessed := now.Add(-k.Idle)
	last, ok := t.last[id]
	if ok && accessed.Before(last.at.Add(idleError)) {
		accessed = last.accessed // by nobody but us since
		k.Idle = now.Sub(accessed)
	}
	if !ok && len(t.last) >= maxTouches {
		t.full = true
		return
	}
	if t.last == nil {
		t.last = map[bigkeys.ID]touch{}
	}
	t.last[id] = touch{now, accessed, n}
}
