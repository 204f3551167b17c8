package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"redis_keyhealth_exporter/internal/keyspace"
)

// Bounds of a policy.
const (
	MaxNamespaces = 200
	MaxWatched    = 100

	maxPatterns     = 1000 // of all namespaces together
	maxNameBytes    = 64
	maxTextBytes    = 200 // of an owner or approval: a label value, or near one
	maxDB           = 1<<31 - 1
	maxDBs          = 1000
	nameIsPrintable = "1 to 64 bytes of printable UTF-8 without white space"
	textIsPrintable = "at most 200 bytes of printable UTF-8"
)

// Spec is what a policy file says. Where is a place in it, such as
// "policy.yml:12", with which an error about it begins; it may be empty.
type Spec struct {
	Rules      []RuleSpec // for all namespaces that do not say otherwise
	Namespaces []NamespaceSpec
	Watch      []WatchedKey
}

// RuleSpec is what is said of a rule; each at most once.
type RuleSpec struct {
	ID         string
	Level      *Level // nil = as it is without
	Enabled    *bool  // nil = as it is without
	Exempt     bool   // namespaces only
	ApprovedBy string // whoever allowed the exemption
	Options    []OptionSpec
	Where      string
}

// OptionSpec is a value for an option of a rule.
type OptionSpec struct {
	Name  string
	Value Value
	Where string
}

// NamespaceSpec describes a set of keys by their names. The first namespace that
// matches a key takes it.
type NamespaceSpec struct {
	Name  string
	Match []Pattern // any of these
	DBs   []int     // nil = all databases
	Owner string
	Rules []RuleSpec
	Where string
}

// Pattern is a glob as Redis has it, or, between slashes, a regular expression.
type Pattern struct {
	Text  string
	Where string
}

// WatchedKey is a key whose size is always exported.
type WatchedKey struct {
	DB    int
	Name  string // raw bytes
	Where string
}

// Settings is how a rule is applied in a namespace.
type Settings struct {
	Enabled    bool
	Level      Level
	Values     Values
	ApprovedBy string // "" = not exempt
}

// Judged tells whether the rule is applied at all.
func (s *Settings) Judged() bool { return s.Enabled && s.ApprovedBy == "" }

// wrong is an error about the place.
func wrong(where, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if where != "" {
		err = fmt.Errorf("%s: %w", where, err)
	}
	return err
}

