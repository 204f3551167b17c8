package snapshot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

const objectFacts = keyspace.FactEncoding | keyspace.FactIdle | keyspace.FactFrequency

// population of keys that are hot, idle or held in some way, candidates more
// often than small ones.
type objects struct {
	keys           []keyspace.Key
	hot, idle, raw float64
}

func newObjects(seed uint64, n int) *objects {
	rng := rand.New(rand.NewPCG(seed, 11))
	o := &objects{}
	for i := range n {
		k := *sizedKey(fmt.Sprintf("key:%d:%d", seed, i), 100)
		k.TTL = keyspace.NoTTL
		k.Known |= objectFacts
		odds := 4
		if rng.IntN(20) == 0 {
			k.Bytes, odds = 11_000, 2
		}
		if rng.IntN(odds) == 0 {
			k.Frequency = 200
			o.hot++
		}
		if rng.IntN(odds) == 0 {
			k.Idle = 40 * 24 * time.Hour
			o.idle++
		}
		if k.Encoding = keyspace.EncodingEmbstr; rng.IntN(odds) == 0 {
			k.Encoding = keyspace.EncodingRaw
			o.raw++
		}
		o.keys = append(o.keys, k)
	}
	return o
}

// cycle measures one class of k and draws one of 64 into the fixed sample.
func (o *objects) cycle(rules *policy.Policy, k, class, fixed uint64) *DB {
	b := NewBuilder(rules, bigkeys.New().Begin(time.Time{}, int(class), int(k)), 0, nil, now)
	for i := range o.keys {
		key := o.keys[i]
		draw := Detailed
		if key.Hash%k == class {
			draw |= Measured
		}
		if key.Hash>>48%64 == fixed {
			draw |= Fixed
		}
		known := keyspace.FactType | keyspace.FactTTL
		if draw&(Measured|Fixed) != 0 {
			known |= keyspace.FactBytes
		}
		if draw&Fixed != 0 || draw&Measured != 0 && key.Bytes >= rules.Floor(0, key.Type) {
			known |= objectFacts
		}
		key.Known = known
		b.Add(&key, draw, now)
	}
	return &b.Finish(Outcome{Completed: now, Available: everything()}).DBs[0]
}

// TestFixedCoverage: what is estimated from the fixed sample is within its 95 %
// interval in about 95 % of the cycles, whether or not all keys are measured.
func TestFixedCoverage(t *testing.T) {
	const seeds, n = 150, 10_000
	rules := testPolicy(t)
	hot, idle := ruleIndex(t, "hot_key"), ruleIndex(t, "idle_permanent")
	for _, k := range []uint64{1, 8} {
		covered, of, sum, truth := 0, 0, 0.0, 0.0
		for seed := range uint64(seeds) {
			o := newObjects(seed, n)
			db := o.cycle(rules, k, seed%k, seed%64)
			for rule, want := range map[int]float64{hot: o.hot, idle: o.idle} {
				e := db.Namespaces[0].Violations[rule]
				if e.Stderr == 0 || !e.Known() {
					t.Fatalf("%+v", e)
				}
				if of++; math.Abs(e.Value-want) <= 1.96*e.Stderr {
					covered++
				}
				sum, truth = sum+e.Value, truth+want
			}
			if got, want := db.Types[keyspace.String].Encoded[keyspace.EncodingRaw], o.raw; math.Abs(got-want) > 0.5*want {
				t.Errorf("k = %d: %v raw strings, want about %v", k, got, want)
			}
			over := db.Idle.Count() - db.Idle.Cumulative()[2592000]
			if got := db.Namespaces[0].Violations[idle].Value; math.Abs(float64(over)-got) > 2 {
				t.Errorf("k = %d: %d keys are idle for 30 days, %v break the rule", k, over, got)
			}
		}
		share := float64(covered) / float64(of)
		t.Logf("k = %d: %.1f %% of %d, bias %.2f %%", k, 100*share, of, 100*(sum/truth-1))
		if share < 0.91 || share > 0.985 || math.Abs(sum/truth-1) > 0.02 {
			t.Errorf("k = %d: the 95 %% interval covers the truth in %.1f %%, bias %v", k, 100*share, sum/truth)
		}
	}
}

