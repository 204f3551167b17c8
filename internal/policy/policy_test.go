package policy

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
)

const allFacts = keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL | keyspace.FactLength

// judgement is a row of a rule's table: how the rule grades the key, which is
// also what the whole policy must say of that rule.
type judgement struct {
	about string
	key   keyspace.Key
	want  Severity
}

// named is a key of which only the name is known.
func named(name string) keyspace.Key {
	return keyspace.Key{Name: name, NameBytes: int64(len(name)), Hash: keyspace.HashName(name)}
}

// sized is a key all of whose facts are known.
func sized(t keyspace.Type, bytes, length int64, ttl time.Duration) keyspace.Key {
	k := named("order:item:1")
	k.Known, k.Type, k.Bytes, k.Length, k.TTL = allFacts, t, bytes, length, ttl
	return k
}

// mustNew makes a policy with settings of some rules.
func mustNew(t testing.TB, rules ...RuleSpec) *Policy {
	t.Helper()
	p, err := New(Spec{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func number(name string, n int64) OptionSpec { return OptionSpec{Name: name, Value: Value{Number: n}} }

func list(name string, words ...string) OptionSpec {
	return OptionSpec{Name: name, Value: Value{Words: words}}
}

func allowed(prefixes ...string) RuleSpec {
	return RuleSpec{ID: "name_unknown_prefix", Options: []OptionSpec{list("allowed_prefixes", prefixes...)}}
}

// judge expects the rule, with these options, to grade keys as the table says.
func judge(t *testing.T, id string, options []OptionSpec, table []judgement) {
	t.Helper()
	p := mustNew(t, RuleSpec{ID: id, Options: options})
	index := ruleIndex(t, p, id)
	for _, row := range table {
		verdict := p.Check(&row.key)
		if broken(verdict, index) != (row.want != Healthy) {
			t.Errorf("%s: %s %q: broken = %v, want %v", id, row.about, row.key.Name, broken(verdict, index), row.want)
		}
		if got := severityOf(p, index, &row.key); got != row.want {
			t.Errorf("%s: %s: severity %v, want %v", id, row.about, got, row.want)
		}
	}
}

// broken tells whether a verdict holds rule i.
func broken(v Verdict, i int) bool { return v.Rules>>i&1 == 1 }

func severityOf(p *Policy, index int, k *keyspace.Key) Severity {
	for _, c := range p.namespaces[p.NamespaceOf(k)].checks {
		if c.index == index && k.Has(c.needs) && c.judges(k.Type) {
			return c.Check(k)
		}
	}
	return Healthy
}

func ruleIndex(t *testing.T, p *Policy, id string) int {
	t.Helper()
	for i, r := range p.Rules() {
		if r.ID == id {
			return i
		}
	}
	t.Fatalf("no rule %q", id)
	return 0
}

func TestRulebook(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] || r.ID == "" || r.Violated == "" || r.Source == "" || r.New != nil && r.NewServer != nil {
			t.Errorf("rule %q is double or incomplete", r.ID)
		}
		seen[r.ID] = true
		if (r.Needs&keyspace.FactType != 0) != (r.Types != 0) {
			t.Errorf("rule %q names types without needing them, or the reverse", r.ID)
		}
		if r.New == nil {
			continue
		}
		_, floored := r.New(r.Defaults()).(sizeChecker)
		if needsFloor := r.Needs&keyspace.FactLength != 0; needsFloor && !floored {
			t.Errorf("rule %q needs a candidate's fact but has no floor", r.ID)
		}
	}
	if n := len(seen); n > 64 {
		t.Errorf("%d rules do not fit a Verdict", n)
	}
}

func TestVerdict(t *testing.T) {
	p := mustNew(t)
	for _, tc := range []struct {
		about  string
		key    keyspace.Key
		big    Severity
		naming bool
	}{
		{"healthy", sized(keyspace.String, 100, 10, time.Hour), Healthy, false},
		{"worst tier of several rules", sized(keyspace.Hash, 200<<20, 1001, time.Hour), Critical, false},
		{"warning", sized(keyspace.String, 20<<10, 10241, time.Hour), Warning, false},
		{"recommended name rule", named("nocolon"), Healthy, true},
		{"mandatory name rule", named("a:b c"), Healthy, true},
		{"advisory name rule", named("a:b-c"), Healthy, false},
	} {
		if v := p.Check(&tc.key); v.Big != tc.big || v.Naming != tc.naming {
			t.Errorf("%s: %+v, want big %v, naming %v", tc.about, v, tc.big, tc.naming)
		}
	}
}

// TestUnknownFacts: a fact that was not fetched is no fact. Its zero must not
// break or satisfy a rule.
func TestUnknownFacts(t *testing.T) {
	p := mustNew(t)
	worst := sized(keyspace.Hash, 1<<40, 1<<30, keyspace.NoTTL)
	if v := p.Check(&worst); v.Rules == 0 {
		t.Fatal("the worst key is healthy")
	}
	worst.Known = 0
	if v := p.Check(&worst); v.Rules != 0 {
		t.Errorf("rules %b broken by facts that nobody fetched", v.Rules)
	}
}

func TestEvaluated(t *testing.T) {
	p := mustNew(t)
	names := []string{"name_format", "name_too_long", "name_oversized", "name_special_char", "name_discouraged_separator"}
	for _, tc := range []struct {
		about   string
		without func(keyspace.Type) keyspace.Facts
		want    []string
	}{
		{"all", func(keyspace.Type) keyspace.Facts { return 0 }, append([]string{"big_string", "many_elements", "big_collection", "big_element", "ttl_missing", "ttl_too_long"}, names...)},
		{"none", func(keyspace.Type) keyspace.Facts { return allFacts }, names},
		{"no TTL", func(keyspace.Type) keyspace.Facts { return keyspace.FactTTL }, append([]string{"big_string", "many_elements", "big_collection", "big_element"}, names...)},
		{"no HLEN", func(t keyspace.Type) keyspace.Facts {
			if t == keyspace.Hash {
				return keyspace.FactLength
			}
			return 0
		}, append([]string{"big_string", "big_collection", "ttl_missing", "ttl_too_long"}, names...)},
		{"no XLEN", func(t keyspace.Type) keyspace.Facts {
			if t == keyspace.Stream {
				return keyspace.FactLength
			}
			return 0
		}, append([]string{"big_string", "big_collection", "big_element", "ttl_missing", "ttl_too_long"}, names...)},
	} {
		want := map[string]bool{}
		for _, id := range tc.want {
			want[id] = true
		}
		var available keyspace.Available
		for typ := range available {
			available[typ] = allFacts &^ tc.without(keyspace.Type(typ))
		}
		for i, got := range p.Evaluated(available) {
			if id := p.Rules()[i].ID; got != want[id] {
				t.Errorf("%s: %s evaluated = %v", tc.about, id, got)
			}
		}
	}
}

// TestFloors: no key that Redis can hold breaks a rule that needs its length
// while its MEMORY USAGE is below the floor, whatever the limits, for all keys
// and in a namespace.
func TestFloors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	limits := func(id string, limit int64) RuleSpec {
		critical := 1 + rng.Int64N(2*limit)
		return RuleSpec{ID: id, Options: []OptionSpec{number("warning", 1+rng.Int64N(min(critical, limit))), number("critical", critical)}}
	}
	rules := func() (some []RuleSpec) {
		for id, limit := range map[string]int64{"big_string": 20_000, "many_elements": 5000, "big_collection": 2 << 20, "big_element": 8000} {
			if rng.IntN(3) > 0 {
				some = append(some, limits(id, limit))
			}
		}
		return some
	}
	for range 2000 {
		p, err := New(Spec{Rules: rules(), Namespaces: []NamespaceSpec{
			{Name: "a", Match: []Pattern{{Text: "order:*"}}, DBs: []int{1}, Rules: rules()},
			{Name: "b", Match: []Pattern{{Text: "order:*"}}, DBs: []int{1, 2}, Rules: rules()},
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			typ := keyspace.Types()[rng.IntN(keyspace.NumTypes)]
			length := rng.Int64N(20_000)
			least := length // a string takes its bytes
			switch {
			case typ == keyspace.Stream:
				least = minStreamEntryBytes * length
			case typ.Collection():
				least = minElementBytes * length
			}
			k := sized(typ, least+rng.Int64N(1+least), length, time.Hour)
			k.DB = rng.IntN(3)
			v := p.Check(&k)
			if v.Namespace != k.DB {
				t.Fatalf("key of db%d is in namespace %d", k.DB, v.Namespace)
			}
			floor := p.Floor(v.Namespace, typ)
			untyped := k
			untyped.Type = keyspace.Unknown
			if v.Big != Healthy && (k.Bytes < floor || !p.Candidate(&k) || !p.Candidate(&untyped)) {
				t.Fatalf("%v of %d bytes, %d elements is %v below its floor %d", typ, k.Bytes, k.Length, v.Big, floor)
			}
			if typ.Collection() && length > CountedAbove && k.Bytes < floor {
				t.Fatalf("%v of %d bytes, %d elements is not counted: floor %d", typ, k.Bytes, k.Length, floor)
			}
			if p.Candidate(&k) != (k.Bytes >= floor) {
				t.Fatalf("%v of %d bytes: candidate %v, floor %d", typ, k.Bytes, p.Candidate(&k), floor)
			}
		}
	}
	p := mustNew(t)
	for typ, want := range map[keyspace.Type]int64{
		keyspace.String: 10<<10 + 1, keyspace.Hash: 2000, keyspace.Stream: 10_000,
		keyspace.Module: 1<<20 + 1, keyspace.Unknown: 2000,
	} {
		if got := p.Floor(0, typ); got != want {
			t.Errorf("default floor of %v = %d, want %d", typ, got, want)
		}
	}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	p := mustNew(t, allowed("order"))
	keys := []keyspace.Key{
		sized(keyspace.String, 100, 10, time.Hour),
		sized(keyspace.Hash, 5000, 20, time.Hour),
		named("{order}:2024-01-02:" + strings.Repeat("x", 20)),
		named("order:订单:550e8400-e29b-41d4-a716-446655440000"),
	}
	for i := range keys {
		if n := testing.AllocsPerRun(100, func() { p.Check(&keys[i]) }); n != 0 {
			t.Errorf("%q: %v allocations", keys[i].Name, n)
		}
	}
}

// FuzzNameRules: name rules take any bytes, keep within their table's words,
// and do not depend on what was judged before.
func FuzzNameRules(f *testing.F) {
	for _, seed := range []string{"", "user:1", "{a}:b", "a{}b", "{", "a:\xff", "x:2024-01-02T10", ":::", "a#b#c", "u:a@b-c.de"} {
		f.Add(seed)
	}
	p := mustNew(f, allowed("user"))
	f.Fuzz(func(t *testing.T, name string) {
		k := named(name)
		first := p.Check(&k)
		if again := p.Check(&k); again != first {
			t.Fatalf("%q: %+v, then %+v", name, first, again)
		}
		if first.Big != Healthy {
			t.Fatalf("%q: a name alone makes no big key", name)
		}
		for i, r := range p.Rules() {
			if broken(first, i) && r.Group != Names {
				t.Fatalf("%q breaks %s", name, r.ID)
			}
		}
		if strings.ContainsAny(name, " \t\n'\"\\") && !broken(first, ruleIndex(t, p, "name_special_char")) {
			t.Fatalf("%q has a special character", name)
		}
		if !strings.ContainsAny(name, ":#") && !broken(first, ruleIndex(t, p, "name_format")) {
			t.Fatalf("%q has one segment at most", name)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	p := mustNew(b)
	k := sized(keyspace.String, 100, 10, time.Hour)
	k.Name = "order:invoice:00042"
	b.ReportAllocs()
	for b.Loop() {
		p.Check(&k)
	}
}