// settings applies what is said of rules to the settings that hold without it.
func settings(rules []Rule, base []Settings, specs []RuleSpec, inNamespace bool) ([]Settings, error) {
	result, seen := slices.Clone(base), map[string]bool{}
	for _, spec := range specs {
		i, err := Find(rules, spec.ID)
		switch {
		case err != nil:
			return nil, wrong(spec.Where, "%w", err)
		case seen[spec.ID]:
			return nil, wrong(spec.Where, "%s: is said twice", spec.ID)
		case inNamespace && rules[i].New == nil:
			return nil, wrong(spec.Where, "%s: is no matter of single keys; set it in the rules of all namespaces", spec.ID)
		}
		seen[spec.ID] = true
		if err := result[i].apply(&rules[i], &spec, inNamespace); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (s *Settings) apply(rule *Rule, spec *RuleSpec, inNamespace bool) error {
	switch {
	case spec.Exempt && !inNamespace:
		return wrong(spec.Where, "%s: exempt is for namespaces; enabled: false switches a rule off for all", rule.ID)
	case spec.Exempt && spec.ApprovedBy == "":
		return wrong(spec.Where, "%s: an exemption needs approved_by, a text that tells who allowed it", rule.ID)
	case !spec.Exempt && spec.ApprovedBy != "":
		return wrong(spec.Where, "%s: approved_by goes with exempt: true", rule.ID)
	case !printable(spec.ApprovedBy, maxTextBytes):
		return wrong(spec.Where, "%s: approved_by must be %s", rule.ID, textIsPrintable)
	case inNamespace && spec.Enabled != nil && !*spec.Enabled:
		return wrong(spec.Where, "%s: a namespace may switch a rule on; to leave it out write exempt: true with approved_by", rule.ID)
	}
	if spec.Level != nil {
		if s.Level = *spec.Level; s.Level > Mandatory {
			return wrong(spec.Where, "%s: the levels are %s", rule.ID, LevelNames)
		}
	}
	if spec.Enabled != nil {
		s.Enabled = *spec.Enabled
	}
	s.ApprovedBy = spec.ApprovedBy
	s.Values = maps.Clone(s.Values)
	for _, option := range spec.Options {
		i := slices.IndexFunc(rule.Options, func(o Option) bool { return o.Name == option.Name })
		if i < 0 {
			return wrong(option.Where, "%s: there is no option %q; %s", rule.ID, option.Name, rule.optionNames())
		}
		if o := rule.Options[i]; !o.valid(option.Value) {
			return wrong(option.Where, "%s: %s: %s is not %s", rule.ID, o.Name, o.Format(option.Value), o.Allowed())
		}
		s.Values[option.Name] = option.Value
	}
	return s.inOrder(rule, spec)
}

// inOrder finds options that contradict each other: whoever raises the one forgets
// the other.
func (s *Settings) inOrder(rule *Rule, spec *RuleSpec) error {
	for _, pair := range [][2]string{{"warning", "critical"}, {"least", "most"}} {
		i := slices.IndexFunc(rule.Options, func(o Option) bool { return o.Name == pair[0] })
		lower, upper := s.Values[pair[0]], s.Values[pair[1]]
		if i < 0 || upper.Number == 0 || lower.Number <= upper.Number {
			continue // not both of them are options: none is 0
		}
		where := spec.Where
		for _, option := range spec.Options {
			if option.Name == pair[0] || option.Name == pair[1] {
				where = option.Where
			}
		}
		format := rule.Options[i].Format
		return wrong(where, "%s: %s %s is above %s %s; set both", rule.ID, pair[0], format(lower), pair[1], format(upper))
	}
	return nil
}

// check is about what stands beside a namespace's rules.
func (n *NamespaceSpec) check(taken map[string]bool) error {
	switch {
	case n.Name == "" || !printable(n.Name, maxNameBytes) || strings.ContainsFunc(n.Name, unicode.IsSpace):
		return wrong(n.Where, "the name of a namespace must be %s", nameIsPrintable)
	case n.Name == DefaultNamespace:
		return wrong(n.Where, "the namespace %q is reserved: keys are in it that no namespace matches; the rules for it are those of all namespaces", n.Name)
	case taken[n.Name]:
		return wrong(n.Where, "the namespace %q is there twice; match takes a list", n.Name)
	case len(n.Match) == 0:
		return wrong(n.Where, "the namespace %q needs a match: a glob such as \"sess:*\", a regular expression between slashes, or a list of these", n.Name)
	case !printable(n.Owner, maxTextBytes):
		return wrong(n.Where, "the owner of %q must be %s", n.Name, textIsPrintable)
	case len(n.DBs) > maxDBs:
		return wrong(n.Where, "the namespace %q names more than %d databases", n.Name, maxDBs)
	case slices.ContainsFunc(n.DBs, func(db int) bool { return db < 0 || db > maxDB }):
		return wrong(n.Where, "db must be numbers from 0 to %d", maxDB)
	}
	return nil
}

func checkWatch(watch []WatchedKey) error {
	if len(watch) > MaxWatched {
		return wrong(watch[MaxWatched].Where, "watch: takes at most %d keys", MaxWatched)
	}
	type key struct {
		db   int
		name string
	}
	seen := map[key]bool{}
	for _, w := range watch {
		switch {
		case len(w.Name) > keyspace.MaxNameBytes:
			return wrong(w.Where, "watch: a name of more than %d bytes is never sent to a server", keyspace.MaxNameBytes)
		case w.DB < 0 || w.DB > maxDB:
			return wrong(w.Where, "watch: db must be a number from 0 to %d", maxDB)
		case seen[key{w.DB, w.Name}]:
			return wrong(w.Where, "watch: %q of db%d is there twice", w.Name, w.DB)
		}
		seen[key{w.DB, w.Name}] = true
	}
	return nil
}

// printable tells whether a text may be a label value that deceives nobody.
func printable(s string, limit int) bool {
	return len(s) <= limit && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

// Find is the index of the rule.
func Find(rules []Rule, id string) (int, error) {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return i, fmt.Errorf("there is no rule %q; the rules are %s", id, listed(rules, func(r Rule) string { return r.ID }))
	}
	return i, nil
}

func listed[T any](all []T, name func(T) string) string {
	names := make([]string, 0, len(all))
	for _, a := range all {
		names = append(names, name(a))
	}
	return strings.Join(names, ", ")
}

func (r *Rule) optionNames() string {
	if len(r.Options) == 0 {
		return "it has none"
	}
	return "its options are " + listed(r.Options, func(o Option) string { return o.Name })
}
