package policy

import (
	"math"
	"strings"

	"redis_keyhealth_exporter/internal/keyspace"
)

// Group is the part of the rulebook that a rule stands in.
type Group string

// The groups.
const (
	Names     Group = "Key names"
	BigKeys   Group = "Values (big keys)"
	Holding   Group = "Values (how they are held)"
	Lifetimes Group = "Lifetimes"
	HotKeys   Group = "Hot keys"
	Servers   Group = "Server and commands"
)

// Rule is one row of the rulebook. A row's id is the value of the label `rule`,
// and its level that of the label `level`.
type Rule struct {
	ID       string
	Group    Group
	Level    Level
	Violated string // when a key breaks the rule
	Critical string // when it does so in the critical tier; "" = the rule has no tiers
	Source   string // documents behind it, see docs/rules.md
	Needs    keyspace.Facts
	Types    typeSet  // the types it judges, where Needs has FactType
	OptIn    bool     // off until a policy enables it
	Options  []Option // what a policy may set besides the level; in Violated and Critical, {name} is the value
	// New makes the rule's checker of all its options; nil = what it judges is no
	// single key, and has no namespace.
	New func(Values) Checker
	// NewServer is set instead where it judges a server.
	NewServer func(Values) ServerChecker
}

// AboutServer tells a rule about a server from one about keys.
func (r *Rule) AboutServer() bool { return r.NewServer != nil }

// Basis is the set of keys that a rule's violations are counted among.
type Basis uint8

// The bases.
const (
	OnNames  Basis = iota // all that SCAN named
	OnSizes               // those that were measured: no small key breaks the rule
	OnDetail              // the sample that is asked for type and TTL
	OnFixed               // the fixed sample, and candidates
)

// Basis is where the facts that the rule needs are known.
func (r *Rule) Basis() Basis {
	if r.New != nil {
		switch r.New(r.Defaults()).(type) {
		case sizeChecker, combiner:
			return OnSizes
		}
	}
	switch {
	case r.Needs&(keyspace.FactEncoding|keyspace.FactIdle|keyspace.FactFrequency|keyspace.FactHead) != 0:
		return OnFixed
	case r.Needs&keyspace.FactTTL != 0:
		return OnDetail
	}
	return OnNames
}

