package policy

import "slices"

// A combiner judges a key by what other rules, none of them a combiner, said of
// it: it is only called for a key that breaks a rule of each of its lists.
type combiner interface {
	Checker
	Of() [][]string // by id
}

// met tells whether a key that breaks these rules is one for the checker.
func (c *check) met(broken uint64) bool {
	for _, list := range c.of {
		if broken&list == 0 {
			return false
		}
	}
	return true
}

// combine completes a namespace by its combiners, in front of which all other
// checks must stand. One of whose lists no rule is applied has nothing to combine.
func (n *Namespace) combine(rules []Rule, combiners []check) {
	var applied uint64
	for _, c := range n.checks {
		applied |= 1 << c.index
	}
	for _, c := range combiners {
		for _, ids := range c.Checker.(combiner).Of() {
			var list uint64
			for i, r := range rules {
				if slices.Contains(ids, r.ID) {
					list |= 1 << i
				}
			}
			c.of = append(c.of, list&applied)
		}
		if !slices.Contains(c.of, 0) {
			n.checks = append(n.checks, c)
		}
	}
}
