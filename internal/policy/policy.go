// Package policy is the rulebook: what a healthy key looks like, one file per
// rule and one row per rule in rules.go, and the judgement of a key by it.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"redis_keyhealth_exporter/internal/keyspace"
)

// Level is how binding a rule is, as the documents behind it say it.
type Level uint8

// The levels.
const (
	Advisory    Level = iota // a hint
	Recommended              // 推荐, 建议, 不建议
	Mandatory                // 强制, 必须, 禁止
)

var levelNames = [...]string{"advisory", "recommended", "mandatory"}

// LevelNames lists the levels for people.
const LevelNames = "mandatory, recommended, advisory"

func (l Level) String() string { return levelNames[l] }

// ParseLevel reads what String writes.
func ParseLevel(name string) (Level, bool) {
	i := slices.Index(levelNames[:], name)
	return Level(max(i, 0)), i >= 0
}

// Severity is the tier in which a key breaks a rule; rules without tiers know
// Healthy and Warning alone.
type Severity uint8

// The severities.
const (
	Healthy Severity = iota
	Warning
	Critical
	NumSeverities = iota
)

func (s Severity) String() string { return [...]string{"healthy", "warning", "critical"}[s] }

// Severities lists those that are a violation: the label `severity`.
func Severities() []Severity { return []Severity{Warning, Critical} }

// Never is the floor of a rule that no number of bytes can break.
const Never int64 = math.MaxInt64

// CountedAbove is the number of elements above which a collection's length is
// fetched whatever the limits: smaller ones share the first bucket of
// key_elements.
const CountedAbove = 1000

// Checker judges a key by one rule. It is called for every key of a keyspace:
// it must not allocate, nor keep the key. It is only called when the facts
// that the rule needs are known.
type Checker interface {
	Check(*keyspace.Key) Severity
}

// A sizeChecker judges facts that are only fetched for candidates: keys of at
// least Floor bytes by MEMORY USAGE. Below the floor of a type, no key of that
// type may break the rule.
type sizeChecker interface {
	Checker
	Floor(keyspace.Type) int64
}

// A sampledChecker judges a fact that is only fetched of keys that are large
// enough, those of the fixed sample among them: SampledFloor is how large, by
// MEMORY USAGE.
type sampledChecker interface {
	Checker
	SampledFloor(keyspace.Type) int64
}

// An optionalChecker cannot judge until it is configured.
type optionalChecker interface {
	Checker
	Configured() bool
}

// DefaultNamespace is what a key belongs to that no configured namespace takes.
const DefaultNamespace = "default"

// DefaultIndex is that of the default namespace among Policy.Namespaces.
const DefaultIndex = 0

// Policy is an immutable set of configured rules.
type Policy struct {
	rules      []Rule // in the rulebook's order: a rule's index is its identity
	spec       Spec
	namespaces []Namespace // the default one, then those of the spec in its order
	matcher    matcher
	least      [keyspace.NumTypes]int64 // of the floors of all namespaces
	needs      keyspace.Facts           // of all checks
	bigKeys    string

	serverChecks []serverCheck
}

// Namespace is a set of keys that are judged alike.
type Namespace struct {
	Name, Owner string

	settings []Settings // by rule
	checks   []check
	floors   [keyspace.NumTypes]int64 // that of Unknown is the least of all

	sampledFloors [keyspace.NumTypes]int64
}

// check is a rule that is configured.
type check struct {
	index  int // of its row
	needs  keyspace.Facts
	types  typeSet
	big    bool     // what breaks it is a big key
	naming bool     // what breaks it counts as badly named
	of     []uint64 // the lists of a combiner: bit i stands for rule i
	Checker
}

// judges tells whether the rule is about keys of the type.
func (c *check) judges(t keyspace.Type) bool {
	return c.needs&keyspace.FactType == 0 || c.types.has(t)
}

