package scanner

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// TestFixedSampleIsFixed: 1 key in 64, the same whatever the cycle, and its
// share of each class.
func TestFixedSampleIsFixed(t *testing.T) {
	const n = 200_000
	for _, tc := range []struct{ k, d int }{{1, 1}, {1, 16}, {16, 1}, {16, 3}, {16, 16}} {
		fixed, measured, detailed := 0, 0, 0
		s := newSample(Options{Sample: tc.k, Detail: tc.d}, bigkeys.New(), nil, 0, n)
		for i := range n {
			key := stringKey(0, fmt.Sprint("user:", i), 100)
			s.class = 0
			draw := s.draw(&key)
			s.class = tc.k - 1
			if again := s.draw(&key); again&snapshot.Fixed != draw&snapshot.Fixed {
				t.Fatalf("key %d is in the sample now and then", i)
			}
			if draw&snapshot.Fixed == 0 {
				continue
			}
			fixed++
			if draw&snapshot.Measured != 0 {
				measured++
			}
			if draw&snapshot.Detailed != 0 {
				detailed++
			}
		}
		share := 1.0 // of the fixed sample in the detailed class: all of it where d divides 64
		if fixedShare%tc.d != 0 {
			share = float64(tc.d)
		}
		for what, pair := range map[string][2]float64{
			"fixed": {float64(fixed), n / 64.0}, "measured": {float64(measured), n / 64.0 / float64(tc.k)}, "detailed": {float64(detailed), n / 64.0 / share},
		} {
			if got, want := pair[0], pair[1]; math.Abs(got-want) > 6*math.Sqrt(want) {
				t.Errorf("k = %d, d = %d: %v keys are %s, want about %.0f", tc.k, tc.d, got, what, want)
			}
		}
	}
}

func TestCloserFacts(t *testing.T) {
	plain, err := policy.New(policy.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	on := true
	json, err := policy.New(policy.Spec{Rules: []policy.RuleSpec{{ID: "json_string", Enabled: &on}}})
	if err != nil {
		t.Fatal(err)
	}
	const encoding, idle, frequency, head = keyspace.FactEncoding, keyspace.FactIdle, keyspace.FactFrequency, keyspace.FactHead
	for _, tc := range []struct {
		role, eviction string
		rules          *policy.Policy
		want           keyspace.Facts
	}{
		{"primary", "noeviction", plain, encoding | idle},
		{"primary", "volatile-lru", plain, encoding | idle},
		{"primary", "allkeys-random", json, encoding | idle | head},
		{"primary", "allkeys-lfu", plain, encoding | frequency},
		{"primary", "volatile-lfu", json, encoding | frequency | head},
		{"primary", "allkeys-lrm", plain, encoding},
		{"primary", "", plain, encoding},
		{"replica", "noeviction", plain, encoding},
		{"replica", "allkeys-lfu", json, encoding | head},
		{"", "noeviction", plain, encoding}, // INFO is denied
	} {
		info := &Info{}
		info.Role, info.EvictionPolicy = tc.role, tc.eviction
		if got := closerFacts(info, tc.rules); got != tc.want {
			t.Errorf("%q under %q: %b, want %b", tc.role, tc.eviction, got, tc.want)
		}
	}
}

func TestAvailable(t *testing.T) {
	const closer = keyspace.FactEncoding | keyspace.FactIdle | keyspace.FactFrequency | keyspace.FactHead
	for cmd, fact := range map[keyspace.Command]keyspace.Facts{
		keyspace.CmdObjectEncoding: keyspace.FactEncoding, keyspace.CmdObjectIdletime: keyspace.FactIdle,
		keyspace.CmdObjectFreq: keyspace.FactFrequency, keyspace.CmdGetRange: keyspace.FactHead,
	} {
		var capabilities [keyspace.NumCommands]snapshot.Capability
		if got := available(capabilities, closer)[keyspace.String]; got&closer != closer {
			t.Errorf("with all rights: %b", got)
		}
		if got := available(capabilities, 0)[keyspace.String]; got&closer != 0 {
			t.Errorf("nothing was asked: %b", got)
		}
		capabilities[cmd] = snapshot.Denied
		if got := available(capabilities, closer)[keyspace.String]; got&closer != closer&^fact {
			t.Errorf("without %s: %b", cmd, got)
		}
	}
	if got := available([keyspace.NumCommands]snapshot.Capability{}, closer)[keyspace.Hash]; got&keyspace.FactHead != 0 {
		t.Error("a hash has no first byte")
	}
}

// TestCloserCost: keys that are neither candidates nor in the fixed sample cost
// no more than before, and nothing is asked that the server cannot tell.
func TestCloserCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.Detail = 16
		node := newFake(small(6400)...)
		node.dbs[0] = append(node.dbs[0], []keyspace.Key{stringKey(0, "big:1", 20_000)})
		node.info.EvictionPolicy = "allkeys-lfu"
		s := New(node, opts)
		defer s.closeSession()
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		sent := s.State().Status.Commands
		for cmd, want := range map[keyspace.Command]float64{
			keyspace.CmdMemoryUsage: 6401, keyspace.CmdType: 500, keyspace.CmdObjectEncoding: 101, keyspace.CmdObjectFreq: 101,
			keyspace.CmdObjectIdletime: 0, keyspace.CmdGetRange: 0, keyspace.CmdStrlen: 1,
		} {
			if got := float64(sent[cmd]); math.Abs(got-want) > 5*math.Sqrt(want) || want == 6401 && got != want {
				t.Errorf("%v %s, want about %v", got, cmd, want)
			}
		}
		st := s.State()
		for i, r := range opts.Policy.Rules() {
			if r.AboutServer() {
				continue
			}
			if unknown := r.ID == "idle_permanent" || r.ID == "json_string" || r.ID == "ttl_big_key" || r.ID == "name_unknown_prefix"; st.Status.Evaluated[i] == unknown {
				t.Errorf("%s evaluated = %v", r.ID, st.Status.Evaluated[i])
			}
		}
		if st.Snapshot.DBs[0].Idle != nil {
			t.Error("idle times are known")
		}
	})
}

