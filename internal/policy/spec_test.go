package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
)

func globs(texts ...string) []Pattern {
	var patterns []Pattern
	for _, text := range texts {
		patterns = append(patterns, Pattern{Text: text})
	}
	return patterns
}

func pointer[T any](v T) *T { return &v }

// TestBadSpec: whatever does not make sense is refused where it stands.
func TestBadSpec(t *testing.T) {
	rule := func(r RuleSpec) Spec { r.Where = "f:1"; return Spec{Rules: []RuleSpec{r}} }
	inside := func(r RuleSpec) Spec {
		r.Where = "f:1"
		return Spec{Namespaces: []NamespaceSpec{{Name: "n", Match: globs("*"), Rules: []RuleSpec{r}}}}
	}
	namespace := func(n NamespaceSpec) Spec { n.Where = "f:1"; return Spec{Namespaces: []NamespaceSpec{n}} }
	option := func(id, name string, v Value) Spec {
		return Spec{Rules: []RuleSpec{{ID: id, Where: "f:0", Options: []OptionSpec{{name, v, "f:1"}}}}}
	}
	match := func(text string) Spec {
		return Spec{Namespaces: []NamespaceSpec{{Name: "n", Match: []Pattern{{text, "f:1"}}}}}
	}
	many := func(n, patterns int, text string) Spec {
		var s Spec
		for i := range n {
			ns := NamespaceSpec{Name: fmt.Sprint("n", i), Where: fmt.Sprint("f:", i)}
			for range patterns {
				ns.Match = append(ns.Match, Pattern{text, "f:1"})
			}
			s.Namespaces = append(s.Namespaces, ns)
		}
		return s
	}
	watch := func(w ...WatchedKey) Spec { return Spec{Watch: w} }
	var hundred []WatchedKey
	for i := range MaxWatched {
		hundred = append(hundred, WatchedKey{Name: fmt.Sprint(i)})
	}
	for about, c := range map[string]struct {
		spec Spec
		want string
	}{
		"unknown rule":          {rule(RuleSpec{ID: "big_strings"}), `f:1: there is no rule "big_strings"; the rules are name_format, `},
		"twice":                 {Spec{Rules: []RuleSpec{{ID: "ttl_missing"}, {ID: "ttl_missing", Where: "f:1"}}}, "f:1: ttl_missing: is said twice"},
		"level":                 {rule(RuleSpec{ID: "ttl_missing", Level: pointer(Level(3))}), "f:1: ttl_missing: the levels are mandatory, recommended, advisory"},
		"exempt everywhere":     {rule(RuleSpec{ID: "ttl_missing", Exempt: true, ApprovedBy: "x"}), "f:1: ttl_missing: exempt is for namespaces; enabled: false"},
		"exempt, unapproved":    {inside(RuleSpec{ID: "ttl_missing", Exempt: true}), "f:1: ttl_missing: an exemption needs approved_by"},
		"approved, not exempt":  {inside(RuleSpec{ID: "ttl_missing", ApprovedBy: "x"}), "f:1: ttl_missing: approved_by goes with exempt: true"},
		"approved by a bidi":    {inside(RuleSpec{ID: "ttl_missing", Exempt: true, ApprovedBy: "a\u202eb"}), "f:1: ttl_missing: approved_by must be at most 200 bytes of printable UTF-8"},
		"off in a namespace":    {inside(RuleSpec{ID: "ttl_missing", Enabled: pointer(false)}), "f:1: ttl_missing: a namespace may switch a rule on"},
		"many keys together":    {inside(RuleSpec{ID: "ttl_clustered"}), "f:1: ttl_clustered: is no matter of single keys"},
		"servers":               {inside(RuleSpec{ID: "multi_db"}), "f:1: multi_db: is no matter of single keys"},
		"unknown option":        {option("ttl_too_long", "maximum", Value{Number: 1}), `f:1: ttl_too_long: there is no option "maximum"; its options are max`},
		"no options":            {option("ttl_missing", "max", Value{Number: 1}), `f:1: ttl_missing: there is no option "max"; it has none`},
		"too small":             {option("ttl_too_long", "max", Value{Number: 1}), "f:1: ttl_too_long: max: 1ns is not a duration of at least 1s"},
		"zero":                  {option("big_string", "warning", Value{}), "f:1: big_string: warning: 0 is not a size above 0"},
		"too large":             {option("name_format", "min_segments", Value{Number: 21}), "f:1: name_format: min_segments: 21 is not a whole number from 1 to 20"},
		"words for a number":    {option("big_string", "warning", Value{Number: 1, Words: []string{"a"}}), "f:1: big_string: warning: "},
		"number for words":      {option("name_unknown_prefix", "allowed_prefixes", Value{Number: 1}), "f:1: name_unknown_prefix: allowed_prefixes: [] is not a list of at most 1000 words"},
		"empty word":            {option("name_unknown_prefix", "allowed_prefixes", Value{Words: []string{""}}), "f:1: name_unknown_prefix: allowed_prefixes: "},
		"many words":            {option("name_unknown_prefix", "allowed_prefixes", Value{Words: slices.Repeat([]string{"a"}, 1001)}), "f:1: name_unknown_prefix: allowed_prefixes: "},
		"warning over critical": {option("big_string", "warning", Value{Number: 6 << 20}), "f:1: big_string: warning 6MiB is above critical 5MiB; set both"},
		"least over most":       {option("loose_encoding", "least", Value{Number: 5001}), "f:1: loose_encoding: least 5001 is above most 5000; set both"},
		"critical under warning": {
			Spec{Rules: []RuleSpec{{ID: "many_elements", Options: []OptionSpec{number("warning", 5000)}}}, Namespaces: []NamespaceSpec{
				{Name: "n", Match: globs("*"), Rules: []RuleSpec{{ID: "many_elements", Options: []OptionSpec{{"critical", Value{Number: 4999}, "f:1"}}}}},
			}}, "f:1: many_elements: warning 5000 is above critical 4999",
		},
		"no name":             {namespace(NamespaceSpec{Match: globs("*")}), "f:1: the name of a namespace must be 1 to 64 bytes of printable UTF-8"},
		"name with a space":   {namespace(NamespaceSpec{Name: "a b", Match: globs("*")}), "f:1: the name of a namespace must be"},
		"long name":           {namespace(NamespaceSpec{Name: strings.Repeat("a", 65), Match: globs("*")}), "f:1: the name of a namespace must be"},
		"reserved":            {namespace(NamespaceSpec{Name: "default", Match: globs("*")}), `f:1: the namespace "default" is reserved`},
		"name twice":          {Spec{Namespaces: []NamespaceSpec{{Name: "n", Match: globs("a")}, {Name: "n", Match: globs("b"), Where: "f:1"}}}, `f:1: the namespace "n" is there twice`},
		"no match":            {namespace(NamespaceSpec{Name: "n"}), `f:1: the namespace "n" needs a match`},
		"owner":               {namespace(NamespaceSpec{Name: "n", Match: globs("*"), Owner: "a\x00"}), `f:1: the owner of "n" must be at most 200 bytes`},
		"db":                  {namespace(NamespaceSpec{Name: "n", Match: globs("*"), DBs: []int{0, -1}}), "f:1: db must be numbers from 0 to 2147483647"},
		"many dbs":            {namespace(NamespaceSpec{Name: "n", Match: globs("*"), DBs: make([]int, 1001)}), `f:1: the namespace "n" names more than 1000 databases`},
		"201 namespaces":      {many(201, 1, "a"), "f:200: a policy has at most 200 namespaces"},
		"1001 patterns":       {many(91, 11, "a"), "f:1: match: a policy has at most 1000 patterns, 100 of them regular expressions"},
		"101 expressions":     {many(1, 101, "/a/"), "f:1: match: a policy has at most 1000 patterns"},
		"empty pattern":       {match(""), `f:1: match: "": a pattern has 1 to 1024 bytes`},
		"long pattern":        {match(strings.Repeat("a", 1025)), "a pattern has 1 to 1024 bytes"},
		"open class":          {match("a[b"), `f:1: match: "a[b": a [ is not closed`},
		"open class, escaped": {match(`a[b\]`), "is not closed"},
		"open class, slash":   {match(`a[b\`), "is not closed"},
		"empty class":         {match("a[]"), "[] and [^] are empty"},
		"empty negation":      {match("a[^]"), "[] and [^] are empty"},
		"backwards":           {match("[z-a]"), "a range in [...] goes from a lower byte"},
		"open range":          {match("[a-]"), "a range in [...] goes from a lower byte"},
		"backslash":           {match(`a\`), "it ends in a backslash"},
		"expression":          {match("/(/"), `f:1: match: "/(/": error parsing regexp: missing closing ): ` + "`(`; the syntax is RE2's"},
		"empty expression":    {match("//"), "a regular expression has 1 to 256 bytes"},
		"look-ahead":          {match("/(?!a)/"), "the syntax is RE2's"},
		"long expression":     {match("/" + strings.Repeat("a", 257) + "/"), "a regular expression has 1 to 256 bytes"},
		"large expression":    {match("/a{900}b{900}/"), "compiles to more than 1000 steps"},
		"slash forgotten":     {match("/^a"), "a regular expression ends in a slash, too"},
		"watched twice":       {watch(WatchedKey{Name: "a"}, WatchedKey{Name: "a", Where: "f:1"}), `f:1: watch: "a" of db0 is there twice`},
		"watched db":          {watch(WatchedKey{DB: -1, Where: "f:1"}), "f:1: watch: db must be a number from 0"},
		"oversized name":      {watch(WatchedKey{Name: strings.Repeat("a", 16385), Where: "f:1"}), "f:1: watch: a name of more than 16384 bytes"},
		"101 watched":         {watch(append(hundred, WatchedKey{Name: "x", Where: "f:1"})...), "f:1: watch: takes at most 100 keys"},
	} {
		t.Run(about, func(t *testing.T) {
			p, err := New(c.spec)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.HasPrefix(c.want, "f:") && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if p != nil {
				t.Error("there is a policy, too")
			}
		})
	}
}

// TestSettings: what a namespace does not say holds as for all keys, and what is
// not said for these holds as in the rulebook.
func TestSettings(t *testing.T) {
	p, err := New(Spec{
		Rules: []RuleSpec{
			{ID: "ttl_missing", Level: pointer(Advisory)},
			{ID: "big_string", Options: []OptionSpec{number("warning", 100), number("critical", 1000)}},
			{ID: "name_too_long", Enabled: pointer(false)},
		},
		Namespaces: []NamespaceSpec{
			{Name: "a", Match: globs("a:*"), Owner: "team", Rules: []RuleSpec{
				{ID: "ttl_missing", Level: pointer(Mandatory)},
				{ID: "big_string", Options: []OptionSpec{number("critical", 200)}},
				{ID: "name_too_long", Enabled: pointer(true)},
			}},
			{Name: "b", Match: globs("b:*"), Rules: []RuleSpec{{ID: "ttl_missing", Exempt: true, ApprovedBy: "review"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	bigString, ttl, long := ruleIndex(t, p, "big_string"), ruleIndex(t, p, "ttl_missing"), ruleIndex(t, p, "name_too_long")
	for _, c := range []struct {
		namespace         int
		level             Level
		warning, critical int64
		ttl, long         bool
	}{
		{0, Advisory, 100, 1000, true, false},
		{1, Mandatory, 100, 200, true, true},
		{2, Advisory, 100, 1000, false, false},
	} {
		values := p.Settings(c.namespace, bigString).Values
		if got := p.Settings(c.namespace, ttl).Level; got != c.level {
			t.Errorf("%d: ttl_missing is %v", c.namespace, got)
		}
		if values.Number("warning") != c.warning || values.Number("critical") != c.critical {
			t.Errorf("%d: big_string: %v", c.namespace, values)
		}
		if p.Judges(c.namespace, ttl) != c.ttl || p.Judges(c.namespace, long) != c.long {
			t.Errorf("%d: ttl_missing %v, name_too_long %v", c.namespace, p.Judges(c.namespace, ttl), p.Judges(c.namespace, long))
		}
	}
	if n := p.Namespaces(); len(n) != 3 || n[0].Name != DefaultNamespace || n[1].Name != "a" || n[1].Owner != "team" || n[2].Name != "b" {
		t.Errorf("namespaces: %+v", n)
	}

	long44, permanent := strings.Repeat("x", 43), sized(keyspace.String, 1, 150, keyspace.NoTTL)
	for name, want := range map[string]struct {
		namespace int
		rules     []string
		big       Severity
		naming    bool
	}{
		"a:" + long44: {1, []string{"big_string", "ttl_missing", "name_too_long"}, Warning, true},
		"b:" + long44: {2, []string{"big_string"}, Warning, false},
		"c:" + long44: {0, []string{"big_string", "ttl_missing"}, Warning, false},
	} {
		k := permanent
		k.Name, k.NameBytes = name, int64(len(name))
		v := p.Check(&k)
		var rules uint64
		for _, id := range want.rules {
			rules |= 1 << ruleIndex(t, p, id)
		}
		if v.Namespace != want.namespace || v.Rules != rules || v.Big != want.big || v.Naming != want.naming {
			t.Errorf("%s: %+v, want %+v = %b", name, v, want, rules)
		}
	}
	critical := sized(keyspace.String, 1, 200, time.Hour)
	critical.Name = "a:1"
	if v := p.Check(&critical); v.Big != Critical {
		t.Errorf("200 bytes in a: %+v", v)
	}
	critical.Name = "b:1"
	if v := p.Check(&critical); v.Big != Warning {
		t.Errorf("200 bytes in b: %+v", v)
	}
}

// TestEvaluatedSomewhere: a rule that is judged in one namespace alone is
// evaluated, and one that no namespace judges is not.
func TestEvaluatedSomewhere(t *testing.T) {
	off := []RuleSpec{{ID: "ttl_missing", Enabled: pointer(false)}, {ID: "ttl_too_long", Enabled: pointer(false)}}
	p, err := New(Spec{Rules: off, Namespaces: []NamespaceSpec{
		{Name: "n", Match: globs("n"), Rules: []RuleSpec{{ID: "ttl_missing", Enabled: pointer(true)}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var available keyspace.Available
	for typ := range available {
		available[typ] = allFacts
	}
	evaluated := p.Evaluated(available, Untold)
	if !evaluated[ruleIndex(t, p, "ttl_missing")] || evaluated[ruleIndex(t, p, "ttl_too_long")] {
		t.Errorf("%v", evaluated)
	}
	available[keyspace.Hash] &^= keyspace.FactTTL
	if p.Evaluated(available, Untold)[ruleIndex(t, p, "ttl_missing")] {
		t.Error("evaluated without the TTL of hashes")
	}
}

// TestBigKeysFingerprint: it changes with what makes a key big, and only then.
func TestBigKeysFingerprint(t *testing.T) {
	limit := func(n int64) []RuleSpec {
		return []RuleSpec{{ID: "many_elements", Options: []OptionSpec{number("warning", n)}}}
	}
	same := []NamespaceSpec{{Name: "a", Match: globs("a:*"), Rules: []RuleSpec{{ID: "ttl_missing", Level: pointer(Mandatory)}}}}
	big := []NamespaceSpec{{Name: "b", Match: globs("*"), Rules: limit(500)}}
	print := func(s Spec) string {
		p, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		return p.BigKeys()
	}
	plain := print(Spec{})
	for about, s := range map[string]Spec{
		"said again":              {Rules: limit(1000)},
		"another level":           {Rules: []RuleSpec{{ID: "many_elements", Level: pointer(Advisory)}}},
		"another rule":            {Rules: []RuleSpec{{ID: "ttl_missing", Enabled: pointer(false)}}},
		"a namespace without any": {Namespaces: same},
	} {
		if print(s) != plain {
			t.Errorf("%s: the fingerprint changed", about)
		}
	}
	seen := map[string]string{plain: "plain"}
	for about, s := range map[string]Spec{
		"limit":            {Rules: limit(999)},
		"off":              {Rules: []RuleSpec{{ID: "many_elements", Enabled: pointer(false)}}},
		"namespace":        {Namespaces: big},
		"other database":   {Namespaces: []NamespaceSpec{{Name: "b", Match: globs("*"), DBs: []int{1}, Rules: limit(500)}}},
		"other pattern":    {Namespaces: []NamespaceSpec{{Name: "b", Match: globs("b*"), Rules: limit(500)}}},
		"one in front":     {Namespaces: append(slices.Clone(same), big...)},
		"exempt namespace": {Namespaces: []NamespaceSpec{{Name: "b", Match: globs("*"), Rules: []RuleSpec{{ID: "big_string", Exempt: true, ApprovedBy: "x"}}}}},
	} {
		if other, double := seen[print(s)]; double {
			t.Errorf("%s is like %s", about, other)
		}
		seen[print(s)] = about
	}
	if print(Spec{Namespaces: append(slices.Clone(big), same...)}) != print(Spec{Namespaces: big}) {
		t.Error("one behind, which is like the default, changed the fingerprint")
	}
}
