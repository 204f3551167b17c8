package snapshot

import (
	"math/bits"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// Builder gathers a cycle's keys into a Snapshot. It keeps no key: what it
// remembers of one are numbers, and copies of the few names that are listed.
type Builder struct {
	policy   *policy.Policy
	finds    *bigkeys.Finds
	started  time.Time
	dbs      map[int]*dbBuilder
	bytes    *ranking
	elements *ranking
	hot      *ranking
	examples []examples     // by rule
	basis    []policy.Basis // by rule
	business *businesses
	current  *dbBuilder // that the last key was of
	minutes  minutes    // of current
}

// dbBuilder gathers a database, by the strata of estimate.go.
type dbBuilder struct {
	db         int
	names      uint64 // those that are known to be gone left out
	certain    uint64 // of these, the ones that are in no sample
	detailed   uint64 // of the others, the ones whose type and TTL were asked for
	broken     uint64
	memory     memoryDraw
	fixed      fixedDraw
	types      [keyspace.NumTypes]*typeBuilder // nil = no key of the type yet
	namespaces map[int]tally                   // by index of policy.Namespaces
	ttl        [2]Histogram                    // of the certain and of the detailed ones
	peak       Peak
	clustered  [2]uint64    // of the certain and of the detailed ones
	idle       [3]Histogram // of the certain ones, candidates and the fixed sample
}

// typeBuilder gathers the keys of a type.
type typeBuilder struct {
	keys                       [2]uint64 // certain and detailed ones
	certain, candidates, small stratum
	big                        [policy.NumSeverities]BigStats
	encoded                    *[keyspace.NumEncodings]hits // nil = no key yet
}

// stratum are keys whose bytes are known and count alike.
type stratum struct {
	moments
	memory, elements Histogram
}

// tally counts a namespace's violations by rule.
type tally []hits

// hits are the keys that have a property. Which of the three is counted depends
// on the property: a name is of no sample, so that all of its hits are certain.
type hits struct {
	certain   uint64
	candidate uint64
	sampled   uint64 // in the detailed or in the fixed sample
}

// Draw is how a key came to be looked at in a cycle.
type Draw uint8

// The draws. A key without any was named by SCAN, no more.
const (
	Certain  Draw = 1 << iota // measured in every cycle, or never
	Measured                  // its bytes are in this cycle's sample
	Detailed                  // its type and TTL are in the sample
	Fixed                     // what OBJECT tells of it is in the fixed sample
)

// NewBuilder starts a cycle's snapshot. The top lists hold n keys each, and
// those of the previous snapshot (nil = none) that have not left yet.
func NewBuilder(p *policy.Policy, finds *bigkeys.Finds, n int, previous *Snapshot, started time.Time) *Builder {
	if previous == nil {
		previous = &Snapshot{}
	}
	b := &Builder{
		policy:   p,
		finds:    finds,
		started:  started,
		dbs:      map[int]*dbBuilder{},
		bytes:    newRanking(n, previous.TopBytes),
		elements: newRanking(n, previous.TopElements),
		hot:      newRanking(n, previous.TopFrequency),
		examples: make([]examples, len(p.Rules())),
		business: newBusinesses(),
		minutes:  minutes{first: started.Unix() / 60},
	}
	for _, r := range p.Rules() {
		b.basis = append(b.basis, r.Basis())
	}
	return b
}

// Add judges a key, seen at now, and counts it. It does not keep the key. The
// keys of a database come one after the other.
func (b *Builder) Add(k *keyspace.Key, draw Draw, now time.Time) {
	verdict := b.policy.Check(k)
	namespace := b.policy.Namespaces()[verdict.Namespace].Name
	db := b.db(k.DB)
	db.names++
	b.business.add(k.Name)
	if verdict.Naming {
		db.broken++
	}
	b.addViolations(db, k, verdict, draw)
	b.addDetail(db, k, draw, now)
	b.addFixed(db, k, draw)
	if k.Has(keyspace.FactFrequency) {
		b.hot.offer(k, namespace, int64(k.Frequency), now)
	}
	if draw&(Certain|Measured) == 0 {
		return // its bytes are only known as it is in the fixed sample
	}
	if k.Has(keyspace.FactBytes) {
		b.addBytes(db, k, verdict.Namespace, draw, now)
	}
	if verdict.Big != policy.Healthy && b.finds.Add(k, namespace, verdict.Big, now) {
		big := &db.of(k.Type).big[verdict.Big]
		big.Keys++
		big.Bytes += uint64(k.Bytes)
	}
}

func (b *Builder) addViolations(db *dbBuilder, k *keyspace.Key, verdict policy.Verdict, draw Draw) {
	t, ok := db.namespaces[verdict.Namespace]
	if !ok {
		t = make(tally, len(b.basis))
		db.namespaces[verdict.Namespace] = t
	}
	for rules := verdict.Rules; rules != 0; rules &= rules - 1 {
		rule := bits.TrailingZeros64(rules)
		basis := b.basis[rule]
		if basis == policy.OnSizes && draw&(Certain|Measured) == 0 {
			continue // counted when it is its class' turn
		}
		b.examples[rule].offer(k)
		switch {
		case basis == policy.OnNames, basis == policy.OnSizes, draw&Certain != 0:
			t[rule].certain++
		case basis == policy.OnFixed:
			t[rule].count(b.policy.Candidate(k), draw)
		case draw&Detailed != 0:
			// Candidates' TTLs are known, too: counting them would favour big keys.
			t[rule].sampled++
		}
	}
}

// count adds a key of the rest that has a property which OBJECT tells.
func (h *hits) count(candidate bool, draw Draw) {
	switch {
	case candidate && draw&Measured != 0:
		h.candidate++
	case !candidate && draw&Fixed != 0:
		h.sampled++
	}
}

// addFixed counts a key for what OBJECT tells.
func (b *Builder) addFixed(db *dbBuilder, k *keyspace.Key, draw Draw) {
	candidate := b.policy.Candidate(k)
	if draw&Certain == 0 {
		if draw&Measured != 0 && candidate {
			db.fixed.candidates++
		} else if draw&Measured != 0 {
			db.fixed.small++
		}
		if draw&Fixed != 0 && !candidate {
			db.fixed.sampled++
		}
	}
	if k.Has(keyspace.FactEncoding) {
		t := db.of(k.Type)
		if t.encoded == nil {
			t.encoded = new([keyspace.NumEncodings]hits)
		}
		if h := &t.encoded[k.Encoding]; draw&Certain != 0 {
			h.certain++
		} else {
			h.count(candidate, draw)
		}
	}
	if k.Has(keyspace.FactIdle|keyspace.FactTTL) && k.TTL == keyspace.NoTTL {
		switch idle := k.Idle.Seconds(); {
		case draw&Certain != 0:
			db.idle[0].observe(idle)
		case candidate && draw&Measured != 0:
			db.idle[1].observe(idle)
		case !candidate && draw&Fixed != 0:
			db.idle[2].observe(idle)
		}
	}
}

func (b *Builder) addDetail(db *dbBuilder, k *keyspace.Key, draw Draw, now time.Time) {
	of := 1
	switch {
	case draw&Certain != 0:
		db.certain++
		of = 0
	case draw&Detailed != 0:
		db.detailed++
	default:
		return
	}
	db.of(k.Type).keys[of]++
	if k.Has(keyspace.FactTTL) && k.TTL != keyspace.NoTTL {
		db.ttl[of].observe(k.TTL.Seconds())
		b.minutes.observe(of, k, now)
	}
}

// addBytes puts a measured key into its stratum. Which one depends on its size
// and namespace alone: above the lowest floor of its namespace every measured key
// is asked for its type.
func (b *Builder) addBytes(db *dbBuilder, k *keyspace.Key, namespace int, draw Draw, now time.Time) {
	name := b.policy.Namespaces()[namespace].Name
	b.bytes.offer(k, name, k.Bytes, now)
	size, t := float64(k.Bytes), db.of(k.Type)
	var s *stratum
	switch {
	case draw&Certain != 0:
		s = &t.certain
	case k.Bytes >= b.policy.Floor(namespace, keyspace.Unknown):
		db.memory.measured.add(size)
		s = &t.candidates
	default:
		db.memory.measured.add(size)
		db.memory.small.add(size)
		if draw&Detailed == 0 {
			return
		}
		db.memory.detailed.add(size)
		s = &t.small
	}
	s.add(size)
	s.memory.observe(size)
	if !k.Type.Collection() {
		return
	}
	if k.Has(keyspace.FactLength) {
		s.elements.observe(float64(k.Length))
		b.elements.offer(k, name, k.Length, now)
	} else if k.Bytes < b.policy.Floor(namespace, k.Type) {
		s.elements.observeSmall()
	}
}

func (b *Builder) db(n int) *dbBuilder {
	if b.current != nil && b.current.db == n {
		return b.current
	}
	b.endDB()
	db, ok := b.dbs[n]
	if !ok {
		db = &dbBuilder{db: n, namespaces: map[int]tally{}}
		db.ttl = [2]Histogram{newHistogram(ttlBounds), newHistogram(ttlBounds)}
		db.idle = [3]Histogram{newHistogram(idleBounds), newHistogram(idleBounds), newHistogram(idleBounds)}
		b.dbs[n] = db
	}
	b.current = db
	return db
}

// endDB takes over what is counted of one database at a time.
func (b *Builder) endDB() {
	db := b.current
	if db == nil {
		return
	}
	scale := ratio(float64(db.names-db.certain), float64(db.detailed))
	expiring := float64(db.ttl[0].Count()) + scale*float64(db.ttl[1].Count())
	rule, _ := b.policy.TTLClustered()
	db.peak, db.clustered = b.minutes.take(scale, expiring, rule)
}

// of is the builder of a type: a server may have thousands of databases with
// keys of one type each.
func (d *dbBuilder) of(typ keyspace.Type) *typeBuilder {
	t := d.types[typ]
	if t == nil {
		t = &typeBuilder{}
		for _, s := range []*stratum{&t.certain, &t.candidates, &t.small} {
			s.memory, s.elements = newHistogram(memoryBounds), newHistogram(elementsBounds)
		}
		d.types[typ] = t
	}
	return t
}
