package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// everyKey is the draw of a cycle that looks at every key.
const everyKey = Measured | Detailed

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func sizedKey(name string, bytes int64) *keyspace.Key {
	return &keyspace.Key{
		Name: name, NameBytes: int64(len(name)), Hash: keyspace.HashName(name),
		Known: keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL, Type: keyspace.String, Bytes: bytes, TTL: time.Hour,
	}
}

func everything() keyspace.Available {
	var a keyspace.Available
	for t := range a {
		a[t] = keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL | keyspace.FactLength | objectFacts
	}
	return a
}

func testPolicy(t testing.TB) *policy.Policy {
	p, err := policy.New(policy.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestHistogram(t *testing.T) {
	h := newHistogram([]float64{10, 20})
	for _, v := range []float64{0, 10, 10.5, 20, 21} {
		h.observe(v)
	}
	h.observeSmall()
	if want := map[float64]uint64{10: 3, 20: 5}; !maps.Equal(h.Cumulative(), want) {
		t.Errorf("cumulative %v, want %v", h.Cumulative(), want)
	}
	if h.Count() != 6 || h.Sum != 61.5 {
		t.Errorf("count %d, sum %v", h.Count(), h.Sum)
	}
}

// TestRankingAgainstSort: whatever comes in whatever order, duplicates included,
// the list is what sorting would give.
func TestRankingAgainstSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := rng.IntN(8)
		values := map[string]int64{}
		r := newRanking(n, nil)
		for range rng.IntN(60) {
			name := fmt.Sprint("k:", rng.IntN(40))
			if _, ok := values[name]; !ok {
				values[name] = rng.Int64N(1_000_000)
			}
			r.offer(sizedKey(name, 0), "ns", values[name], now)
		}
		want := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return cmp.Compare(values[b], values[a]) })
		want = want[:min(n, len(want))]
		got := r.finish(func(int) bool { return true })
		if len(got) != len(want) {
			t.Fatalf("%d listed, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i].Label != want[i] || got[i].Value != values[want[i]] {
				t.Fatalf("place %d: %+v, want %s", i, got[i], want[i])
			}
		}
	}
}

// TestRankingHysteresis: a key stays listed until it is small enough or absent
// for two cycles in a row.
func TestRankingHysteresis(t *testing.T) {
	cycle := func(previous []Top, values map[string]int64) []Top {
		r := newRanking(2, previous)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			r.offer(sizedKey(name, 0), "ns", values[name], now)
		}
		return r.finish(func(db int) bool { return len(values) > 0 })
	}
	labels := func(top []Top) []string {
		var all []string
		for _, x := range top {
			all = append(all, x.Label)
		}
		return all
	}
	expect := func(step string, top []Top, want ...string) {
		t.Helper()
		if got := labels(top); !slices.Equal(got, want) {
			t.Errorf("%s: listed %v, want %v", step, got, want)
		}
	}
	top := cycle(nil, map[string]int64{"a": 100, "b": 90, "c": 80})
	expect("first", top, "a", "b")
	top = cycle(top, map[string]int64{"a": 100, "b": 80, "c": 100})
	expect("b fell to 0.8 of the second", top, "a", "c", "b")
	if top[2].Value != 80 {
		t.Errorf("b's value is %d", top[2].Value)
	}
	expect("b fell below", cycle(top, map[string]int64{"a": 100, "b": 79, "c": 100}), "a", "c")
	once := cycle(top, map[string]int64{"c": 100})
	expect("a and b absent once", once, "a", "c", "b")
	expect("twice", cycle(once, map[string]int64{"c": 100}), "c")
	back := cycle(once, map[string]int64{"a": 100, "c": 100})
	expect("a is back, b absent twice", back, "a", "c")
	again := cycle(back, map[string]int64{"c": 100})
	expect("a absent once more, counted anew", again, "a", "c")
	expect("an emptied database keeps nothing", cycle(top, nil))

	// At most 2N: three that stay and two new ones make four.
	full := cycle(nil, map[string]int64{"a": 100, "b": 100})
	full = cycle(full, map[string]int64{"a": 95, "b": 95, "c": 100, "d": 100})
	expect("four", full, "c", "d", "a", "b")
	full = cycle(full, map[string]int64{"a": 95, "b": 95, "c": 95, "d": 95, "e": 100, "f": 100})
	if len(full) != 4 {
		t.Errorf("%d listed: %v", len(full), labels(full))
	}
}

