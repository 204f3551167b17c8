package scanner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

func policyOf(t *testing.T, spec policy.Spec) *policy.Policy {
	t.Helper()
	p, err := policy.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// limits are a policy with another size of big strings for one namespace.
func limits(t *testing.T, warning int64) *policy.Policy {
	return policyOf(t, policy.Spec{Namespaces: []policy.NamespaceSpec{{Name: "low", Match: []policy.Pattern{{Text: "low:*"}}, Rules: []policy.RuleSpec{
		{ID: "big_string", Options: []policy.OptionSpec{{Name: "warning", Value: policy.Value{Number: warning}}}},
	}}}})
}

// TestSetPolicy: a new policy holds from the next cycle on, and what it makes big
// is no news; what grows afterwards is.
func TestSetPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(stringKey(0, "low:1", 2000), stringKey(0, "low:2", 500), stringKey(0, "other:1", 20_000))
		sup, stop := run(opts, node)
		defer stop()
		look := func() (*snapshot.Snapshot, uint64, uint64) {
			n := sup.States()[0]
			return n.Snapshot, n.BigKeys.New[keyspace.String][policy.Warning], n.BigKeys.Resolved[keyspace.String][policy.Warning]
		}
		big := func(s *snapshot.Snapshot) uint64 {
			return s.DBs[0].Types[keyspace.String].Big[policy.Warning].Keys
		}
		time.Sleep(opts.Interval / 2)
		sup.SetPolicy(limits(t, 1000))
		if s, _, _ := look(); big(s) != 1 || len(s.DBs[0].Namespaces) != 1 {
			t.Errorf("%d big keys by the first policy, %+v", big(s), s.DBs[0].Namespaces)
		}
		time.Sleep(opts.Interval)
		if s, fresh, resolved := look(); big(s) != 2 || len(s.DBs[0].Namespaces) != 2 || fresh != 0 || resolved != 0 {
			t.Errorf("%d big keys by the second policy, %d new, %d resolved", big(s), fresh, resolved)
		}
		node.dbs[0][0][1] = stringKey(0, "low:2", 1500)
		time.Sleep(opts.Interval)
		if s, fresh, resolved := look(); big(s) != 3 || fresh != 1 || resolved != 0 {
			t.Errorf("%d big keys after one grew, %d new, %d resolved", big(s), fresh, resolved)
		}
		sup.SetPolicy(limits(t, 5000))
		time.Sleep(opts.Interval)
		if s, fresh, resolved := look(); big(s) != 1 || fresh != 1 || resolved != 0 {
			t.Errorf("%d big keys by the third policy, %d new, %d resolved", big(s), fresh, resolved)
		}
	})
}

// TestPolicyOfACycle: a cycle ends with the policy that it began with.
func TestPolicyOfACycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(stringKey(0, "low:1", 2000), stringKey(0, "low:2", 2000))
		s := New(node, opts)
		defer s.closeSession()
		node.onPage = func(context.Context, int, *Page) error {
			s.SetPolicy(limits(t, 1000))
			return nil
		}
		for _, want := range []uint64{0, 2} {
			if err := s.RunCycle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := s.State().Snapshot.DBs[0].Types[keyspace.String].Big[policy.Warning].Keys; got != want {
				t.Errorf("%d big keys, want %d", got, want)
			}
		}
	})
}

// TestWatchListKeepsThePolicy: between two cycles the watch list judges as the
// last cycle did, so that a change of policy is no event there, either.
func TestWatchListKeepsThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(stringKey(0, "low:1", 20_000))
		sup, stop := run(opts, node)
		defer stop()
		time.Sleep(opts.Interval / 4)
		sup.SetPolicy(limits(t, 1<<20))
		node.dbs[0][0][0] = stringKey(0, "low:1", 20_100)
		time.Sleep(opts.Interval / 2)
		if v := sup.States()[0].BigKeys; v.Resolved[keyspace.String][policy.Warning] != 0 || v.Watched != 1 {
			t.Errorf("before the next cycle: %+v", v)
		}
		time.Sleep(opts.Interval)
		if v := sup.States()[0].BigKeys; v.Resolved[keyspace.String][policy.Warning] != 0 || v.Watched != 0 {
			t.Errorf("after it: %+v", v)
		}
	})
}
