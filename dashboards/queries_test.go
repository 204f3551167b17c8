package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redis_keyhealth_exporter/internal/testtools"
)

// asked is a query of a dashboard, and where it is.
type asked struct{ where, expr string }

func queries(t *testing.T) []asked {
	t.Helper()
	var all []asked
	for _, b := range boards(t) {
		for _, a := range b.Annotations.List {
			if a.BuiltIn == 0 {
				all = append(all, asked{fmt.Sprintf("%s: %s", b.file, a.Name), a.Expr})
			}
		}
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				all = append(all, asked{fmt.Sprintf("%s: %s", b.file, p.Title), q.Expr})
			}
		}
	}
	return all
}

// TestQueries holds every query to the conventions, and its metrics to the list.
func TestQueries(t *testing.T) {
	m := metricTable(t)
	for _, q := range queries(t) {
		for _, objection := range objections(m, q.expr) {
			t.Errorf("%s: %s\n%s", q.where, objection, q.expr)
		}
	}
}

var (
	selector = regexp.MustCompile(`((?:` + namespace + `|process_|scrape_)\w+)(\{([^}]*)\})?(\[[^]]*\])?`)
	matcher  = regexp.MustCompile(`(\w+)(=~|=|!=|!~)"`)
)

// objections are what is wrong with a query: unknown metrics and labels, a choice
// of the reader's that is not heeded, counters that are read as they are, and
// histograms of snapshots that are taken for counters.
func objections(m metrics, expr string) []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	found := selector.FindAllStringSubmatchIndex(expr, -1)
	if len(found) == 0 {
		say("no metric")
	}
	part := func(at []int, group int) string {
		if at[2*group] < 0 {
			return ""
		}
		return expr[at[2*group]:at[2*group+1]]
	}
	for _, at := range found {
		name, matchers, window := part(at, 1), part(at, 3), part(at, 4)
		if !strings.HasPrefix(matchers, `job=~"$job", instance=~"$instance"`) {
			say("%s does not heed job and instance", name)
		}
		before := expr[:at[0]]
		call := before[strings.LastIndexAny(strings.TrimSuffix(before, "("), "( ")+1:]
		isRate := call == "rate(" || call == "increase("
		if strings.HasSuffix(name, "_total") != isRate {
			say("%s is read by %q", name, call)
		}
		if call == "rate(" && window != "[$__rate_interval]" {
			say("the rate of %s is over %s", name, window)
		}
		family, ours := strings.CutPrefix(name, namespace)
		if !ours || family == "exporter_build_info" {
			continue
		}
		labels, known := m[family]
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if base, is := strings.CutSuffix(family, suffix); is && !known {
				labels, known = m[base]
			}
		}
		if !known {
			say("%s is no metric of docs/metrics.md", name)
			continue
		}
		for _, l := range matcher.FindAllStringSubmatch(matchers, -1) {
			if !slices.Contains(labels, l[1]) && l[1] != "job" && l[1] != "instance" {
				say("%s has no label %s", name, l[1])
			}
		}
		for _, v := range []string{"target", "node", "db", "namespace"} {
			if slices.Contains(labels, v) && !strings.Contains(matchers, fmt.Sprintf(`%s=~"$%s"`, v, v)) {
				say("%s does not heed %s", name, v)
			}
		}
	}
	return list
}

func TestObjections(t *testing.T) {
	m := metrics{"keys": {"target", "key_type"}, "ttl_seconds": {"target"}, "scan_keys_total": {"target"}}
	const chosen = `job=~"$job", instance=~"$instance", target=~"$target"`
	for _, c := range []struct {
		expr string
		want string // nothing = fine
	}{
		{`max(redis_keyhealth_keys{` + chosen + `})`, ""},
		{`max(redis_keyhealth_keys{` + chosen + `, key_type="string"})`, ""},
		{`vector(0)`, "no metric"},
		{`max(redis_keyhealth_keys)`, "heed job"},
		{`max(redis_keyhealth_keys{target=~"$target"})`, "heed job"},
		{`max(redis_keyhealth_keys{job=~"$job", instance=~"$instance"})`, "heed target"},
		{`max(redis_keyhealth_keys{` + chosen + `, severity="critical"})`, "no label severity"},
		{`max(redis_keyhealth_kays{` + chosen + `})`, "no metric of docs"},
		{`sum(rate(redis_keyhealth_scan_keys_total{` + chosen + `}[$__rate_interval]))`, ""},
		{`sum(increase(redis_keyhealth_scan_keys_total{` + chosen + `}[$__range]))`, ""},
		{`sum(rate(redis_keyhealth_scan_keys_total{` + chosen + `}[5m]))`, "over [5m]"},
		{`sum(redis_keyhealth_scan_keys_total{` + chosen + `})`, "read by"},
		{`sum(rate(redis_keyhealth_keys{` + chosen + `}[$__rate_interval]))`, "read by"},
		{`histogram_quantile(0.9, sum by (le) (redis_keyhealth_ttl_seconds_bucket{` + chosen + `}))`, ""},
		{`histogram_quantile(0.9, sum by (le) (rate(redis_keyhealth_ttl_seconds_bucket{` + chosen + `}[$__rate_interval])))`, "read by"},
	} {
		got := strings.Join(objections(m, c.expr), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.expr, got, c.want)
		}
	}
}

// resolved is a query as Grafana sends it with everything chosen.
func resolved(expr, window string) string {
	for _, v := range []string{"job", "instance", "target", "node", "db", "namespace"} {
		expr = strings.ReplaceAll(expr, `"$`+v+`"`, `".+"`)
	}
	return strings.NewReplacer("$__rate_interval", "30s", "$__range", window).Replace(expr)
}

// TestPromQL lets Prometheus's own parser read every query.
func TestPromQL(t *testing.T) {
	promtool := testtools.Program(t, "promtool")
	var rules []object
	for i, q := range queries(t) {
		rules = append(rules, object{"record": fmt.Sprintf("query:%d", i), "expr": resolved(q.expr, "6h")})
	}
	for _, b := range boards(t) {
		for _, v := range b.Templating.List {
			if of, is := strings.CutPrefix(v.Definition, "label_values("); is {
				expr := of[:strings.LastIndex(of, ",")]
				rules = append(rules, object{"record": fmt.Sprintf("variable:%d", len(rules)), "expr": resolved(expr, "6h")})
			}
		}
	}
	text, err := json.Marshal(object{"groups": []object{{"name": "dashboards", "rules": rules}}}) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}
