// Package policy is the rulebook: what a healthy key looks like, one file per
// rule and one row per rule in rules.go, and the judgement of a key by it.
package policy

import (
	"fmt"
	"math"

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

func (l Level) String() string { return [...]string{"advisory", "recommended", "mandatory"}[l] }

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

// An optionalChecker cannot judge until it is configured.
type optionalChecker interface {
	Checker
	Configured() bool
}

// DefaultNamespace is what a key belongs to that no configured namespace takes.
const DefaultNamespace = "default"

// Policy is an immutable set of configured rules.
type Policy struct {
	rules  []Rule // in the rulebook's order: a rule's index is its identity
	checks []check
	floors [keyspace.NumTypes]int64
}

// check is a rule that is configured.
type check struct {
	index int // of its row
	needs keyspace.Facts
	types typeSet
	Checker
}

// judges tells whether the rule is about keys of the type.
func (c *check) judges(t keyspace.Type) bool {
	return c.needs&keyspace.FactType == 0 || c.types.has(t)
}

// New builds the policy of the rulebook's defaults. An entry of override
// replaces the checker of the rule of that id.
func New(override map[string]Checker) (*Policy, error) {
	p := &Policy{rules: Rules()}
	for t := range p.floors {
		p.floors[t] = Never
	}
	known := 0
	for i, r := range p.rules {
		checker := r.New()
		if o, ok := override[r.ID]; ok {
			checker, known = o, known+1
		}
		if o, ok := checker.(optionalChecker); ok && !o.Configured() {
			continue
		}
		p.checks = append(p.checks, check{index: i, needs: r.Needs, types: r.Types, Checker: checker})
		if s, ok := checker.(sizeChecker); ok {
			for t := range p.floors {
				if typ := keyspace.Type(t); r.Types.has(typ) {
					p.floors[t] = min(p.floors[t], s.Floor(typ))
				}
			}
		}
	}
	if known != len(override) {
		return nil, fmt.Errorf("policy: %d of %d overridden rules are not in the rulebook", len(override)-known, len(override))
	}
	return p, nil
}

// Rules are the rows of the rulebook; Verdict and Evaluated speak of them by
// index.
func (p *Policy) Rules() []Rule { return p.rules }

// Floor is the least MEMORY USAGE, in bytes, at which a key of the type can
// break a rule that needs its length. Of the type Unknown it is that of the
// type that breaks a rule first.
func (p *Policy) Floor(t keyspace.Type) int64 {
	if t != keyspace.Unknown {
		return p.floors[t]
	}
	least := Never
	for _, floor := range p.floors {
		least = min(least, floor)
	}
	return least
}

// Evaluated tells, for each rule, whether it is configured and can be judged on
// every type that it is about. A rule that can be judged on some types only
// would show a healthy-looking part of the truth: it is not evaluated.
func (p *Policy) Evaluated(available keyspace.Available) []bool {
	evaluated := make([]bool, len(p.rules))
	for _, c := range p.checks {
		evaluated[c.index] = true
		for _, t := range keyspace.Types() {
			if c.judges(t) && available[t]&c.needs != c.needs {
				evaluated[c.index] = false
			}
		}
	}
	return evaluated
}

// JudgesBig tells whether a rule that makes big keys can be judged on keys of
// the type.
func (p *Policy) JudgesBig(t keyspace.Type, available keyspace.Available) bool {
	for _, c := range p.checks {
		if p.rules[c.index].Group == BigKeys && c.judges(t) && available[t]&c.needs == c.needs {
			return true
		}
	}
	return false
}

// Verdict is the judgement of one key.
type Verdict struct {
	Rules  uint64   // bit i: the key breaks rule i
	Big    Severity // the worst severity among the rules that make a big key
	Naming bool     // a name rule of level mandatory or recommended is broken
}

// Check judges a key by every rule whose facts are known of it. It does not
// allocate.
func (p *Policy) Check(k *keyspace.Key) Verdict {
	var v Verdict
	for i := range p.checks {
		c := &p.checks[i]
		if !k.Has(c.needs) || !c.judges(k.Type) {
			continue
		}
		severity := c.Check(k)
		if severity == Healthy {
			continue
		}
		v.Rules |= 1 << c.index
		switch r := &p.rules[c.index]; {
		case r.Group == BigKeys:
			v.Big = max(v.Big, severity)
		case r.Group == Names && r.Level >= Recommended:
			v.Naming = true
		}
	}
	return v
}

// NamespaceOf is the namespace that judges the key. Namespaces come with the
// policy file; until then every key is in the default one.
func (p *Policy) NamespaceOf(*keyspace.Key) string { return DefaultNamespace }
