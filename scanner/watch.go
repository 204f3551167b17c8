package scanner

import (
	"cmp"
	"context"
	"slices"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
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
	list, err := s.watchList(ctx)
	if err != nil {
		return err
	}
	page := watchPage
	if s.pace.count > 0 {
		page = min(page, s.pace.count) // as the server bears it
	}
	for len(list) > 0 {
		n := 1
		for n < min(len(list), page) && list[n].ID.DB == list[0].ID.DB {
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
	if !finds.Empty() && s.tracker.Update(finds) {
		s.unsaved = true
	}
	s.state.looked(s.tracker.View(), s.pinned)
	if s.unsaved && time.Since(s.saved) >= saveEvery {
		s.remember()
	}
	return nil
}

// maxHintedDBs is in how many databases a hinted name is looked for: the slow log
// does not tell which one a key is in.
const maxHintedDBs = 16

// unmeasured is the size of a key that was not measured yet.
const unmeasured = -1

// watchList are the keys to look at, each once and by database: the big ones
// that are known by name, those that the policy names, and those that the slow
// log does.
func (s *Scanner) watchList(ctx context.Context) ([]bigkeys.Watched, error) {
	list, pinned := s.tracker.WatchList(), map[bigkeys.ID]snapshot.WatchedKey{}
	for _, w := range s.policy.Watch() {
		if !s.tracker.Owns(w.Name) {
			continue
		}
		id := bigkeys.ID{DB: w.DB, Hash: keyspace.HashName(w.Name)}
		last, known := s.pinned[id]
		if !known {
			last = snapshot.WatchedKey{DB: w.DB, Label: keyspace.Label(w.Name), Bytes: unmeasured}
		}
		pinned[id] = last
		// Its elements may change without its bytes: it is asked for both each time.
		list = append(list, bigkeys.Watched{ID: id, Name: w.Name, Bytes: unmeasured})
	}
	s.pinned = pinned
	if s.opts.SlowlogHints {
		names, err := s.slowKeys(ctx)
		if err != nil {
			return nil, err
		}
		dbs := s.state.get().Status.Info.DBs
		for _, db := range dbs[:min(len(dbs), maxHintedDBs)] {
			for _, name := range names {
				if !s.tracker.Owns(name) {
					continue
				}
				id := bigkeys.ID{DB: db.DB, Hash: keyspace.HashName(name)}
				list = append(list, bigkeys.Watched{ID: id, Name: name, Bytes: unmeasured})
			}
		}
	}
	// Of a key that is there for several reasons, the one with the least known
	// size wins: where that is none, the key is asked for everything.
	slices.SortFunc(list, func(a, b bigkeys.Watched) int {
		return cmp.Or(cmp.Compare(a.ID.DB, b.ID.DB), cmp.Compare(a.ID.Hash, b.ID.Hash), cmp.Compare(a.Bytes, b.Bytes))
	})
	return slices.CompactFunc(list, func(a, b bigkeys.Watched) bool { return a.ID == b.ID }), nil
}

func (s *Scanner) slowKeys(ctx context.Context) (names []string, err error) {
	var spent cost
	err = s.patiently(ctx, func() error {
		return s.measure(&spent, func() (int, error) {
			var err error
			names, err = s.session.SlowKeys(ctx)
			return 1, err
		})
	})
	s.pace.charge(spent.took, spent.trips, 0, spent.commands)
	return names, err
}

// lookAt measures some keys of one database. Of those that nobody named, more is
// only asked when MEMORY USAGE changed, which is to say that somebody wrote to
// them: a length command touches LRU and LFU where the server has no NO-TOUCH,
// and a key that is touched every few seconds would never be evicted.
func (s *Scanner) lookAt(ctx context.Context, list []bigkeys.Watched, finds *bigkeys.Finds) error {
	keys := make([]*keyspace.Key, len(list))
	for i, w := range list {
		keys[i] = &keyspace.Key{DB: w.ID.DB, Name: w.Name, NameBytes: int64(len(w.Name)), Hash: w.ID.Hash}
	}
	var spent cost
	defer func() { s.pace.charge(spent.took, spent.trips, 0, spent.commands) }()
	inspect := func(facts keyspace.Facts) error {
		problems := make([]fault.KeyProblem, len(keys))
		err := s.patiently(ctx, func() error {
			clear(problems)
			return s.measure(&spent, func() (int, error) { return 1, s.session.Inspect(ctx, keys, facts, problems) })
		})
		for i := range keys {
			switch {
			case err != nil:
			case problems[i] == fault.Gone:
				finds.Left(idOf(keys[i]), time.Now())
				s.pin(keys[i], 0)
				keys[i] = nil
			case problems[i] != fault.NoProblem:
				keys[i] = nil // the next cycle tells
			}
		}
		keys = slices.DeleteFunc(keys, func(k *keyspace.Key) bool { return k == nil })
		return err
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
	facts, touched := keyspace.FactType, s.touches.matter(s.closer, s.session)
	if touched {
		facts |= keyspace.FactTTL | keyspace.FactIdle
	}
	if err := inspect(facts); err != nil {
		return err
	}
	if err := inspect(keyspace.FactLength); err != nil {
		return err
	}
	for _, k := range keys {
		if touched {
			s.touches.look(k, s.class, time.Now())
		}
		verdict := s.policy.Check(k)
		s.pin(k, verdict.Namespace)
		switch {
		case !k.Has(keyspace.FactType):
		case verdict.Big != policy.Healthy:
			finds.Add(k, s.policy.Namespaces()[verdict.Namespace].Name, verdict.Big, time.Now())
		default:
			finds.Left(idOf(k), time.Now())
		}
	}
	return nil
}

func idOf(k *keyspace.Key) bigkeys.ID { return bigkeys.ID{DB: k.DB, Hash: k.Hash} }

// pin takes over what was found of a key, if the policy names it. One whose
// bytes are not known is gone.
func (s *Scanner) pin(k *keyspace.Key, namespace int) {
	w, pinned := s.pinned[idOf(k)]
	if !pinned {
		return
	}
	w.Namespace = s.policy.Namespaces()[namespace].Name
	w.Type, w.Bytes, w.Elements = keyspace.Unknown, unmeasured, unmeasured
	if k.Has(keyspace.FactType) {
		w.Type = k.Type
	}
	if k.Has(keyspace.FactBytes) {
		w.Bytes = k.Bytes
	}
	if k.Has(keyspace.FactLength) && k.Type.Collection() {
		w.Elements = k.Length
	}
	s.pinned[idOf(k)] = w
}
