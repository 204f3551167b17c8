package policy

import (
	"slices"

	"redis_keyhealth_exporter/internal/keyspace"
)

// A conditional checker's violations do harm or none by how the primary has
// lazyfree-lazy-expire: On = none of them does.
type conditional interface {
	Checker
	Harmless(lazyExpire Setting) Setting
}

// Harmless are the rules whose violations do no harm, as bits.
func (p *Policy) Harmless(lazyExpire Setting) uint64 {
	var rules uint64
	for i := range p.namespaces {
		for _, c := range p.namespaces[i].checks {
			if h, ok := c.Checker.(conditional); ok && h.Harmless(lazyExpire) == On {
				rules |= 1 << c.index
			}
		}
	}
	return rules
}

// Evaluated tells, for each rule, whether it is configured for any namespace and
// can be judged on every type that it is about. A rule that can be judged on
// some types only would show a healthy-looking part of the truth: it is not
// evaluated. Nor is one that combines others of which one is not, or that depends
// on a setting which nobody told.
func (p *Policy) Evaluated(available keyspace.Available, lazyExpire Setting) []bool {
	var configured, unknown uint64 // bit i stands for rule i
	judge := func(c *check) {
		configured |= 1 << c.index
		for _, t := range keyspace.Types() {
			if c.judges(t) && available[t]&c.needs != c.needs {
				unknown |= 1 << c.index
			}
		}
		if h, ok := c.Checker.(conditional); ok && h.Harmless(lazyExpire) == Untold {
			unknown |= 1 << c.index
		}
	}
	for i := range p.namespaces {
		for j := range p.namespaces[i].checks {
			judge(&p.namespaces[i].checks[j])
		}
	}
	if rule, row := p.TTLClustered(); rule != nil {
		judge(&check{index: row, needs: p.rules[row].Needs})
	}
	for i := range p.namespaces {
		for _, c := range p.namespaces[i].checks {
			for _, list := range c.of {
				if list&unknown != 0 {
					unknown |= 1 << c.index
				}
			}
		}
	}
	evaluated := make([]bool, len(p.rules))
	for i := range evaluated {
		evaluated[i] = (configured&^unknown)>>i&1 == 1
	}
	return evaluated
}

// JudgesBig tells whether a rule that makes big keys can be judged on keys of
// the type.
func (p *Policy) JudgesBig(t keyspace.Type, available keyspace.Available) bool {
	for i := range p.namespaces {
		for _, c := range p.namespaces[i].checks {
			if c.big && c.judges(t) && available[t]&c.needs == c.needs {
				return true
			}
		}
	}
	return false
}

// Judges tells whether a rule is applied to the keys of a namespace.
func (p *Policy) Judges(namespace, rule int) bool {
	return slices.ContainsFunc(p.namespaces[namespace].checks, func(c check) bool { return c.index == rule })
}
