package scanner

import (
	"context"
	"slices"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

const (
	// watchShare is the part of the load budget that the watch list may take:
	// where looks cost more, they are rarer.
	watchShare = 0.5

	// watchPage is how many keys a look asks for at once.
	watchPage = 100

	// saveEvery is how often events of the watch list are saved: each write of
	// the state file is of all of it.
	saveEvery = time.Minute
)

// lookAtWatched measures the keys of the watch list anew, when that is due, so
// that the end, the growth and the shrinking of a big key show at once, however
// long a cycle takes.
func (s *Scanner) lookAtWatched(ctx context.Context) error {
	started := time.Now()
	if started.Before(s.lookDue) {
		return nil
	}
	busy := s.pace.busy
	finds := s.tracker.Look(started)
	list := s.tracker.WatchList()
	for len(list) > 0 {
		n := 1
		for n < min(len(list), watchPage) && list[n].ID.DB == list[0].ID.DB {
			n++
		}
		if err := s.lookAt(ctx, list[:n], finds); err != nil {
			return err
		}
		list = list[n:]
		if due := s.pace.due(); due > 0 && len(list) > 0 {
			if err := s.sleep(ctx, due); err != nil {
				return err
			}
			s.pace.slept(due)
		}
	}
	every := time.Duration(float64(s.pace.busy-busy) / (s.pace.duty * watchShare))
	s.lookDue = started.Add(max(every, s.opts.WatchInterval))
	if finds.Empty() {
		return nil
	}
	moved := s.tracker.Update(finds)
	s.state.looked(s.tracker.View())
	if moved && time.Since(s.saved) >= saveEvery {
		s.remember()
	}
	return nil
}

// lookAt measures some keys of one database. Only of those whose MEMORY USAGE
// changed, which is to say that somebody wrote to them, is more asked: a length
// command touches LRU and LFU where the server has no NO-TOUCH, and a key that
// is touched every few seconds would never be evicted.
func (s *Scanner) lookAt(ctx context.Context, list []bigkeys.Watched, finds *bigkeys.Finds) error {
	keys := make([]*keyspace.Key, len(list))
	for i, w := range list {
		keys[i] = &keyspace.Key{DB: w.ID.DB, Name: w.Name, NameBytes: int64(len(w.Name)), Hash: w.ID.Hash}
	}
	var spent cost
	defer func() { s.pace.charge(spent.took, spent.trips, 0, spent.commands) }()
	ask := func(send func(problems []fault.KeyProblem) error) error {
		problems := make([]fault.KeyProblem, len(keys))
		err := s.patiently(ctx, func() error {
			clear(problems)
			return s.measure(&spent, func() (int, error) { return 1, send(problems) })
		})
		for i := range keys {
			switch {
			case err != nil:
			case problems[i] == fault.Gone:
				finds.Left(bigkeys.ID{DB: keys[i].DB, Hash: keys[i].Hash}, time.Now())
				keys[i] = nil
			case problems[i] != fault.NoProblem:
				keys[i] = nil // the next cycle tells
			}
		}
		keys = slices.DeleteFunc(keys, func(k *keyspace.Key) bool { return k == nil })
		return err
	}
	inspect := func(facts keyspace.Facts) error {
		return ask(func(problems []fault.KeyProblem) error { return s.session.Inspect(ctx, keys, facts, problems) })
	}

	bytes := make(map[string]int64, len(list))
	for _, w := range list {
		bytes[w.Name] = w.Bytes
	}
	if err := inspect(keyspace.FactBytes); err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(k *keyspace.Key) bool {
		return !k.Has(keyspace.FactBytes) || k.Bytes == bytes[k.Name]
	})
	if len(keys) == 0 {
		return nil
	}
	if err := inspect(keyspace.FactType); err != nil {
		return err
	}
	if err := ask(func(problems []fault.KeyProblem) error { return s.session.Lengths(ctx, keys, problems) }); err != nil {
		return err
	}
	for _, k := range keys {
		if !k.Has(keyspace.FactType) {
			continue
		}
		rules := s.policy
		if verdict := rules.Check(k); verdict.Big != policy.Healthy {
			finds.Add(k, rules.Namespaces()[verdict.Namespace].Name, verdict.Big, time.Now())
		} else {
			finds.Left(bigkeys.ID{DB: k.DB, Hash: k.Hash}, time.Now())
		}
	}
	return nil
}
