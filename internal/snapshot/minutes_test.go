package snapshot

import (
	"fmt"
	"math"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// expiring adds n keys that expire after ttl.
func expiring(b *Builder, db, n int, ttl time.Duration, draw Draw) {
	for i := range n {
		k := sizedKey(fmt.Sprint("k:", ttl, i), 100)
		k.DB, k.TTL = db, ttl
		if draw&(Certain|Detailed) == 0 {
			k.Known = 0
		}
		b.Add(k, draw, now)
	}
}

// TestClustered: clock minutes, both limits, the end of the 24 hours, and one
// database after the other.
func TestClustered(t *testing.T) {
	b := NewBuilder(testPolicy(t), bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now.Add(-time.Second)) // in the minute before
	at := func(minute int, second time.Duration) time.Duration {
		return time.Duration(minute)*time.Minute + second*time.Second
	}
	expiring(b, 0, 700, at(10, 0), everyKey)
	expiring(b, 0, 301, at(10, 59), everyKey)
	expiring(b, 0, 1000, at(11, 0), everyKey)
	expiring(b, 0, 500, at(48*60, 0), everyKey)
	expiring(b, 0, 500, keyspace.NoTTL, everyKey)

	expiring(b, 1, 1000, at(5, 0), everyKey)
	expiring(b, 1, 1001, at(23*60+58, 59), everyKey) // the last minute
	expiring(b, 1, 8009, at(24*60, 1), everyKey)     // behind it: 1001 are 10 % of 10,010

	expiring(b, 2, 5, keyspace.NoTTL, everyKey)
	expiring(b, 3, 2000, 0, everyKey)
	s := b.Finish(Outcome{Completed: now, Available: everything()})
	rule := ruleIndex(t, "ttl_clustered")
	for i, want := range []struct {
		peak      float64
		at        time.Duration
		clustered float64
	}{{1001, at(10, 0), 1001}, {1001, at(23*60+58, 0), 0}, {0, 0, 0}, {2000, 0, 2000}} {
		db := s.DBs[i]
		if db.Expiring.Keys != want.peak || want.peak > 0 && !db.Expiring.At.Equal(now.Add(want.at)) || want.peak == 0 && !db.Expiring.At.IsZero() {
			t.Errorf("db%d: peak %+v, want %v at %v", i, *db.Expiring, want.peak, now.Add(want.at))
		}
		if v := db.Namespaces[0].Violations[rule]; v != (Estimate{Value: want.clustered}) {
			t.Errorf("db%d: %+v in clusters, want %v", i, v, want.clustered)
		}
	}
}

// TestClusteredEstimate: sampled keys stand for others, certain ones do not.
func TestClusteredEstimate(t *testing.T) {
	b := NewBuilder(testPolicy(t), bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now)
	expiring(b, 0, 100, time.Hour, Certain)
	expiring(b, 0, 100, time.Hour, Measured|Detailed)
	expiring(b, 0, 300, 2*time.Hour, Measured|Detailed)
	expiring(b, 0, 3600, time.Hour, Measured)
	db := b.Finish(Outcome{Completed: now, Available: everything()}).DBs[0]
	// 400 of 4000 are in the sample: each stands for 10.
	if db.Expiring.Keys != 3000 || !db.Expiring.At.Equal(now.Add(2*time.Hour)) {
		t.Errorf("peak %+v", *db.Expiring)
	}
	v := db.Namespaces[0].Violations[ruleIndex(t, "ttl_clustered")]
	if v.Value != 100+10*(100+300) || v.Stderr != 0 { // all of the sample
		t.Errorf("%+v in clusters", v)
	}
	b = NewBuilder(testPolicy(t), bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now)
	expiring(b, 0, 200, time.Hour, Measured|Detailed)
	expiring(b, 0, 200, keyspace.NoTTL, Measured|Detailed)
	expiring(b, 0, 3600, time.Hour, Measured)
	v = b.Finish(Outcome{Completed: now, Available: everything()}).DBs[0].Namespaces[0].Violations[ruleIndex(t, "ttl_clustered")]
	if want := 4000 * math.Sqrt(0.9*0.25/399); v.Value != 2000 || math.Abs(v.Stderr-want) > 1e-6 {
		t.Errorf("%+v in clusters, want an error of %v", v, want)
	}
}

// TestJudgedTogether: such a rule carries the default namespace, also where that
// holds no key, and of which no other rule says anything then.
func TestJudgedTogether(t *testing.T) {
	p, err := policy.New(policy.Spec{Namespaces: []policy.NamespaceSpec{{Name: "sessions", Match: []policy.Pattern{{Text: "k:*"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	b := NewBuilder(p, bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now)
	expiring(b, 0, 2000, time.Hour, everyKey)
	all := b.Finish(Outcome{Completed: now, Available: everything()}).DBs[0].Namespaces
	together, alone := ruleIndex(t, "ttl_clustered"), ruleIndex(t, "ttl_missing")
	if n := all[0]; len(all) != 2 || n.Name != policy.DefaultNamespace || n.Violations[together].Value != 2000 || n.Violations[alone].Known() || n.Levels[together] != policy.Mandatory {
		t.Errorf("default: %+v", n)
	}
	if n := all[1]; n.Name != "sessions" || n.Violations[together].Known() || !n.Violations[alone].Known() {
		t.Errorf("sessions: %+v", n)
	}

	off := false
	if p, err = policy.New(policy.Spec{Rules: []policy.RuleSpec{{ID: "ttl_clustered", Enabled: &off}}}); err != nil {
		t.Fatal(err)
	}
	b = NewBuilder(p, bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now)
	expiring(b, 0, 2000, time.Hour, everyKey)
	s := b.Finish(Outcome{Completed: now, Available: everything()})
	if n := s.DBs[0].Namespaces[0]; n.Violations[together].Known() || s.Evaluated[together] || s.DBs[0].Expiring.Keys != 2000 {
		t.Errorf("off: %+v, peak %+v", n.Violations[together], s.DBs[0].Expiring)
	}
}

// TestPeakOfEqualMinutes: of two the first counts, and the last one is the minute
// that 24 hours touch at their end.
func TestPeakOfEqualMinutes(t *testing.T) {
	for _, tc := range []struct {
		about string
		at    []time.Duration
		keys  float64
		want  time.Duration
	}{
		{"two equal ones", []time.Duration{2 * time.Hour, time.Hour}, 5, time.Hour},
		{"the last one", []time.Duration{24 * time.Hour}, 5, 24 * time.Hour},
		{"behind it", []time.Duration{24*time.Hour + time.Minute}, 0, 0},
	} {
		b := NewBuilder(testPolicy(t), bigkeys.New().Begin(time.Time{}, 0, 1), 5, nil, now)
		for _, at := range tc.at {
			expiring(b, 0, 5, at, everyKey)
		}
		peak := b.Finish(Outcome{Completed: now, Available: everything()}).DBs[0].Expiring
		if peak.Keys != tc.keys || peak.Keys > 0 && !peak.At.Equal(now.Add(tc.want)) {
			t.Errorf("%s: %+v", tc.about, *peak)
		}
	}
}