func TestRankingExpiry(t *testing.T) {
	r := newRanking(5, nil)
	k := sizedKey("a", 1)
	k.TTL = 90*time.Second + 400*time.Millisecond
	r.offer(k, "ns", 3, now)
	k = sizedKey("b", 1)
	k.TTL = keyspace.NoTTL
	r.offer(k, "ns", 2, now)
	k = sizedKey("c", 1)
	k.Known &^= keyspace.FactTTL
	r.offer(k, "ns", 1, now)
	top := r.finish(func(int) bool { return true })
	if !top[0].Expires.Equal(now.Add(90 * time.Second)) {
		t.Errorf("expires %v", top[0].Expires)
	}
	if !top[1].Expires.IsZero() || !top[2].Expires.IsZero() {
		t.Errorf("no TTL, or not known: %v, %v", top[1].Expires, top[2].Expires)
	}
}

// TestExamples: the largest of all that were offered, in any order.
func TestExamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		var all []*keyspace.Key
		for i := range rng.IntN(20) {
			all = append(all, sizedKey(fmt.Sprint("k:", i), rng.Int64N(5)))
		}
		var e examples
		for _, k := range all {
			e.offer(k)
			e.offer(k) // SCAN may return a name twice
		}
		slices.SortFunc(all, func(a, b *keyspace.Key) int {
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Hash, b.Hash))
		})
		for i, k := range all[:min(len(all), maxExamples)] {
			if i >= len(e) || e[i].Label != k.Name {
				t.Fatalf("place %d of %+v, want %s", i, e, k.Name)
			}
		}
		if len(e) > maxExamples {
			t.Fatalf("%d examples", len(e))
		}
	}
}

func TestBuilder(t *testing.T) {
	b := NewBuilder(testPolicy(t), bigkeys.New().Begin(now, 0, 1), 5, nil, now)
	add := func(name string, change func(*keyspace.Key)) {
		k := sizedKey(name, 100)
		change(k)
		b.Add(k, everyKey, now)
	}
	add("user:1", func(*keyspace.Key) {})
	add("user:2", func(k *keyspace.Key) { k.TTL = keyspace.NoTTL })
	add("nocolon", func(*keyspace.Key) {})
	add("hash:small", func(k *keyspace.Key) { k.Type, k.Bytes = keyspace.Hash, 1999 })
	add("hash:candidate", func(k *keyspace.Key) {
		k.Type, k.Bytes, k.Length, k.Known = keyspace.Hash, 5000, 500, k.Known|keyspace.FactLength
	})
	add("hash:unmeasured", func(k *keyspace.Key) { k.Type, k.Bytes = keyspace.Hash, 5000 }) // its length was denied or went wrong
	closed := &keyspace.Key{Name: "closed:1", NameBytes: 8, Hash: keyspace.HashName("closed:1")}
	b.Add(closed, Certain, now) // may not be probed
	s := b.Finish(Outcome{Completed: now, Coverage: 1, Available: everything()})

	db := &s.DBs[0]
	if db.Named != 7 || db.NamingBroken != 1 || db.Keys() != 7 {
		t.Errorf("%d named, %d broken, %v keys", db.Named, db.NamingBroken, db.Keys())
	}
	hash := &db.Types[keyspace.Hash]
	if hash.Keys.Value != 3 || hash.Bytes.Value != 11_999 || hash.Memory.Count() != 3 {
		t.Errorf("hashes: %+v", hash)
	}
	// The small one is known to be below 1000, the unmeasured one is not known.
	if hash.Elements.Count() != 2 || hash.Elements.Sum != 500 {
		t.Errorf("elements: %+v", hash.Elements)
	}
	if unknown := &db.Types[keyspace.Unknown]; unknown.Keys.Value != 1 || unknown.Memory != nil || unknown.Big != nil {
		t.Errorf("unknown: %+v", unknown)
	}
	if db.TTL.Count() != 5 {
		t.Errorf("%d TTLs", db.TTL.Count())
	}
	violations := map[string]float64{}
	for i, v := range db.Namespaces[0].Violations {
		if v.Value > 0 {
			violations[policy.Rules()[i].ID] = v.Value
		}
	}
	if want := map[string]float64{"ttl_missing": 1, "name_format": 1}; !reflect.DeepEqual(violations, want) {
		t.Errorf("violations %v, want %v", violations, want)
	}
}