// TestFixedSampleIsMeasured: a key of the fixed sample is measured in every
// cycle, whatever its class, as it must be known whether it is a candidate.
func TestFixedSampleIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.Sample, opts.Detail = 16, 16
		keys := small(6400)
		fixed, measured := 0.0, 0.0
		for _, k := range keys {
			draw := newSample(opts, bigkeys.New(), nil, 0, 6400)
			switch d := draw.draw(&k); {
			case d&snapshot.Fixed != 0:
				fixed++
			case d&snapshot.Measured != 0:
				measured++
			}
		}
		s := New(newFake(keys...), opts)
		defer s.closeSession()
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		sent := s.State().Status.Commands
		if got, want := float64(sent[keyspace.CmdMemoryUsage]), fixed+measured; got != want || fixed == 0 {
			t.Errorf("%v MEMORY USAGE, want %v", got, want)
		}
		if got := float64(sent[keyspace.CmdObjectEncoding]); got != fixed {
			t.Errorf("%v OBJECT ENCODING, want %v", got, fixed)
		}
	})
}

// TestListedHotKeys: with k > 1 a listed key stays in view in every cycle.
func TestListedHotKeys(t *testing.T) {
	hot := stringKey(0, "hot:1", 20_000)
	last := &snapshot.Snapshot{TopFrequency: []snapshot.Top{{ID: bigkeys.ID{Hash: hot.Hash}}}}
	s := newSample(Options{Sample: 16, Detail: 1}, bigkeys.New(), last, 0, 1)
	if draw := s.draw(&hot); draw != snapshot.Certain {
		t.Errorf("draw %b", draw)
	}
}

