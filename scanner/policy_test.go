package scanner

import (
	"context"
	"testing"
	"testing/synctest"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
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

// judged is what a test looks at after each cycle.
type judged struct{ big, fresh, resolved uint64 }

func cycleOf(t *testing.T, s *Scanner) judged {
	t.Helper()
	if err := s.RunCycle(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := s.State()
	v := n.BigKeys
	return judged{
		n.Snapshot.DBs[0].Types[keyspace.String].Big[policy.Warning].Keys,
		v.New[keyspace.String][policy.Warning], v.Resolved[keyspace.String][policy.Warning],
	}
}

// TestSetPolicy: a new policy holds from the next cycle on, and what it makes big
// or small is no news; what grows afterwards is.
func TestSetPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := testOptions(t)
		node := newFake(stringKey(0, "low:1", 2000), stringKey(0, "low:2", 500), stringKey(0, "other:1", 20_000))
		s := New(node, opts)
		defer s.closeSession()
		for _, step := range []struct {
			about  string
			before func()
			want   judged
		}{
			{"the first policy", func() {}, judged{big: 1}},
			{"a lower limit", func() { s.SetPolicy(limits(t, 1000)) }, judged{big: 2}},
			{"one grew", func() { node.dbs[0][0][1] = stringKey(0, "low:2", 1500) }, judged{big: 3, fresh: 1}},
			{"a higher limit", func() { s.SetPolicy(limits(t, 5000)) }, judged{big: 1, fresh: 1}},
			{"nothing", func() {}, judged{big: 1, fresh: 1}},
			{"one shrank", func() { node.dbs[0][0][2] = stringKey(0, "other:1", 100) }, judged{fresh: 1, resolved: 1}},
		} {
			step.before()
			if got := cycleOf(t, s); got != step.want {
				t.Errorf("%s: %+v, want %+v", step.about, got, step.want)
			}
		}
		if n := s.State().Snapshot.DBs[0].Namespaces; len(n) != 2 || n[0].Name != "default" || n[1].Name != "low" {
			t.Errorf("namespaces: %+v", n)
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
			if got := cycleOf(t, s).big; got != want {
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
		s := New(node, opts)
		defer s.closeSession()
		cycleOf(t, s)
		s.SetPolicy(limits(t, 1<<20))
		node.dbs[0][0][0] = stringKey(0, "low:1", 20_100)
		if err := s.wait(t.Context(), opts.Interval/2); err != nil {
			t.Fatal(err)
		}
		if v := s.State().BigKeys; v.Resolved[keyspace.String][policy.Warning] != 0 || v.Watched != 1 {
			t.Errorf("before the next cycle: %+v", v)
		}
		if got := cycleOf(t, s); got != (judged{}) || s.State().BigKeys.Watched != 0 {
			t.Errorf("after it: %+v, %+v", got, s.State().BigKeys)
		}
	})
}