// New builds a policy. The zero Spec is the rulebook's defaults.
func New(spec Spec) (*Policy, error) {
	if err := checkWatch(spec.Watch); err != nil {
		return nil, err
	}
	p := &Policy{rules: Rules(), spec: spec}
	base := make([]Settings, len(p.rules))
	for i := range p.rules {
		r := &p.rules[i]
		base[i] = Settings{Enabled: !r.OptIn, Level: r.Level, Values: r.Defaults()}
	}
	global, err := settings(p.rules, base, spec.Rules, false)
	if err != nil {
		return nil, err
	}
	p.add(NamespaceSpec{Name: DefaultNamespace}, global)
	p.addServerChecks(global)
	if len(spec.Namespaces) > MaxNamespaces {
		return nil, wrong(spec.Namespaces[MaxNamespaces].Where, "a policy has at most %d namespaces", MaxNamespaces)
	}
	var entries []entry
	taken, regexps := map[string]bool{}, 0
	for i, n := range spec.Namespaces {
		if err := n.check(taken); err != nil {
			return nil, err
		}
		taken[n.Name] = true
		for _, pattern := range n.Match {
			e, err := newEntry(pattern.Text, n.DBs, i+1)
			if err != nil {
				return nil, wrong(pattern.Where, "match: %q: %w", pattern.Text, err)
			}
			if e.regexp != nil {
				regexps++
			}
			if entries = append(entries, e); len(entries) > maxPatterns || regexps > maxRegexps {
				return nil, wrong(pattern.Where, "match: a policy has at most %d patterns, %d of them regular expressions", maxPatterns, maxRegexps)
			}
		}
		own, err := settings(p.rules, global, n.Rules, true)
		if err != nil {
			return nil, err
		}
		p.add(n, own)
	}
	p.matcher = newMatcher(entries)
	p.bigKeys = p.fingerprint()
	return p, nil
}

// add compiles a namespace.
func (p *Policy) add(spec NamespaceSpec, settings []Settings) {
	n := Namespace{Name: spec.Name, Owner: spec.Owner, settings: settings}
	for t := range n.floors {
		n.floors[t], n.sampledFloors[t] = Never, Never
		if typ := keyspace.Type(t); typ.Collection() {
			n.floors[t] = elementsFloor(typ, CountedAbove)
		}
	}
	var combiners []check
	for i, r := range p.rules {
		s := &settings[i]
		if r.New == nil || !s.Judged() {
			continue
		}
		checker := r.New(s.Values)
		if o, ok := checker.(optionalChecker); ok && !o.Configured() {
			continue
		}
		p.needs |= r.Needs
		c := check{
			index: i, needs: r.Needs, types: r.Types, Checker: checker,
			big: r.Group == BigKeys, naming: r.Group == Names && s.Level >= Recommended,
		}
		if _, ok := checker.(combiner); ok {
			combiners = append(combiners, c)
			continue
		}
		n.checks = append(n.checks, c)
		for t := range n.floors {
			typ := keyspace.Type(t)
			if s, ok := checker.(sizeChecker); ok && r.Types.has(typ) {
				n.floors[t] = min(n.floors[t], s.Floor(typ))
			}
			if s, ok := checker.(sampledChecker); ok && r.Types.has(typ) {
				n.sampledFloors[t] = min(n.sampledFloors[t], s.SampledFloor(typ))
			}
		}
	}
	n.combine(p.rules, combiners)
	n.floors[keyspace.Unknown] = slices.Min(n.floors[:])
	if len(p.namespaces) == 0 {
		p.least = n.floors
	}
	for t := range p.least {
		p.least[t] = min(p.least[t], n.floors[t])
	}
	p.namespaces = append(p.namespaces, n)
}

// Rules are the rows of the rulebook; Verdict and Evaluated speak of them by
// index.
func (p *Policy) Rules() []Rule { return p.rules }

// Spec is what the policy was built from.
func (p *Policy) Spec() Spec { return p.spec }

// Namespaces are the default one, and behind it those of the spec in its order;
// Verdict speaks of them by index.
func (p *Policy) Namespaces() []Namespace { return p.namespaces }

// Settings is how a rule is applied in a namespace, both by index.
func (p *Policy) Settings(namespace, rule int) *Settings {
	return &p.namespaces[namespace].settings[rule]
}

// Watch are the keys whose size is always exported.
func (p *Policy) Watch() []WatchedKey { return p.spec.Watch }

// BigKeys is a fingerprint of all that decides whether a key is big: two
// policies that share it make the same keys big.
func (p *Policy) BigKeys() string { return p.bigKeys }