// TestJSONStringsOfTheSample: with the rule on, the strings of the fixed sample
// are looked into when they are large enough, and no other key.
func TestJSONStringsOfTheSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		on := true
		var err error
		if opts.Policy, err = policy.New(policy.Spec{Rules: []policy.RuleSpec{{ID: "json_string", Enabled: &on}}}); err != nil {
			t.Fatal(err)
		}
		var keys []keyspace.Key
		for i := range 6400 {
			k := stringKey(0, fmt.Sprint("doc:", i), 1000+int64(i%2)*1000)
			k.Head = '{'
			keys = append(keys, k)
		}
		s := New(newFake(keys...), opts)
		defer s.closeSession()
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		sent := s.State().Status.Commands
		if n := sent[keyspace.CmdGetRange]; n < 25 || n > 80 || sent[keyspace.CmdStrlen] != n {
			t.Errorf("%d GETRANGE, %d STRLEN, want about 50", n, sent[keyspace.CmdStrlen])
		}
		for i, r := range opts.Policy.Rules() {
			if r.ID != "json_string" {
				continue
			}
			v := s.State().Snapshot.DBs[0].Namespaces[0].Violations[i]
			if math.Abs(v.Value-3200) > 4*v.Stderr || v.Stderr == 0 || v.Stderr > 600 {
				t.Errorf("%+v", v)
			}
		}
	})
}

// TestTouches: an idle time is that since the last access which was not ours.
func TestTouches(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var own touches
	look := func(name string, n int, at, idle time.Duration) time.Duration {
		k := stringKey(0, name, 20_000)
		k.Known, k.TTL, k.Idle = keyspace.FactIdle|keyspace.FactTTL, keyspace.NoTTL, idle
		own.look(&k, n, now.Add(at))
		return k.Idle
	}
	const day = 24 * time.Hour
	own.begin(0, 1)
	look("a", 0, 0, 40*day)
	look("b", 0, 0, 10*day)
	own.begin(1, 1)
	if got := look("a", 1, time.Minute, 59*time.Second); got != 40*day+time.Minute {
		t.Errorf("nobody used it, yet %v", got)
	}
	if got := look("b", 1, time.Minute, 20*time.Second); got != 20*time.Second {
		t.Errorf("somebody used it 20 s ago, yet %v", got)
	}
	own.begin(2, 1)
	if got := look("a", 2, time.Hour, 59*time.Minute); got != 40*day+time.Hour {
		t.Errorf("nobody used it, yet %v", got)
	}
	if got := look("b", 2, time.Hour, 59*time.Minute); got != time.Hour-40*time.Second {
		t.Errorf("since 40 s nobody but us used it, yet %v", got)
	}
	if own.begin(4, 1); len(own.last) != 0 {
		t.Errorf("%d keys that are gone are remembered", len(own.last))
	}
	for i := range maxTouches {
		look(fmt.Sprint("k:", i), 4, 0, day)
	}
	if own.full {
		t.Error("full too early")
	}
	if look("one more", 4, 0, day); !own.full || len(own.last) != maxTouches {
		t.Errorf("full %v with %d keys", own.full, len(own.last))
	}
	if own.begin(5, 1); own.full {
		t.Error("full for ever")
	}
}

// TestOwnTouches: a key that nobody but us uses stays idle from cycle to cycle,
// and where not all of those can be remembered, none of it is told.
func TestOwnTouches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			remembered int // other keys
			known      bool
		}{{0, true}, {maxTouches - 1, true}, {maxTouches, false}} {
			opts, _ := testOptions(t)
			rule, err := policy.Find(opts.Policy.Rules(), "idle_permanent")
			if err != nil {
				t.Fatal(err)
			}
			unused := stringKey(0, "archive:1", 20_000)
			unused.TTL, unused.Idle = keyspace.NoTTL, 40*24*time.Hour
			node := newFake(unused)
			node.info.EvictionPolicy = "noeviction"
			node.capabilities[keyspace.CmdNoTouch] = snapshot.Denied
			node.onLens = func([]fault.KeyProblem) {
				time.AfterFunc(0, func() { node.change(func() { node.dbs[0][0][0].Idle = 0 }) })
			}
			s := New(node, opts)
			s.touches.last = map[bigkeys.ID]touch{}
			for i := range tc.remembered {
				s.touches.last[bigkeys.ID{Hash: uint64(i)}] = touch{at: time.Now(), cycle: 1}
			}
			for cycle := range 2 {
				if err := s.RunCycle(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				st := s.State()
				if v := st.Snapshot.DBs[0].Namespaces[0].Violations[rule]; st.Status.Evaluated[rule] != tc.known || tc.known && v.Value != 1 {
					t.Errorf("%d remembered, cycle %d: evaluated %v, %+v", tc.remembered, cycle, st.Status.Evaluated[rule], v)
				}
			}
			s.closeSession()
		}
	})
}
