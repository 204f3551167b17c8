package scanner

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

func TestDetailAuto(t *testing.T) {
	for keys, want := range map[int64]int{
		0: 1, 65_536: 1, 131_071: 1, 131_072: 2, 262_143: 2, 262_144: 4, 524_288: 8, 1_048_576: 16, 1 << 40: 16,
	} {
		if got := newSample(Options{}, bigkeys.New(), nil, 0, keys).d; got != want {
			t.Errorf("%d keys: d = %d, want %d", keys, got, want)
		}
	}
	if got := newSample(Options{Detail: 3}, bigkeys.New(), nil, 0, 1<<40).d; got != 3 {
		t.Errorf("d = %d, 3 was asked for", got)
	}
}

// TestClasses: k cycles measure every key once, coarser classes are unions of
// finer ones, detailed keys are the same in every cycle and spread evenly over
// the classes.
func TestClasses(t *testing.T) {
	const n, d = 20_000, 4
	tracker := bigkeys.New()
	finest := map[int]int{}
	for _, k := range []int{16, 8, 4, 2, 1} {
		measured := make([]int, n)
		detailed := make([]int, k)
		for cycle := range k {
			s := newSample(Options{Sample: k, Detail: d}, tracker, nil, cycle, n)
			for i := range n {
				key := stringKey(0, fmt.Sprint("user:", i), 100)
				draw := s.draw(&key)
				if draw&snapshot.Measured == 0 {
					continue
				}
				measured[i]++
				if k == 16 {
					finest[i] = cycle
				} else if finest[i]%k != cycle {
					t.Fatalf("k = %d: key %d is in class %d, of 16 in %d", k, i, cycle, finest[i])
				}
				if draw&snapshot.Detailed != 0 {
					detailed[cycle]++
				}
			}
		}
		for i, times := range measured {
			if times != 1 {
				t.Fatalf("k = %d: key %d was measured %d times", k, i, times)
			}
		}
		for class, got := range detailed {
			if want := float64(n) / float64(k) / d; math.Abs(float64(got)-want) > 6*math.Sqrt(want) {
				t.Errorf("k = %d: class %d holds %d detailed keys, want about %.0f", k, class, got, want)
			}
		}
	}
}

// TestOldBigKeysOfClasses: with k = 8, each class is a baseline of its own: old
// big keys are found within 8 cycles and are no news; a new one is, once.
func TestOldBigKeysOfClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.Sample, opts.Detail = 8, 2
		node := newFake(small(5000)...)
		const old = 200
		for i := range old {
			node.dbs[0] = append(node.dbs[0], []keyspace.Key{stringKey(0, fmt.Sprint("big:", i), 20_000)})
		}
		s := New(node, opts)
		defer s.closeSession()
		events := func() (n uint64) {
			view := s.State().BigKeys
			for _, typ := range keyspace.Types() {
				for _, severity := range policy.Severities() {
					n += view.New[typ][severity] + view.Resolved[typ][severity]
				}
			}
			return n
		}
		known := 0.0
		for cycle := range 16 {
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := events(); n != 0 {
				t.Fatalf("cycle %d: %d events about old keys", cycle, n)
			}
			now := float64(s.State().Snapshot.DBs[0].Types[keyspace.String].Big[policy.Warning].Keys)
			if now < known || cycle >= 7 && now != old || cycle == 0 && now > old/2 {
				t.Errorf("cycle %d: %v big keys are known", cycle, now)
			}
			known = now
		}
		if st := s.State().Status; st.SampleRatio != 1.0/8 || st.DetailRatio != 1.0/2 {
			t.Errorf("ratios %v, %v", st.SampleRatio, st.DetailRatio)
		}
		node.dbs[0] = append(node.dbs[0], []keyspace.Key{stringKey(0, "big:new", 20_000)})
		for range 16 {
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := events(); n != 1 {
			t.Errorf("%d events about one new key", n)
		}
	})
}

// TestLeanCost: with --scan.detail, keys that cannot be big cost one MEMORY USAGE
// and no TYPE; candidates are asked for theirs.
func TestLeanCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		opts.Detail = 16
		node := newFake(small(8000)...)
		node.dbs[0] = append(node.dbs[0], []keyspace.Key{stringKey(0, "big:1", 20_000)})
		s := New(node, opts)
		defer s.closeSession()
		if err := s.RunCycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		st := s.State().Status
		if got := st.Commands[keyspace.CmdMemoryUsage]; got != 8001 {
			t.Errorf("%d MEMORY USAGE", got)
		}
		if got := st.Commands[keyspace.CmdType]; got < 350 || got > 650 {
			t.Errorf("%d TYPE, want about 500", got)
		}
		snap := s.State().Snapshot
		typ := snap.DBs[0].Types[keyspace.String]
		if typ.Big[policy.Warning].Keys != 1 || math.Abs(typ.Keys.Value-8001) > 1e-6 || typ.Keys.Stderr != 0 {
			t.Errorf("%+v", typ)
		}
	})
}
