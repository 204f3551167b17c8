package snapshot

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// population is a keyspace whose sizes follow Pareto's law (shape 2: a mean,
// but no variance) and whose types differ in number, size and TTL.
type population struct {
	keys  []keyspace.Key
	bytes float64
	types [keyspace.NumTypes]struct{ keys, bytes, permanent float64 }
}

func pareto(seed uint64, n int) *population {
	rng := rand.New(rand.NewPCG(seed, 7))
	p := &population{}
	for i := range n {
		typ := keyspace.String + keyspace.Type(max(rng.IntN(9)-4, 0)) // most are strings
		name := fmt.Sprintf("key:%d:%d", seed, i)
		k := keyspace.Key{
			Name: name, NameBytes: int64(len(name)), Hash: keyspace.HashName(name), Type: typ,
			Bytes: int64(min(60*math.Pow(1-rng.Float64(), -1/2.0)*float64(typ), 1e9)), TTL: time.Hour,
			Known: keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL | keyspace.FactLength,
		}
		if k.Length = k.Bytes; typ != keyspace.String {
			k.Length = k.Bytes / 20
		}
		if rng.IntN(int(typ)+1) == 0 {
			k.TTL = keyspace.NoTTL
		}
		p.keys = append(p.keys, k)
		p.bytes += float64(k.Bytes)
		of := &p.types[typ]
		of.keys++
		of.bytes += float64(k.Bytes)
		if k.TTL == keyspace.NoTTL {
			of.permanent++
		}
	}
	return p
}

// cycle is what a scan that measures one class of k and asks one of d finds, the
// big keys known already.
func (p *population) cycle(rules *policy.Policy, k, class, d, detail uint64) *DB {
	b := NewBuilder(rules, bigkeys.New().Begin(time.Time{}, int(class), int(k)), 0, nil, now)
	for i := range p.keys {
		key := p.keys[i]
		var draw Draw
		if rules.Check(&key).Big != policy.Healthy {
			draw = Certain
		} else {
			if key.Hash%k == class {
				draw |= Measured
			}
			if key.Hash>>32%d == detail {
				draw |= Detailed
			}
			// As the scanner does: what may be a candidate is asked for its type,
			// what is one for its length.
			typ, namespace := key.Type, rules.NamespaceOf(&key)
			asked := draw&Measured != 0 && key.Bytes >= rules.Floor(namespace, keyspace.Unknown)
			key.Known, key.Type = 0, keyspace.Unknown
			if draw&Measured != 0 {
				key.Known |= keyspace.FactBytes
			}
			if draw&Detailed != 0 || asked {
				key.Known |= keyspace.FactType | keyspace.FactTTL
				key.Type = typ
			}
			if asked && key.Bytes >= rules.Floor(namespace, typ) {
				key.Known |= keyspace.FactLength
			}
		}
		b.Add(&key, draw, now)
	}
	return &b.Finish(Outcome{Completed: now, Available: everything()}).DBs[0]
}

