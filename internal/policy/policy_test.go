package policy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
)

const allFacts = keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL | keyspace.FactLength |
	keyspace.FactEncoding | keyspace.FactIdle | keyspace.FactFrequency | keyspace.FactHead

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

func enabled(id string) RuleSpec {
	on := true
	return RuleSpec{ID: id, Enabled: &on}
}

func list(name string, words ...string) OptionSpec {
	return OptionSpec{Name: name, Value: Value{Words: words}}
}

func allowed(prefixes ...string) RuleSpec {
	return RuleSpec{ID: "name_unknown_prefix", Options: []OptionSpec{list("allowed_prefixes", prefixes...)}}
}

// judge expects the rule, with these options, to grade keys as the table says.
func judge(t *testing.T, id string, options []OptionSpec, table []judgement) {
	t.Helper()
	judgeBy(t, mustNew(t, RuleSpec{ID: id, Options: options}), id, table)
}

func judgeBy(t *testing.T, p *Policy, id string, table []judgement) {
	t.Helper()
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
		if c.index == index && k.Has(c.needs) && c.judges(k.Type) && c.met(p.Check(k).Rules) {
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
		_, sampled := r.New(r.Defaults()).(sampledChecker)
		if needsFloor := r.Needs&keyspace.FactLength != 0; needsFloor && !floored && !sampled {
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

// TestUnknownFacts: a fact that was not fetched is no fact. Its zero, or what it
// was of another key, must not break a rule; for each rule and each fact of it.
func TestUnknownFacts(t *testing.T) {
	p := mustNew(t, enabled("json_string"))
	permanent := sized(keyspace.String, 1<<40, 1<<30, keyspace.NoTTL)
	permanent.Head, permanent.Idle, permanent.Frequency = '{', 365*day, 255
	loose := sized(keyspace.Hash, 1<<40, 5000, 365*day)
	loose.Encoding, loose.Frequency = keyspace.EncodingHashtable, 255
	judged := map[int]bool{}
	for _, worst := range []keyspace.Key{permanent, loose} {
		broken := p.Check(&worst).Rules
		for i, r := range p.Rules() {
			if broken>>i&1 == 0 {
				continue
			}
			judged[i] = true
			for fact := keyspace.Facts(1); fact != 0; fact <<= 1 {
				if r.Needs&fact == 0 {
					continue
				}
				k := worst
				k.Known &^= fact
				if p.Check(&k).Rules>>i&1 == 1 {
					t.Errorf("%s is broken by fact %b that nobody fetched", r.ID, fact)
				}
			}
		}
		worst.Known = 0
		for i, r := range p.Rules() {
			if r.Needs != 0 && p.Check(&worst).Rules>>i&1 == 1 {
				t.Errorf("%s is broken by facts that nobody fetched", r.ID)
			}
		}
	}
	for i, r := range p.Rules() {
		if r.New != nil && r.Needs != 0 && !judged[i] {
			t.Errorf("%s: the worst keys do not break it", r.ID)
		}
	}
}

func TestEvaluated(t *testing.T) {
	p := mustNew(t, enabled("json_string"))
	without := func(facts keyspace.Facts) func(keyspace.Type) keyspace.Facts {
		return func(keyspace.Type) keyspace.Facts { return facts }
	}
	of := func(typ keyspace.Type, facts keyspace.Facts) func(keyspace.Type) keyspace.Facts {
		return func(t keyspace.Type) keyspace.Facts {
			if t == typ {
				return facts
			}
			return 0
		}
	}
	const elements, big = "many_elements big_element ", "big_string many_elements big_collection big_element hot_and_big "
	for _, tc := range []struct {
		about   string
		without func(keyspace.Type) keyspace.Facts
		lazy    Setting
		not     string // rules that are not evaluated, name_unknown_prefix aside
	}{
		{"all", without(0), Off, ""},
		{"harmless", without(0), On, ""},
		{"no setting", without(0), Untold, "ttl_big_key"},
		{"names only", without(allFacts), Off, big + "loose_encoding json_string ttl_missing ttl_too_long ttl_clustered ttl_big_key idle_permanent hot_key"},
		{"no TTL", without(keyspace.FactTTL), Off, "ttl_missing ttl_too_long ttl_clustered ttl_big_key idle_permanent"},
		{"no HLEN", of(keyspace.Hash, keyspace.FactLength), Off, elements + "loose_encoding hot_and_big ttl_big_key"},
		{"no XLEN", of(keyspace.Stream, keyspace.FactLength), Off, "many_elements hot_and_big ttl_big_key"},
		{"no STRLEN", of(keyspace.String, keyspace.FactLength), Off, "big_string json_string hot_and_big"},
		{"no OBJECT ENCODING", without(keyspace.FactEncoding), Off, "loose_encoding"},
		{"LFU", without(keyspace.FactIdle), Off, "idle_permanent"},
		{"not LFU", without(keyspace.FactFrequency), Off, "hot_key hot_and_big"},
		{"no GETRANGE", without(keyspace.FactHead), Off, "json_string"},
	} {
		var available keyspace.Available
		for typ := range available {
			available[typ] = allFacts &^ tc.without(keyspace.Type(typ))
		}
		not := strings.Fields(tc.not)
		for i, got := range p.Evaluated(available, tc.lazy) {
			id := p.Rules()[i].ID
			if p.Rules()[i].AboutServer() {
				continue
			}
			if want := !slices.Contains(not, id) && id != "name_unknown_prefix"; got != want {
				t.Errorf("%s: %s evaluated = %v", tc.about, id, got)
			}
		}
	}
	if plain := mustNew(t); plain.Needs()&keyspace.FactHead != 0 || p.Needs()&keyspace.FactHead == 0 {
		t.Error("values are looked into where nobody asked for it, or not where somebody did")
	}
}

// TestBasis: violations are counted among the keys of which the rule's facts are
// known.
func TestBasis(t *testing.T) {
	want := map[string]Basis{
		"big_string": OnSizes, "many_elements": OnSizes, "big_collection": OnSizes, "big_element": OnSizes,
		"loose_encoding": OnSizes, "hot_and_big": OnSizes, "ttl_big_key": OnSizes,
		"ttl_missing": OnDetail, "ttl_too_long": OnDetail, "ttl_clustered": OnDetail,
		"json_string": OnFixed, "idle_permanent": OnFixed, "hot_key": OnFixed,
	}
	for _, r := range Rules() {
		if got := r.Basis(); got != want[r.ID] { // a name rule's is OnNames
			t.Errorf("%s: %v, want %v", r.ID, got, want[r.ID])
		}
	}
}

// TestFloors: no key that Redis can hold breaks a rule that needs its length
// while its MEMORY USAGE is below the floor, whatever the limits, for all keys
// and in a namespace.
func TestFloors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	loose := ruleIndex(t, mustNew(t), "loose_encoding")
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
		if rng.IntN(3) > 0 {
			some = append(some, RuleSpec{ID: "loose_encoding", Options: []OptionSpec{number("least", 1+rng.Int64N(1000))}})
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
			if typ == keyspace.Hash && rng.IntN(2) == 0 {
				k.Encoding, k.Bytes = keyspace.EncodingHashtable, max(k.Bytes, minFieldBytes*length)
			}
			v := p.Check(&k)
			if v.Namespace != k.DB {
				t.Fatalf("key of db%d is in namespace %d", k.DB, v.Namespace)
			}
			floor := p.Floor(v.Namespace, typ)
			untyped := k
			untyped.Type = keyspace.Unknown
			if (v.Big != Healthy || broken(v, loose)) && (k.Bytes < floor || !p.Candidate(&k) || !p.Candidate(&untyped)) {
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

// TestRulesFitTheBits: a Verdict has a bit for each rule.
func TestRulesFitTheBits(t *testing.T) {
	if n := len(Rules()); n > 64 {
		t.Errorf("%d rules", n)
	}
}

// TestNamingByLevel: whether a key counts as badly named depends on the level
// that holds for it, not on the rulebook's.
func TestNamingByLevel(t *testing.T) {
	advisory, mandatory := Advisory, Mandatory
	p, err := New(Spec{Namespaces: []NamespaceSpec{{Name: "shop", Match: []Pattern{{Text: "s*"}}, Rules: []RuleSpec{
		{ID: "name_format", Level: &advisory}, {ID: "name_discouraged_separator", Level: &mandatory},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"single": false, "other": true, "shop:big-basket": true, "other:big-basket": false} {
		k := named(name)
		if v := p.Check(&k); v.Rules == 0 || v.Naming != want {
			t.Errorf("%s: naming %v, rules %b", name, v.Naming, v.Rules)
		}
	}
}

// TestLooksInto: a key is looked into from the rule's limit on, and only when its
// size and type are known.
func TestLooksInto(t *testing.T) {
	p := mustNew(t, enabled("json_string"))
	floor := p.namespaces[DefaultIndex].sampledFloors[keyspace.String]
	if floor <= 1 || floor == Never {
		t.Fatalf("floor %d", floor)
	}
	for _, tc := range []struct {
		known keyspace.Facts
		bytes int64
		want  bool
	}{
		{keyspace.FactBytes | keyspace.FactType, floor, true},
		{keyspace.FactBytes | keyspace.FactType, floor - 1, false},
		{keyspace.FactType, floor, false},
		{keyspace.FactBytes, floor, false},
	} {
		k := sized(keyspace.String, tc.bytes, tc.bytes, keyspace.NoTTL)
		k.Known = tc.known
		if got := p.LooksInto(&k); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	k := sized(keyspace.String, floor, floor, keyspace.NoTTL)
	if mustNew(t).LooksInto(&k) {
		t.Error("without the rule")
	}
}
