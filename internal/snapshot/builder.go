package snapshot

import (
	"math/bits"
	"slices"
	"strings"
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
	examples []examples // by rule
	business *businesses
}

// dbBuilder gathers a database, by the strata of estimate.go.
type dbBuilder struct {
	db         int
	names      uint64 // those that are known to be gone left out
	certain    uint64 // of these, the ones that are in no sample
	detailed   uint64 // of the others, the ones whose type and TTL were asked for
	broken     uint64
	memory     memoryDraw
	types      [keyspace.NumTypes]*typeBuilder // nil = no key of the type yet
	namespaces map[int]*tally                  // by index of the policy's
	ttl        [2]Histogram                    // of the certain and of the detailed ones
}

// typeBuilder gathers the keys of a type.
type typeBuilder struct {
	keys                       [2]uint64 // certain and detailed ones
	certain, candidates, small stratum
	big                        [policy.NumSeverities]BigStats
}

// stratum are keys whose bytes are known and count alike.
type stratum struct {
	moments
	memory, elements Histogram
}

// tally counts a namespace's violations by rule: of what needs a TTL those of
// the certain and of the detailed keys, of all else those of every key.
type tally struct {
	certain, detailed []uint64
}

// Draw is how a key came to be looked at in a cycle.
type Draw uint8

// The draws. A key without any was named by SCAN, no more.
const (
	Certain  Draw = 1 << iota // measured in every cycle, or never
	Measured                  // its bytes are in this cycle's sample
	Detailed                  // its type and TTL are in the sample
)

// NewBuilder starts a cycle's snapshot. The top lists hold n keys each, and
// those of the previous snapshot (nil = none) that have not left yet.
func NewBuilder(p *policy.Policy, finds *bigkeys.Finds, n int, previous *Snapshot, started time.Time) *Builder {
	if previous == nil {
		previous = &Snapshot{}
	}
	return &Builder{
		policy:   p,
		finds:    finds,
		started:  started,
		dbs:      map[int]*dbBuilder{},
		bytes:    newRanking(n, previous.TopBytes),
		elements: newRanking(n, previous.TopElements),
		examples: make([]examples, len(p.Rules())),
		business: newBusinesses(),
	}
}

// Add judges a key, seen at now, and counts it. It does not keep the key.
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
	b.addDetail(db, k, draw)
	if k.Has(keyspace.FactBytes) && draw&(Certain|Measured) != 0 {
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
		n := len(b.policy.Rules())
		t = &tally{certain: make([]uint64, n), detailed: make([]uint64, n)}
		db.namespaces[verdict.Namespace] = t
	}
	for rules := verdict.Rules; rules != 0; rules &= rules - 1 {
		rule := bits.TrailingZeros64(rules)
		b.examples[rule].offer(k)
		switch {
		case !sampled(b.policy.Rules()[rule]), draw&Certain != 0:
			t.certain[rule]++
		case draw&Detailed != 0:
			t.detailed[rule]++
		}
	}
}

// sampled tells whether a rule's violations are estimated from the detailed
// keys. Candidates' TTLs are known, too: counting them would favour big keys.
func sampled(rule policy.Rule) bool { return rule.Needs&keyspace.FactTTL != 0 }

