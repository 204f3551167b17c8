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
}

type dbBuilder struct {
	db         int
	types      [keyspace.NumTypes]typeBuilder
	namespaces map[string][]uint64 // violations by rule
	broken     uint64
	named      uint64
	ttl        Histogram
}

type typeBuilder struct {
	keys, bytes uint64
	memory      Histogram
	elements    Histogram
	big         [policy.NumSeverities]BigStats
}

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
	}
}

// Add judges a key, seen at now, and counts it. It does not keep the key.
func (b *Builder) Add(k *keyspace.Key, now time.Time) {
	verdict := b.policy.Check(k)
	namespace := b.policy.NamespaceOf(k)
	db := b.db(k.DB)
	db.named++
	if verdict.Naming {
		db.broken++
	}
	violations, ok := db.namespaces[namespace]
	if !ok {
		violations = make([]uint64, len(b.policy.Rules()))
		db.namespaces[namespace] = violations
	}
	for rules := verdict.Rules; rules != 0; rules &= rules - 1 {
		rule := bits.TrailingZeros64(rules)
		violations[rule]++
		b.examples[rule].offer(k)
	}
	if k.Has(keyspace.FactTTL) && k.TTL != keyspace.NoTTL {
		db.ttl.observe(k.TTL.Seconds())
	}

	t := &db.types[k.Type]
	t.keys++
	if k.Has(keyspace.FactBytes) {
		t.bytes += uint64(k.Bytes)
		t.memory.observe(float64(k.Bytes))
		b.bytes.offer(k, namespace, k.Bytes, now)
	}
	if k.Type.Collection() {
		b.addElements(t, k, namespace, now)
	}
	if verdict.Big != policy.Healthy && b.finds.Add(k, namespace, verdict.Big) {
		t.big[verdict.Big].Keys++
		t.big[verdict.Big].Bytes += uint64(k.Bytes)
	}
}

// addElements counts a collection by its length; one whose bytes are below the
// candidate floor has a length in the first bucket, unmeasured.
func (b *Builder) addElements(t *typeBuilder, k *keyspace.Key, namespace string, now time.Time) {
	switch {
	case k.Has(keyspace.FactLength):
		t.elements.observe(float64(k.Length))
		b.elements.offer(k, namespace, k.Length, now)
	case k.Has(keyspace.FactBytes) && k.Bytes < b.policy.Floor(k.Type):
		t.elements.observeSmall()
	}
}

func (b *Builder) db(n int) *dbBuilder {
	db, ok := b.dbs[n]
	if !ok {
		db = &dbBuilder{db: n, namespaces: map[string][]uint64{}, ttl: newHistogram(ttlBounds)}
		for i := range db.types {
			db.types[i].memory = newHistogram(memoryBounds)
			db.types[i].elements = newHistogram(elementsBounds)
		}
		b.dbs[n] = db
	}
	return db
}

// Outcome is what the scan knows of a cycle beyond its keys.
type Outcome struct {
	Completed time.Time
	Suspect   []string
	Coverage  float64
	Available keyspace.Available // facts that could be had in this cycle
}

// Finish makes the snapshot. The builder must not be used any more.
func (b *Builder) Finish(o Outcome) *Snapshot {
	s := &Snapshot{
		Started:   b.started,
		Completed: o.Completed,
		Suspect:   o.Suspect,
		Coverage:  o.Coverage,
		Rules:     b.policy.Rules(),
		Evaluated: b.policy.Evaluated(o.Available),
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
	db := DB{DB: d.db, NamingBroken: d.broken, Named: d.named}
	if available[keyspace.Unknown]&keyspace.FactTTL != 0 {
		db.TTL = &d.ttl
	}
	for i := range d.types {
		t := &d.types[i]
		stats := TypeStats{Keys: Estimate{Value: float64(t.keys)}}
		if available[i]&keyspace.FactBytes != 0 {
			stats.Bytes = &Estimate{Value: float64(t.bytes)}
		}
		if t.memory.Count() > 0 {
			stats.Memory = &t.memory
		}
		if t.elements.Count() > 0 && available[i]&keyspace.FactLength != 0 {
			stats.Elements = &t.elements
		}
		if p.JudgesBig(keyspace.Type(i), available) {
			stats.Big = &t.big
		}
		db.Types[i] = stats
	}
	for name, counts := range d.namespaces {
		n := Namespace{Name: name}
		for _, count := range counts {
			n.Violations = append(n.Violations, Estimate{Value: float64(count)})
		}
		db.Namespaces = append(db.Namespaces, n)
	}
	slices.SortFunc(db.Namespaces, func(a, b Namespace) int { return strings.Compare(a.Name, b.Name) })
	return db
}
