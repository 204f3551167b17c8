package snapshot

import (
	"math/bits"
	"slices"
	"strings"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

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
	lazyExpire := policy.Untold
	if o.Primary != nil {
		o.Primary.Businesses = b.business.large()
		lazyExpire = o.Primary.Config.LazyExpire()
	}
	s := &Snapshot{
		Started:   b.started,
		Completed: o.Completed,
		Suspect:   o.Suspect,
		Coverage:  o.Coverage,
		Evaluated: b.policy.Evaluated(o.Available, lazyExpire),
		Server:    Server{Findings: b.policy.CheckServer(o.Primary), Calls: o.Calls},
	}
	b.endDB()
	b.forgive(b.policy.Harmless(lazyExpire))
	for _, db := range b.dbs {
		s.DBs = append(s.DBs, db.finish(b, o.Available))
	}
	slices.SortFunc(s.DBs, func(x, y DB) int { return x.DB - y.DB })
	for i, r := range b.policy.Rules() {
		settings := b.policy.Settings(policy.DefaultIndex, i)
		words, _ := r.Words(settings.Values)
		s.Rules = append(s.Rules, Rule{Level: settings.Level, Violated: words})
		if r.AboutServer() {
			s.Evaluated[i] = s.Server.Findings[i] != policy.NotJudged
		} else {
			s.Evaluated[i] = s.Evaluated[i] && (len(s.DBs) == 0 || s.estimates(i))
		}
	}
	holdsKeys := func(db int) bool { _, ok := b.dbs[db]; return ok }
	s.TopBytes = b.bytes.finish(holdsKeys)
	s.TopElements = b.elements.finish(holdsKeys)
	s.TopFrequency = b.hot.finish(holdsKeys)
	for _, e := range b.examples {
		s.Examples = append(s.Examples, e)
	}
	return s
}

// estimates tells whether there is a figure for the rule: a few keys may have
// none in the sample, and what nobody looked at was not judged.
func (s *Snapshot) estimates(rule int) bool {
	return slices.ContainsFunc(s.DBs, func(db DB) bool {
		return slices.ContainsFunc(db.Namespaces, func(n Namespace) bool { return n.Violations[rule].Known() })
	})
}

// forgive drops the violations of rules, by bits.
func (b *Builder) forgive(rules uint64) {
	for ; rules != 0; rules &= rules - 1 {
		rule := bits.TrailingZeros64(rules)
		b.examples[rule] = nil
		for _, db := range b.dbs {
			for _, t := range db.namespaces {
				t[rule] = hits{}
			}
		}
	}
}

func (d *dbBuilder) finish(b *Builder, available keyspace.Available) DB {
	db := DB{DB: d.db, NamingBroken: d.broken, Named: d.names}
	rest, detailed := float64(d.names-d.certain), float64(d.detailed)
	d.memory.rest, d.fixed.rest = rest, rest
	if available[keyspace.Unknown]&keyspace.FactTTL != 0 && (detailed > 0 || rest == 0) {
		db.TTL, db.Expiring = &d.ttl[0], &d.peak
		db.TTL.weighted(&d.ttl[1], ratio(rest, detailed))
	}
	if facts := keyspace.FactIdle | keyspace.FactTTL; available[keyspace.Unknown]&facts == facts && d.fixed.known() {
		candidate, sampled := d.fixed.weights()
		db.Idle = &d.idle[0]
		db.Idle.weighted(&d.idle[1], candidate)
		db.Idle.weighted(&d.idle[2], sampled)
	}
	db.Bytes = d.memory.total()
	for i := range d.types {
		if t := d.types[i]; t != nil {
			db.Bytes.Value += t.certain.sum
		}
		db.Types[i] = d.finishType(keyspace.Type(i), b.policy, available)
	}
	clustered := unknown
	rule, row := b.policy.TTLClustered()
	if rule != nil {
		clustered = proportion(float64(d.clustered[1]), detailed, rest).plus(float64(d.clustered[0]))
		if _, ok := d.namespaces[policy.DefaultIndex]; !ok {
			// A rule that judges many keys together is of this namespace, whether or
			// not that holds keys; nil says nothing of other rules.
			d.namespaces[policy.DefaultIndex] = nil
		}
	}
	for index, t := range d.namespaces {
		n := Namespace{Name: b.policy.Namespaces()[index].Name}
		for i := range b.basis {
			counted := unknown
			switch {
			case i == row && index == policy.DefaultIndex:
				counted = clustered
			case t != nil && b.policy.Judges(index, i):
				counted = d.estimate(b.basis[i], &t[i])
			}
			n.Violations = append(n.Violations, counted)
			n.Levels = append(n.Levels, b.policy.Settings(index, i).Level)
		}
		db.Namespaces = append(db.Namespaces, n)
	}
	slices.SortFunc(db.Namespaces, func(a, b Namespace) int { return strings.Compare(a.Name, b.Name) })
	return db
}

// estimate is how many keys of the database break a rule.
func (d *dbBuilder) estimate(basis policy.Basis, h *hits) Estimate {
	counted := Estimate{}
	switch basis {
	case policy.OnDetail:
		counted = proportion(float64(h.sampled), float64(d.detailed), d.memory.rest)
	case policy.OnFixed:
		counted = d.fixed.estimate(float64(h.candidate), float64(h.sampled))
	}
	return counted.plus(float64(h.certain))
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
	if b.encoded != nil && d.fixed.known() {
		candidate, sampled := d.fixed.weights()
		stats.Encoded = new([keyspace.NumEncodings]float64)
		for i, h := range b.encoded {
			stats.Encoded[i] = float64(h.certain) + candidate*float64(h.candidate) + sampled*float64(h.sampled)
		}
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