func (b *Builder) addDetail(db *dbBuilder, k *keyspace.Key, draw Draw) {
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
	db, ok := b.dbs[n]
	if !ok {
		db = &dbBuilder{db: n, namespaces: map[int]*tally{}}
		db.ttl = [2]Histogram{newHistogram(ttlBounds), newHistogram(ttlBounds)}
		b.dbs[n] = db
	}
	return db
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

// Outcome is what the scan knows of a cycle beyond its keys.
type Outcome struct {
	Completed time.Time
	Suspect   []string
	Coverage  float64
	Available keyspace.Available  // facts that could be had in this cycle
	Primary   *policy.ServerFacts // but Businesses, which Finish fills in; nil = it was not asked
	Calls     map[string]Usage    // of the primary, see Server
}

// Finish makes the snapshot. The builder must not be used any more.
func (b *Builder) Finish(o Outcome) *Snapshot {
	s := &Snapshot{
		Started:   b.started,
		Completed: o.Completed,
		Suspect:   o.Suspect,
		Coverage:  o.Coverage,
		Evaluated: b.policy.Evaluated(o.Available),
	}
	if o.Primary != nil {
		o.Primary.Businesses = b.business.large()
	}
	s.Server = Server{Rules: make([]ServerRule, len(s.Evaluated)), Calls: o.Calls}
	for i, finding := range b.policy.CheckServer(o.Primary) {
		if r := b.policy.Rules()[i]; r.AboutServer() {
			settings := b.policy.Settings(0, i)
			words, _ := r.Words(settings.Values)
			s.Server.Rules[i] = ServerRule{Finding: finding, Level: settings.Level, Violated: words}
			s.Evaluated[i] = finding != policy.NotJudged
		}
	}
	for _, db := range b.dbs {
		s.DBs = append(s.DBs, db.finish(b.policy, o.Available))
	}
	slices.SortFunc(s.DBs, func(x, y DB) int { return x.DB - y.DB })
	holdsKeys := func(db int) bool { _, ok := b.dbs[db]; return ok }
	s.TopBytes = b.bytes.finish(holdsKeys)
	s.TopElements = b.elements.finish(holdsKeys)
	for _, e := range b.examples {
		s.Examples = append(s.Examples, e)
	}
	return s
}

func (d *dbBuilder) finish(p *policy.Policy, available keyspace.Available) DB {
	db := DB{DB: d.db, NamingBroken: d.broken, Named: d.names}
	rest, detailed := float64(d.names-d.certain), float64(d.detailed)
	d.memory.rest = rest
	if available[keyspace.Unknown]&keyspace.FactTTL != 0 && (detailed > 0 || rest == 0) {
		db.TTL = &d.ttl[0]
		db.TTL.weighted(&d.ttl[1], ratio(rest, detailed))
	}
	db.Bytes = d.memory.total()
	for i := range d.types {
		if t := d.types[i]; t != nil {
			db.Bytes.Value += t.certain.sum
		}
		db.Types[i] = d.finishType(keyspace.Type(i), p, available)
	}
	for index, t := range d.namespaces {
		n := Namespace{Name: p.Namespaces()[index].Name}
		for i, rule := range p.Rules() {
			counted := Estimate{}
			switch {
			case !p.Judges(index, i):
				counted = unknown
			case sampled(rule):
				counted = proportion(float64(t.detailed[i]), detailed, rest)
			}
			n.Violations = append(n.Violations, counted.plus(float64(t.certain[i])))
			n.Levels = append(n.Levels, p.Settings(index, i).Level)
		}
		db.Namespaces = append(db.Namespaces, n)
	}
	slices.SortFunc(db.Namespaces, func(a, b Namespace) int { return strings.Compare(a.Name, b.Name) })
	return db
}

func (d *dbBuilder) finishType(t keyspace.Type, p *policy.Policy, available keyspace.Available) TypeStats {
	b := d.types[t]
	if b == nil {
		b = &typeBuilder{}
	}
	rest := d.memory.rest
	stats := TypeStats{Keys: proportion(float64(b.keys[1]), float64(d.detailed), rest).plus(float64(b.keys[0]))}
	if t == keyspace.Unknown && !stats.Keys.Known() {
		stats.Keys = Estimate{Value: rest + float64(b.keys[0])} // of no key of the sample
	}
	if facts := available[t]; facts&keyspace.FactBytes != 0 && (d.memory.measured.n > 0 || rest == 0 || t == keyspace.Unknown) {
		bytes := d.memory.ofType(&b.candidates.moments, &b.small.moments).plus(b.certain.sum)
		if bytes.Value > 0 || stats.Keys.Value == 0 { // else none of its keys can be measured
			stats.Bytes = &bytes
		}
	}
	scale := ratio(rest, d.memory.measured.n)
	spread := scale * ratio(d.memory.small.n, d.memory.detailed.n)
	join := func(certain, candidates, small *Histogram) *Histogram {
		certain.weighted(candidates, scale)
		certain.weighted(small, spread)
		if certain.Count() == 0 {
			return nil
		}
		return certain
	}
	stats.Memory = join(&b.certain.memory, &b.candidates.memory, &b.small.memory)
	if available[t]&keyspace.FactLength != 0 {
		stats.Elements = join(&b.certain.elements, &b.candidates.elements, &b.small.elements)
	}
	if p.JudgesBig(t, available) {
		stats.Big = &b.big
	}
	return stats
}

// ratio is how many keys each of n sampled ones stands for.
func ratio(of, n float64) float64 {
	if n == 0 {
		return 0
	}
	return of / n
}