// lowLimits is a policy by which some of the keys are candidates much earlier.
func lowLimits(t *testing.T) *policy.Policy {
	limits := func(warning, critical int64) []policy.OptionSpec {
		return []policy.OptionSpec{{Name: "warning", Value: policy.Value{Number: warning}}, {Name: "critical", Value: policy.Value{Number: critical}}}
	}
	p, err := policy.New(policy.Spec{Namespaces: []policy.NamespaceSpec{{
		Name: "low", Match: []policy.Pattern{{Text: "key:*[0-3]"}},
		Rules: []policy.RuleSpec{{ID: "many_elements", Options: limits(100, 500)}, {ID: "big_string", Options: limits(500, 1000)}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCoverage: over 200 keyspaces, and four classes of each, the 95 % interval of each estimate covers the
// truth in 92 to 98 % of the cycles, in all and by type.
func TestCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic, and much of it")
	}
	const seeds, cycles, n = 200, 4, 30_000
	defaults, ttlMissing := testPolicy(t), ruleIndex(t, "ttl_missing")
	type figure struct{ covered, estimated int }
	figures := map[string]*figure{}
	check := func(name string, e Estimate, truth float64) {
		f := figures[name]
		if f == nil {
			f = &figure{}
			figures[name] = f
		}
		if e.Stderr == 0 {
			if e.Value != truth {
				t.Errorf("%s: %v without an error, the truth is %v", name, e.Value, truth)
			}
			return
		}
		f.estimated++
		if math.Abs(e.Value-truth) <= 1.96*e.Stderr {
			f.covered++
		}
	}
	for seed := range uint64(seeds) {
		p := pareto(seed, n)
		for _, s := range []struct {
			k, d  uint64
			rules *policy.Policy
		}{{1, 8, defaults}, {8, 1, defaults}, {4, 4, lowLimits(t)}} {
			name := func(of string) string { return fmt.Sprintf("k=%d d=%d %s", s.k, s.d, of) }
			for c := range uint64(cycles) {
				db := p.cycle(s.rules, s.k, c%s.k, s.d, c%s.d)
				check(name("bytes"), db.Bytes, p.bytes)
				sum, permanent := 0.0, 0.0
				for _, typ := range keyspace.Types() {
					of := p.types[typ]
					if permanent += of.permanent; of.keys == 0 {
						continue
					}
					sum += db.Types[typ].Bytes.Value
					check(name(typ.String()+" bytes"), *db.Types[typ].Bytes, of.bytes)
					check(name(typ.String()+" keys"), db.Types[typ].Keys, of.keys)
				}
				if len(db.Namespaces) == 1 {
					check(name("ttl_missing"), db.Namespaces[0].Violations[ttlMissing], permanent)
				}
				if math.Abs(sum-db.Bytes.Value) > 1e-9*sum || math.Abs(db.Keys()-n) > 1e-6 {
					t.Errorf("seed %d: the types sum up to %v bytes of %v and %v keys of %v", seed, sum, db.Bytes.Value, db.Keys(), n)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		f := figures[name]
		if f.estimated == 0 {
			continue
		}
		share := float64(f.covered) / float64(f.estimated)
		t.Logf("%-24s %.1f %% of %d", name, 100*share, f.estimated)
		if share < 0.92 || share > 0.98 {
			t.Errorf("%s: the 95 %% interval covers the truth in %.1f %% of %d cycles", name, 100*share, f.estimated)
		}
	}
}

// TestNoKeyOfTheSample: a database may be too small to have a key in the sample.
// What needs no sample is known all the same, what needs one is not called 0.
func TestNoKeyOfTheSample(t *testing.T) {
	b := NewBuilder(testPolicy(t), bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now)
	k := sizedKey("nocolon", 0)
	k.Known = 0
	b.Add(k, 0, now)
	db := b.Finish(Outcome{Completed: now, Available: everything()}).DBs[0]
	if v := db.Namespaces[0].Violations[ruleIndex(t, "name_format")]; !v.Known() || v.Value != 1 || v.Stderr != 0 {
		t.Errorf("name_format: %+v", v)
	}
	if v := db.Namespaces[0].Violations[ruleIndex(t, "ttl_missing")]; v.Known() {
		t.Errorf("ttl_missing: %+v", v)
	}
	if db.TTL != nil || db.Types[keyspace.String].Keys.Known() || db.Types[keyspace.String].Bytes != nil || db.Keys() != 1 {
		t.Errorf("%v keys, TTL %v, strings %+v", db.Keys(), db.TTL, db.Types[keyspace.String])
	}
}

func ruleIndex(t *testing.T, id string) int {
	for i, r := range testPolicy(t).Rules() {
		if r.ID == id {
			return i
		}
	}
	t.Fatalf("no rule %s", id)
	return 0
}
