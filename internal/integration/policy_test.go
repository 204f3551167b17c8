package integration

import (
	"fmt"
	"testing"

	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

// TestNamespaceLimits: low limits for a few keys make candidates of these alone,
// in the database that they are meant for.
func TestNamespaceLimits(t *testing.T) {
	const few, many, fields = 10, 1000, 30
	server := testredis.Start(t)
	client := server.Client(t)
	pipe := client.Pipeline()
	plant := func(name string, n int) {
		for i := range n {
			for field := range fields {
				pipe.HSet(t.Context(), fmt.Sprintf("%s:%d", name, i), field, "v")
			}
		}
	}
	plant("low", few)
	plant("other", many)
	pipe.Do(t.Context(), "select", 1)
	plant("low", many)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(policy.Spec{Namespaces: []policy.NamespaceSpec{{
		Name: "low", Match: []policy.Pattern{{Text: "low:*"}}, DBs: []int{0},
		Rules: []policy.RuleSpec{{ID: "many_elements", Options: []policy.OptionSpec{
			{Name: "warning", Value: policy.Value{Number: fields - 1}}, {Name: "critical", Value: policy.Value{Number: fields + 1}},
		}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, flagsOf(server.Addr()), func(o *scanner.Options) { o.Policy = p })
	r.cycle()
	metrics := r.metrics()
	for series, want := range map[string]float64{
		"scan_probes_total{command=hlen}":                                              few,
		"rule_violations{db=db0,level=mandatory,namespace=low,rule=many_elements}":     few,
		"rule_violations{db=db0,level=mandatory,namespace=default,rule=many_elements}": 0,
		"rule_violations{db=db1,level=mandatory,namespace=default,rule=many_elements}": 0,
		"big_keys{db=db0,key_type=hash,severity=warning}":                              few,
		"big_keys{db=db0,key_type=hash,severity=critical}":                             0,
		"key_elements_count{db=db0,key_type=hash}":                                     few + many,
	} {
		if got, ok := metrics[series]; !ok || got != want {
			t.Errorf("%s is %v (%v), want %v", series, got, ok, want)
		}
	}
	if v, ok := metrics["rule_violations{db=db1,level=mandatory,namespace=low,rule=many_elements}"]; ok {
		t.Errorf("%v violations in a database that the namespace is not of", v)
	}
}