// Rules is THE rulebook: a new rule is a file with its checker and a row here.
func Rules() []Rule {
	return []Rule{
		{
			ID: "name_format", Group: Names, Level: Recommended,
			Violated: "without the braces of a `{hash tag}`, fewer than {min_segments} non-empty segments separated by `:` (or `#`), or the first is no business name `[A-Za-z][A-Za-z0-9_]*`",
			Source:   "A 1.1, B 1.1, D, E",
			Options:  []Option{count("min_segments", 2, 20)},
			New:      func(v Values) Checker { return &NameFormat{MinSegments: int(v.Number("min_segments"))} },
		},
		{
			ID: "name_too_long", Group: Names, Level: Recommended,
			Violated: "longer than {max_bytes} bytes",
			Source:   "A 1.1 (embstr)",
			Options:  []Option{count("max_bytes", 44, keyspace.MaxNameBytes)},
			New:      func(v Values) Checker { return &NameTooLong{MaxBytes: v.Number("max_bytes")} },
		},
		{
			ID: "name_oversized", Group: Names, Level: Mandatory,
			Violated: "longer than 16384 bytes; such a key is not probed",
			Source:   "D",
			New:      func(Values) Checker { return NameOversized{} },
		},
		{
			ID: "name_special_char", Group: Names, Level: Mandatory,
			Violated: "any Unicode white space, quote `'` or `\"`, backslash, control character, or invalid UTF-8",
			Source:   "A, B, D, E",
			New:      func(Values) Checker { return NameSpecialChar{} },
		},
		{
			ID: "name_discouraged_separator", Group: Names, Level: Advisory,
			Violated: "`-` `.` `+` `=` in a segment that is not id-like (number, uuid, hex, date, e-mail, IP) nor in a hash tag",
			Source:   "C (softened: it is common)",
			New:      func(Values) Checker { return NameDiscouragedSeparator{} },
		},
		{
			ID: "name_unknown_prefix", Group: Names, Level: Recommended,
			Violated: "the first segment is not in `allowed_prefixes`; not evaluated while that list is empty",
			Source:   "B, D",
			Options:  []Option{words("allowed_prefixes")},
			New:      func(v Values) Checker { return &NameUnknownPrefix{Allowed: set(v.Words("allowed_prefixes"))} },
		},
		{
			ID: "big_string", Group: BigKeys, Level: Mandatory,
			Violated: "value longer than {warning} (STRLEN)", Critical: "{critical} or longer",
			Source: "A 1.2, B, D, E",
			Needs:  keyspace.FactType | keyspace.FactLength, Types: types(keyspace.String),
			Options: []Option{size("warning", 10<<10), size("critical", 5<<20)},
			New: func(v Values) Checker {
				return &BigString{Warning: v.Number("warning"), Critical: v.Number("critical")}
			},
		},
		{
			ID: "many_elements", Group: BigKeys, Level: Mandatory,
			Violated: "more than {warning} elements in a hash, list, set, zset or stream (B and E: 5000, a bucket of the histogram)", Critical: "{critical} or more",
			Source: "A 1.2, B, D, E",
			Needs:  keyspace.FactType | keyspace.FactLength, Types: collections,
			Options: []Option{count("warning", 1000, maxNumber), count("critical", 10_000, maxNumber)},
			New: func(v Values) Checker {
				return &ManyElements{Warning: v.Number("warning"), Critical: v.Number("critical")}
			},
		},
		{
			ID: "big_collection", Group: BigKeys, Level: Mandatory,
			Violated: "the whole key, MEMORY USAGE, larger than {warning}; also judged for module types", Critical: "{critical} or larger",
			Source: "D; A 1.2",
			Needs:  keyspace.FactType | keyspace.FactBytes, Types: collections | types(keyspace.Module),
			Options: []Option{size("warning", 1<<20), size("critical", 100<<20)},
			New: func(v Values) Checker {
				return &BigCollection{Warning: v.Number("warning"), Critical: v.Number("critical")}
			},
		},
		{
			ID: "big_element", Group: BigKeys, Level: Recommended,
			Violated: "MEMORY USAGE ÷ elements of a hash, list, set or zset with at least one element above {warning}: an average, as Redis tells no element's size without reading it", Critical: "{critical} or more (ours)",
			Source:  "C (per element)",
			Needs:   keyspace.FactType | keyspace.FactBytes | keyspace.FactLength,
			Types:   types(keyspace.Hash, keyspace.List, keyspace.Set, keyspace.ZSet),
			Options: []Option{size("warning", 4<<10), size("critical", 64<<10)},
			New: func(v Values) Checker {
				return &BigElement{Warning: float64(v.Number("warning")), Critical: float64(v.Number("critical"))}
			},
		},
		{
			ID: "loose_encoding", Group: Holding, Level: Recommended,
			Violated: "a `hashtable`-encoded hash with {least} to {most} fields: just over the limit of a listpack",
			Source:   "A 1.3",
			Needs:    keyspace.FactType | keyspace.FactLength | keyspace.FactEncoding, Types: types(keyspace.Hash),
			Options: []Option{count("least", 513, maxNumber), count("most", 5000, maxNumber)},
			New: func(v Values) Checker {
				return &LooseEncoding{Least: v.Number("least"), Most: v.Number("most")}
			},
		},
		{
			ID: "json_string", Group: Holding, Level: Recommended, OptIn: true,
			Violated: "a string longer than {above} that starts with `{` or `[`; off unless a policy enables it, as it reads that byte (GETRANGE)",
			Source:   "A 1.3, D",
			Needs:    keyspace.FactType | keyspace.FactLength | keyspace.FactHead, Types: types(keyspace.String),
			Options: []Option{size("above", 1<<10)},
			New:     func(v Values) Checker { return &JSONString{Above: v.Number("above")} },
		},
		{
			ID: "ttl_missing", Group: Lifetimes, Level: Recommended,
			Violated: "no TTL and no exemption",
			Source:   "B, D (must), E",
			Needs:    keyspace.FactTTL,
			New:      func(Values) Checker { return TTLMissing{} },
		},
		{
			ID: "ttl_too_long", Group: Lifetimes, Level: Recommended,
			Violated: "a TTL longer than {max}",
			Source:   "D",
			Needs:    keyspace.FactTTL,
			Options:  []Option{duration("max", 30*day)},
			New:      func(v Values) Checker { return &TTLTooLong{Max: v.Duration("max")} },
		},
		{
			ID: clustered, Group: Lifetimes, Level: Mandatory,
			Violated: "it expires in a clock minute of the next 24 h that takes more than {share} of its database's expiring keys and more than {keys} of them (figures ours)",
			Source:   "B, C, D",
			Needs:    keyspace.FactTTL,
			Options:  []Option{percent("share", 10), count("keys", 1000, maxNumber)},
		},
		{
			ID: "ttl_big_key", Group: Lifetimes, Level: Mandatory,
			Violated: "a collection that breaks many_elements or big_collection has a TTL, while the primary has `lazyfree-lazy-expire no`; not evaluated where that cannot be read",
			Source:   "B, D, E",
			Needs:    keyspace.FactType | keyspace.FactTTL, Types: collections,
			New: func(Values) Checker { return TTLBigKey{} },
		},
		{
			ID: "idle_permanent", Group: Lifetimes, Level: Recommended,
			Violated: "no TTL and no access for more than {above} (OBJECT IDLETIME); of a primary that does not evict by LFU",
			Source:   "B, E",
			Needs:    keyspace.FactTTL | keyspace.FactIdle,
			Options:  []Option{duration("above", 30*day)},
			New:      func(v Values) Checker { return &IdlePermanent{Above: v.Duration("above")} },
		},
		{
			ID: "hot_key", Group: HotKeys, Level: Recommended,
			Violated: "an LFU counter of {least} or more out of 255 (OBJECT FREQ; ours); of a primary that evicts by LFU",
			Source:   "B, C, E",
			Needs:    keyspace.FactFrequency,
			Options:  []Option{count("least", 200, math.MaxUint8)},
			New:      func(v Values) Checker { return &HotKey{Least: uint8(v.Number("least"))} },
		},
		{
			ID: "hot_and_big", Group: HotKeys, Level: Mandatory,
			Violated: "it breaks hot_key and one of the rules that make a big key",
			Source:   "A, C",
			Needs:    keyspace.FactFrequency,
			New:      func(Values) Checker { return HotAndBig{} },
		},
		{
			ID: "cmd_forbidden_used", Group: Servers, Level: Mandatory,
			Violated:  "KEYS, FLUSHALL, FLUSHDB, MONITOR or DEBUG were called since the last probe; the first one has none to compare with",
			Source:    "B, C, D, E",
			NewServer: func(Values) ServerChecker { return ForbiddenUsed{} },
		},
		{
			ID: "cmd_forbidden_enabled", Group: Servers, Level: Advisory,
			Violated:  "COMMAND INFO knows one of them: neither renamed nor switched off (our own account's rights are not judged)",
			Source:    "B, D, E",
			NewServer: func(Values) ServerChecker { return ForbiddenEnabled{} },
		},
		{
			ID: "cmd_multi_key_used", Group: Servers, Level: Recommended,
			Violated:  "SINTER, SUNION, SDIFF or their STORE forms, ZUNION*, ZINTER*, ZDIFF*, RPOPLPUSH, LMOVE, LMPOP or BLMOVE were called since the last probe",
			Source:    "D; C",
			NewServer: func(Values) ServerChecker { return MultiKeyUsed{} },
		},
		{
			ID: "multi_db", Group: Servers, Level: Recommended,
			Violated:  "more than one database holds keys",
			Source:    "B, D, E",
			NewServer: func(Values) ServerChecker { return MultiDB{} },
		},
		{
			ID: "maxmemory_policy", Group: Servers, Level: Recommended,
			Violated: "maxmemory is 0; or noeviction above {full} of maxmemory; or volatile-* while more than {without_ttl} of the keys have no TTL",
			Source:   "B, D, E",
			Options:  []Option{percent("full", 90), percent("without_ttl", 50)},
			NewServer: func(v Values) ServerChecker {
				return &MaxmemoryPolicy{FullPercent: v.Number("full"), WithoutTTLPercent: v.Number("without_ttl")}
			},
		},
		{
			ID: "lazyfree_off", Group: Servers, Level: Recommended,
			Violated:  "any of lazyfree-lazy-expire, -eviction, -server-del, -user-del is `no`; needs `--server.config-probe`",
			Source:    "A 1.2.3, B",
			NewServer: func(Values) ServerChecker { return LazyfreeOff{} },
		},
		{
			ID: "limits_unset", Group: Servers, Level: Advisory,
			Violated:  "timeout 0, or no hard limit for the output buffer of a replica; needs `--server.config-probe`",
			Source:    "B 3",
			NewServer: func(Values) ServerChecker { return LimitsUnset{} },
		},
		{
			ID: "mixed_business", Group: Servers, Level: Advisory,
			Violated:  "more than {max_businesses} (ours) first segments with more than 1 % of the keys share the instance; id-like segments and names without a separator tell no business",
			Source:    "E 3.1",
			Options:   []Option{count("max_businesses", 8, 99)},
			NewServer: func(v Values) ServerChecker { return &MixedBusiness{MaxBusinesses: int(v.Number("max_businesses"))} },
		},
	}
}

// Words are Violated and Critical with the values of the options in them.
func (r *Rule) Words(values Values) (violated, critical string) {
	var figures []string
	for _, o := range r.Options {
		figures = append(figures, "{"+o.Name+"}", o.Format(values.get(o.Name)))
	}
	fill := strings.NewReplacer(figures...)
	return fill.Replace(r.Violated), fill.Replace(r.Critical)
}

// Defaults are the values of the options when no policy sets them.
func (r *Rule) Defaults() Values {
	v := make(Values, len(r.Options))
	for _, o := range r.Options {
		v[o.Name] = o.Default
	}
	return v
}

func set(words []string) map[string]bool {
	in := make(map[string]bool, len(words))
	for _, w := range words {
		in[w] = true
	}
	return in
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