// TestBuilderKeepsNoKey: the scanner reuses its keys and their memory.
func TestBuilderKeepsNoKey(t *testing.T) {
	build := func(reuse bool) *Snapshot {
		b := NewBuilder(testPolicy(t), bigkeys.New().Begin(now, 0, 1), 5, nil, now)
		k := &keyspace.Key{}
		for i := range 100 {
			if !reuse {
				k = &keyspace.Key{}
			}
			*k = *sizedKey(fmt.Sprint("bad name ", i), int64(i)*1000)
			b.Add(k, everyKey, now)
			if reuse {
				*k = keyspace.Key{Name: "overwritten"}
			}
		}
		return b.Finish(Outcome{Completed: now, Available: everything()})
	}
	a, b := build(true), build(false)
	if !reflect.DeepEqual(a.TopBytes, b.TopBytes) || !reflect.DeepEqual(a.Examples, b.Examples) || !reflect.DeepEqual(a.DBs, b.DBs) {
		t.Error("a reused key shows in the snapshot")
	}
}

func TestFullMeasure(t *testing.T) {
	s := Status{SampleRatio: 1}
	if _, ok := s.FullMeasure(); ok {
		t.Error("known before anything was scanned")
	}
	s.CycleDuration = time.Minute
	if d, ok := s.FullMeasure(); !ok || d != time.Minute {
		t.Errorf("%v, %v", d, ok)
	}
	s.SampleRatio = 0.25
	if d, _ := s.FullMeasure(); d != 4*time.Minute {
		t.Errorf("%v at a quarter a cycle", d)
	}
}

