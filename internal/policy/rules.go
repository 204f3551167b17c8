package policy

import "redis_keyhealth_exporter/internal/keyspace"

// Group is the part of the rulebook that a rule stands in.
type Group string

// The groups.
const (
	Names     Group = "Key names"
	BigKeys   Group = "Values (big keys)"
	Lifetimes Group = "Lifetimes"
)

// Rule is one row of the rulebook. A row's id is the value of the label `rule`,
// and its level that of the label `level`.
type Rule struct {
	ID       string
	Group    Group
	Level    Level
	Violated string // when a key breaks the rule, its defaults included
	Critical string // when it does so in the critical tier; "" = the rule has no tiers
	Source   string // documents behind it, see docs/rules.md
	Needs    keyspace.Facts
	Types    typeSet // the types it judges, where Needs has FactType
	New      func() Checker
}

// Rules is THE rulebook: a new rule is a file with its checker and a row here.
func Rules() []Rule {
	return []Rule{
		{
			ID: "name_format", Group: Names, Level: Recommended,
			Violated: "without the braces of a `{hash tag}`, fewer than 2 non-empty segments separated by `:` (or `#`), or the first is no business name `[A-Za-z][A-Za-z0-9_]*`",
			Source:   "A 1.1, B 1.1, D, E",
			New:      func() Checker { return &NameFormat{MinSegments: 2} },
		},
		{
			ID: "name_too_long", Group: Names, Level: Recommended,
			Violated: "longer than 44 bytes",
			Source:   "A 1.1 (embstr)",
			New:      func() Checker { return &NameTooLong{MaxBytes: 44} },
		},
		{
			ID: "name_oversized", Group: Names, Level: Mandatory,
			Violated: "longer than 16384 bytes; such a key is not probed",
			Source:   "D",
			New:      func() Checker { return NameOversized{} },
		},
		{
			ID: "name_special_char", Group: Names, Level: Mandatory,
			Violated: "any Unicode white space, quote `'` or `\"`, backslash, control character, or invalid UTF-8",
			Source:   "A, B, D, E",
			New:      func() Checker { return NameSpecialChar{} },
		},
		{
			ID: "name_discouraged_separator", Group: Names, Level: Advisory,
			Violated: "`-` `.` `+` `=` in a segment that is not id-like (number, uuid, hex, date, e-mail, IP) nor in a hash tag",
			Source:   "C (softened: it is common)",
			New:      func() Checker { return NameDiscouragedSeparator{} },
		},
		{
			ID: "name_unknown_prefix", Group: Names, Level: Recommended,
			Violated: "the first segment is not in `allowed_prefixes`; not evaluated while that list is empty",
			Source:   "B, D",
			New:      func() Checker { return &NameUnknownPrefix{} },
		},
		{
			ID: "big_string", Group: BigKeys, Level: Mandatory,
			Violated: "value longer than 10 KiB (STRLEN)", Critical: "5 MiB or longer",
			Source: "A 1.2, B, D, E",
			Needs:  keyspace.FactType | keyspace.FactLength, Types: types(keyspace.String),
			New: func() Checker { return &BigString{Warning: 10 << 10, Critical: 5 << 20} },
		},
		{
			ID: "many_elements", Group: BigKeys, Level: Mandatory,
			Violated: "more than 1000 elements in a hash, list, set, zset or stream (B and E: 5000, a bucket of the histogram)", Critical: "10,000 or more",
			Source: "A 1.2, B, D, E",
			Needs:  keyspace.FactType | keyspace.FactLength, Types: collections,
			New: func() Checker { return &ManyElements{Warning: 1000, Critical: 10_000} },
		},
		{
			ID: "big_collection", Group: BigKeys, Level: Mandatory,
			Violated: "the whole key, MEMORY USAGE, larger than 1 MiB; also judged for module types", Critical: "100 MiB or larger",
			Source: "D; A 1.2",
			Needs:  keyspace.FactType | keyspace.FactBytes, Types: collections | types(keyspace.Module),
			New: func() Checker { return &BigCollection{Warning: 1 << 20, Critical: 100 << 20} },
		},
		{
			ID: "big_element", Group: BigKeys, Level: Recommended,
			Violated: "MEMORY USAGE ÷ elements of a hash, list, set or zset with at least one element above 4 KiB: an average, as Redis tells no element's size without reading it", Critical: "64 KiB or more (ours)",
			Source: "C (per element)",
			Needs:  keyspace.FactType | keyspace.FactBytes | keyspace.FactLength,
			Types:  types(keyspace.Hash, keyspace.List, keyspace.Set, keyspace.ZSet),
			New:    func() Checker { return &BigElement{Warning: 4 << 10, Critical: 64 << 10} },
		},
		{
			ID: "ttl_missing", Group: Lifetimes, Level: Recommended,
			Violated: "no TTL and no exemption",
			Source:   "B, D (must), E",
			Needs:    keyspace.FactTTL,
			New:      func() Checker { return TTLMissing{} },
		},
		{
			ID: "ttl_too_long", Group: Lifetimes, Level: Recommended,
			Violated: "a TTL longer than 30 days",
			Source:   "D",
			Needs:    keyspace.FactTTL,
			New:      func() Checker { return &TTLTooLong{Max: 30 * day} },
		},
	}
}

// typeSet is a set of key types, bit per type.
type typeSet uint16

const collections = typeSet(1<<keyspace.Hash | 1<<keyspace.List | 1<<keyspace.Set | 1<<keyspace.ZSet | 1<<keyspace.Stream)

func types(of ...keyspace.Type) typeSet {
	var set typeSet
	for _, t := range of {
		set |= 1 << t
	}
	return set
}

func (s typeSet) has(t keyspace.Type) bool { return s>>t&1 == 1 }