// TestFixedSample: candidates are counted, small keys estimated, and a key that
// is looked at for the fixed sample alone counts for nothing else.
func TestFixedSample(t *testing.T) {
	rules := testPolicy(t)
	b := NewBuilder(rules, bigkeys.New().Begin(time.Time{}, 0, 2), 10, nil, now)
	add := func(draw Draw, bytes int64, frequency uint8) {
		k := sizedKey(fmt.Sprint("k:", draw, bytes, frequency, len(b.dbs), b.db(0).names), bytes)
		k.Known |= objectFacts | keyspace.FactLength
		k.Length, k.Frequency, k.Encoding = bytes, frequency, keyspace.EncodingRaw
		if draw&(Certain|Measured|Fixed) == 0 {
			k.Known = 0
		}
		b.Add(k, draw, now)
	}
	add(Certain, 100, 220)
	add(Measured, 20_000, 240) // a candidate
	add(Measured, 20_000, 0)
	for range 6 {
		add(Measured|Fixed, 100, 0)
	}
	add(Measured|Fixed, 100, 200)
	add(Measured|Fixed, 100, 199)
	for range 10 {
		add(0, 0, 0)
	}
	add(Fixed, 100, 250)    // small, not of this class
	add(Fixed, 20_000, 255) // a candidate, not of this class
	s := b.Finish(Outcome{Completed: now, Available: everything()})
	db := s.DBs[0]
	// Of the 22 of the rest 10 were measured: 2 candidates, 8 small ones. Of 9
	// small ones in the sample 2 are hot.
	want := 1 + 22.0/10*(1+8*2.0/9)
	hot := db.Namespaces[0].Violations[ruleIndex(t, "hot_key")]
	if math.Abs(hot.Value-want) > 1e-9 || hot.Stderr == 0 {
		t.Errorf("hot keys %+v, want %v", hot, want)
	}
	for id, want := range map[string]float64{"hot_and_big": 1, "big_string": 2} {
		if v := db.Namespaces[0].Violations[ruleIndex(t, id)]; v.Value != want || v.Stderr != 0 {
			t.Errorf("%s: %+v, want %v", id, v, want)
		}
	}
	if big := db.Types[keyspace.String].Big[policy.Warning].Keys; big != 2 {
		t.Errorf("%d big keys: one is not of this class", big)
	}
	if db.Types[keyspace.String].Keys.Known() && db.Types[keyspace.String].Keys.Stderr == 0 {
		t.Errorf("types are known: %+v", db.Types[keyspace.String].Keys)
	}
	var seen []int64
	for _, top := range s.TopFrequency {
		seen = append(seen, top.Value)
	}
	if fmt.Sprint(seen[:5]) != "[255 250 240 220 200]" {
		t.Errorf("frequencies %v", seen)
	}
	if len(s.TopBytes) != 10 || s.TopBytes[0].Bytes != 20_000 {
		t.Errorf("largest %+v", s.TopBytes)
	}
}

// TestNoKeyOfTheFixedSample: candidates alone tell nothing of small keys, and
// where there is no small key, they tell all.
func TestNoKeyOfTheFixedSample(t *testing.T) {
	estimate := func(sizes ...int64) Estimate {
		b := NewBuilder(testPolicy(t), bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now)
		for i, bytes := range sizes {
			k := sizedKey(fmt.Sprint("k:", i), bytes)
			if bytes > 10_240 {
				k.Known |= objectFacts
				k.Frequency = 200
			}
			b.Add(k, everyKey, now)
		}
		db := b.Finish(Outcome{Completed: now, Available: everything()}).DBs[0]
		if (db.Idle != nil) != db.Namespaces[0].Violations[ruleIndex(t, "idle_permanent")].Known() {
			t.Error("idle times are known, or the rule is, not both")
		}
		return db.Namespaces[0].Violations[ruleIndex(t, "hot_key")]
	}
	if e := estimate(11_000, 12_000); e != (Estimate{Value: 2}) {
		t.Errorf("candidates only: %+v", e)
	}
	if e := estimate(11_000, 100); e.Known() {
		t.Errorf("a small key that nobody asked: %+v", e)
	}
}

// TestHarmless: what does no harm on the server is an evaluated 0.
func TestHarmless(t *testing.T) {
	for _, tc := range []struct {
		primary   *policy.ServerFacts
		evaluated bool
		keys      float64
	}{
		{nil, false, 1},
		{&policy.ServerFacts{}, false, 1},
		{&policy.ServerFacts{Config: &policy.ServerConfig{}}, false, 1},
		{lazily(false), true, 1},
		{lazily(true), true, 0},
	} {
		b := NewBuilder(testPolicy(t), bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now)
		k := sizedKey("h:1", 100_000)
		k.Type, k.Length = keyspace.Hash, 1001
		k.Known |= keyspace.FactLength
		b.Add(k, everyKey, now)
		s := b.Finish(Outcome{Completed: now, Available: everything(), Primary: tc.primary})
		i := ruleIndex(t, "ttl_big_key")
		if got := s.DBs[0].Namespaces[0].Violations[i].Value; s.Evaluated[i] != tc.evaluated || got != tc.keys || (len(s.Examples[i]) > 0) != (tc.keys > 0) {
			t.Errorf("%+v: evaluated %v, %v keys, %d examples", tc.primary, s.Evaluated[i], got, len(s.Examples[i]))
		}
	}
}

// lazily are the facts of a primary of which only lazyfree-lazy-expire is known.
func lazily(expire bool) *policy.ServerFacts {
	return &policy.ServerFacts{Config: &policy.ServerConfig{LazyFree: map[string]bool{policy.ConfigLazyExpire: expire}}}
}

// TestEvaluatedHasAFigure: a rule that no key of the sample was judged by was not
// evaluated, whatever might have been asked.
func TestEvaluatedHasAFigure(t *testing.T) {
	for _, tc := range []struct {
		about         string
		draws         map[int]Draw // of one small key in each of these databases
		idle, ttl, on bool
	}{
		{"no key", nil, true, true, true},
		{"in no sample", map[int]Draw{0: Measured, 1: Measured}, false, false, true},
		{"in the detailed sample alone", map[int]Draw{0: everyKey}, false, true, true},
		{"in the fixed sample", map[int]Draw{0: everyKey | Fixed}, true, true, true},
		{"in that of one database", map[int]Draw{0: Measured, 1: everyKey | Fixed}, true, true, true},
	} {
		b := NewBuilder(testPolicy(t), bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now)
		for db, draw := range tc.draws {
			k := sizedKey("k:1", 100)
			k.DB = db
			b.Add(k, draw, now)
		}
		s := b.Finish(Outcome{Completed: now, Available: everything()})
		for id, want := range map[string]bool{"idle_permanent": tc.idle, "ttl_missing": tc.ttl, "ttl_clustered": tc.ttl, "name_format": tc.on, "big_string": tc.on} {
			if got := s.Evaluated[ruleIndex(t, id)]; got != want {
				t.Errorf("%s: %s evaluated = %v", tc.about, id, got)
			}
		}
	}
}