// BenchmarkAdd is the cost of a healthy key, of which it must not allocate any.
func BenchmarkAdd(b *testing.B) {
	builder := NewBuilder(testPolicy(b), bigkeys.New().Begin(now, 0, 1), 20, nil, now)
	k := sizedKey("order:invoice:00042", 100)
	for i := range 1000 { // settles the top list
		builder.Add(sizedKey(fmt.Sprint("order:", i), int64(200+i)), everyKey, now)
	}
	b.ReportAllocs()
	for b.Loop() {
		builder.Add(k, everyKey, now)
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	builder := NewBuilder(testPolicy(t), bigkeys.New().Begin(now, 0, 1), 20, nil, now)
	for i := range 1000 { // settles the top lists
		k := sizedKey(fmt.Sprint("order:", i), int64(200+i))
		k.Known, k.Frequency = k.Known|objectFacts, 5
		builder.Add(k, everyKey|Fixed, now)
	}
	k := sizedKey("order:invoice:00042", 100)
	if n := testing.AllocsPerRun(1000, func() { builder.Add(k, everyKey, now) }); n != 0 {
		t.Errorf("%v allocations for a healthy key", n)
	}
	k.Known |= objectFacts
	k.TTL = keyspace.NoTTL
	builder.Add(k, everyKey|Fixed, now)
	if n := testing.AllocsPerRun(1000, func() { builder.Add(k, everyKey|Fixed, now) }); n != 0 {
		t.Errorf("%v allocations for a key of the fixed sample", n)
	}
}

// TestNamespaces: each namespace that holds keys has its own figures, at the
// levels that it was judged by, and none of rules that do not apply to it.
func TestNamespaces(t *testing.T) {
	mandatory := policy.Mandatory
	p, err := policy.New(policy.Spec{Namespaces: []policy.NamespaceSpec{
		{Name: "strict", Match: []policy.Pattern{{Text: "s:*"}}, Rules: []policy.RuleSpec{{ID: "ttl_missing", Level: &mandatory}}},
		{Name: "free", Match: []policy.Pattern{{Text: "f:*"}}, Rules: []policy.RuleSpec{{ID: "ttl_missing", Exempt: true, ApprovedBy: "review"}}},
		{Name: "empty", Match: []policy.Pattern{{Text: "e:*"}}},
		{Name: "queue", Match: []policy.Pattern{{Text: "q:*"}}, Rules: []policy.RuleSpec{{ID: "many_elements", Exempt: true, ApprovedBy: "review"}, {ID: "big_string", Exempt: true, ApprovedBy: "review"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	finds := bigkeys.New().Begin(now, 0, 1)
	b := NewBuilder(p, finds, 5, nil, now)
	for _, name := range []string{"s:1", "s:2", "f:1", "o:1"} {
		k := sizedKey(name, 100)
		k.TTL = keyspace.NoTTL
		b.Add(k, everyKey, now)
	}
	queue := sizedKey("q:1", 1<<19)
	queue.Type, queue.Known, queue.Length = keyspace.List, queue.Known|keyspace.FactLength, 50_000
	b.Add(queue, everyKey, now)
	s := b.Finish(Outcome{Completed: now, Coverage: 1, Available: everything()})

	ttl, many := ruleIndex(t, "ttl_missing"), ruleIndex(t, "many_elements")
	want := []struct {
		name  string
		level policy.Level
		ttl   Estimate
		many  bool
	}{
		{"default", policy.Recommended, Estimate{Value: 1}, true},
		{"free", policy.Recommended, unknown, true},
		{"queue", policy.Recommended, Estimate{}, false},
		{"strict", policy.Mandatory, Estimate{Value: 2}, true},
	}
	if len(s.DBs[0].Namespaces) != len(want) {
		t.Fatalf("%+v", s.DBs[0].Namespaces)
	}
	for i, w := range want {
		if n := s.DBs[0].Namespaces[i]; n.Name != w.name || n.Levels[ttl] != w.level || n.Violations[ttl] != w.ttl || n.Violations[many].Known() != w.many {
			t.Errorf("%s: %v, %v, %v; want %+v", n.Name, n.Levels[ttl], n.Violations[ttl], n.Violations[many], w)
		}
	}
	if !s.Evaluated[ttl] || s.DBs[0].Types[keyspace.List].Big[policy.Critical].Keys != 0 {
		t.Errorf("evaluated %v, big lists %+v", s.Evaluated[ttl], s.DBs[0].Types[keyspace.List].Big)
	}
	if len(s.TopElements) != 1 || s.TopElements[0].Namespace != "queue" || s.TopElements[0].Value != 50_000 {
		t.Errorf("an exempt queue is not in the top list: %+v", s.TopElements)
	}
}

// TestRulesAreTheCycles: the limits in the words are those that the keys were
// judged by, of the server's rules too.
func TestRulesAreTheCycles(t *testing.T) {
	advisory := policy.Advisory
	p, err := policy.New(policy.Spec{Rules: []policy.RuleSpec{
		{ID: "ttl_too_long", Level: &advisory, Options: []policy.OptionSpec{{Name: "max", Value: policy.Value{Number: int64(time.Hour)}}}},
		{ID: "mixed_business", Options: []policy.OptionSpec{{Name: "max_businesses", Value: policy.Value{Number: 3}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := NewBuilder(p, bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now).Finish(Outcome{Completed: now})
	if got, want := s.Rules[ruleIndex(t, "ttl_too_long")], (Rule{policy.Advisory, "a TTL longer than 1h"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := s.Rules[ruleIndex(t, "mixed_business")].Violated; !strings.HasPrefix(got, "more than 3 (ours)") {
		t.Errorf("%q", got)
	}
}

// TestElementsNeedEveryLength: without HLEN the elements of hashes are not known,
// those that some other way told included.
func TestElementsNeedEveryLength(t *testing.T) {
	available := everything()
	available[keyspace.Hash] &^= keyspace.FactLength
	b := NewBuilder(testPolicy(t), bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now)
	for _, typ := range []keyspace.Type{keyspace.Hash, keyspace.List} {
		k := sizedKey("k:"+typ.String(), 100)
		k.Type = typ
		b.Add(k, everyKey, now)
	}
	types := b.Finish(Outcome{Completed: now, Available: available}).DBs[0].Types
	if types[keyspace.Hash].Elements != nil || types[keyspace.List].Elements == nil || types[keyspace.Hash].Memory == nil {
		t.Errorf("hashes %+v, lists %+v", types[keyspace.Hash].Elements, types[keyspace.List].Elements)
	}
}

// TestCountedAbove: what is too small to be counted is in the first bucket.
func TestCountedAbove(t *testing.T) {
	if elementsBounds[0] != policy.CountedAbove {
		t.Errorf("first bucket up to %v, counted above %d", elementsBounds[0], policy.CountedAbove)
	}
}