func (p *Policy) fingerprint() string {
	limits := func(n *Namespace) string {
		var b strings.Builder
		for i, r := range p.rules {
			if r.Group == BigKeys {
				fmt.Fprintln(&b, r.ID, n.settings[i].Judged(), n.settings[i].Values)
			}
		}
		return b.String()
	}
	parts := []string{limits(&p.namespaces[DefaultIndex])}
	said := 1 // a namespace like the default one counts only in front of another one
	for i, spec := range p.spec.Namespaces {
		parts = append(parts, fmt.Sprintf("%q %v\n", patterns(spec.Match), spec.DBs)+limits(&p.namespaces[i+1]))
		if limits(&p.namespaces[i+1]) != parts[0] {
			said = len(parts)
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(parts[:said], "\n")))
	return hex.EncodeToString(sum[:])
}

func patterns(match []Pattern) []string {
	texts := make([]string, 0, len(match))
	for _, m := range match {
		texts = append(texts, m.Text)
	}
	return texts
}

// Floor is the least MEMORY USAGE, in bytes, from which on a key of the type and
// namespace is a candidate: one whose length is fetched, as it can break a rule
// that needs it. Of the type Unknown it is that of the type that is the first to.
func (p *Policy) Floor(namespace int, t keyspace.Type) int64 {
	return p.namespaces[namespace].floors[t]
}

// Needs are the facts that some rule needs.
func (p *Policy) Needs() keyspace.Facts { return p.needs }

// LooksInto tells whether the first byte of a key is wanted, should it be a
// candidate or of the fixed sample.
func (p *Policy) LooksInto(k *keyspace.Key) bool {
	return p.needs&keyspace.FactHead != 0 && k.Has(keyspace.FactBytes|keyspace.FactType) &&
		k.Bytes >= p.namespaces[p.NamespaceOf(k)].sampledFloors[k.Type]
}

// Candidate tells whether a key is known to be one.
func (p *Policy) Candidate(k *keyspace.Key) bool {
	// Few keys get past this, so that few are matched twice in a cycle.
	return k.Has(keyspace.FactBytes) && k.Bytes >= p.least[k.Type] && k.Bytes >= p.Floor(p.NamespaceOf(k), k.Type)
}

// Verdict is the judgement of one key.
type Verdict struct {
	Namespace int      // index of the one that the key is in
	Rules     uint64   // bit i: the key breaks rule i
	Big       Severity // the worst severity among the rules that make a big key
	Naming    bool     // a name rule of level mandatory or recommended is broken
}

// Check judges a key by every rule of its namespace whose facts are known of it.
// It does not allocate.
func (p *Policy) Check(k *keyspace.Key) Verdict {
	v := Verdict{Namespace: p.NamespaceOf(k)}
	checks := p.namespaces[v.Namespace].checks
	for i := range checks {
		c := &checks[i]
		if !k.Has(c.needs) || !c.judges(k.Type) || !c.met(v.Rules) {
			continue
		}
		severity := c.Check(k)
		if severity == Healthy {
			continue
		}
		v.Rules |= 1 << c.index
		v.Naming = v.Naming || c.naming
		if c.big {
			v.Big = max(v.Big, severity)
		}
	}
	return v
}

// NamespaceOf is the index of the namespace that the key is in: the first one of
// which a pattern matches the name, or the default one.
func (p *Policy) NamespaceOf(k *keyspace.Key) int {
	if n := p.matcher.find(k.Name, k.DB); n != none {
		return n
	}
	return DefaultIndex
}

// MatchedBy is the pattern for which the key is in its namespace; false = none
// matched.
func (p *Policy) MatchedBy(k *keyspace.Key) (Pattern, bool) {
	n := p.NamespaceOf(k)
	if n == DefaultIndex {
		return Pattern{}, false
	}
	for _, pattern := range p.spec.Namespaces[n-1].Match {
		e, err := newEntry(pattern.Text, nil, n)
		if err != nil {
			continue // which New would have refused
		}
		if only := newMatcher([]entry{e}); only.find(k.Name, k.DB) == n {
			return pattern, true
		}
	}
	return Pattern{}, false
}
