// Package alerts holds the tests of the alerts, of the runbook they point to and
// of how Alertmanager is told of them.
package alerts

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"redis_keyhealth_exporter/collector"
	"redis_keyhealth_exporter/internal/testtools"
)

const (
	prefix  = "RedisKeyHealth"
	runbook = "../docs/runbook.md"
)

type rule struct {
	Record, Alert, Expr string
	For                 string
	KeepFiringFor       string `yaml:"keep_firing_for"`
	Labels, Annotations map[string]string

	comment string // above it
}

// alerts are the alerting rules, in their order.
func alerts(t *testing.T) []rule { return rules(t, "alerts.yml") }

func rules(t *testing.T, name string) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []yaml.Node }
	}
	load(t, name, &file)
	for _, group := range file.Groups {
		for _, node := range group.Rules {
			r := rule{comment: node.HeadComment}
			if err := node.Decode(&r); err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
	}
	return all
}

func TestPromtool(t *testing.T) {
	if testing.Short() {
		t.Skip("promtool takes its time, in a process of its own")
	}
	promtool(t, "check", "rules", "alerts.yml", "rules.yml")
	files, err := filepath.Glob("tests/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no tests are here: ", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			promtool(t, "test", "rules", file)
		})
	}
}

// TestAlerts: whoever is woken finds what it is about, and why at this point.
func TestAlerts(t *testing.T) {
	severities := []string{"critical", "warning", "ticket", "info", tier}
	headings := headings(t)
	seen := map[string]bool{}
	for _, a := range alerts(t) {
		t.Run(a.Alert, func(t *testing.T) {
			if !strings.HasPrefix(a.Alert, prefix) || seen[a.Alert] {
				t.Errorf("the name is taken, or does not begin with %s", prefix)
			}
			seen[a.Alert] = true
			if a.comment == "" {
				t.Error("no comment explains its thresholds")
			}
			if a.For == "" {
				t.Error("has no `for`")
			}
			if !slices.Contains(severities, a.Labels["severity"]) {
				t.Errorf("severity %q", a.Labels["severity"])
			}
			if s := a.Annotations["summary"]; s == "" || strings.Contains(s, "{{") {
				t.Errorf("the summary %q is empty or not static", s)
			}
			if a.Annotations["description"] == "" {
				t.Error("has no description")
			}
			if want := "docs/runbook.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want || !headings[a.Alert] {
				t.Errorf("runbook_url %q, want %q, whose heading exists: %v", a.Annotations["runbook_url"], want, headings[a.Alert])
			}
			if by := strings.Contains(a.Expr, "job="); by != (a.Alert == prefix+"ExporterAbsent") {
				t.Errorf("selects by job: %v", by)
			}
		})
	}
	for heading := range headings {
		if strings.HasPrefix(heading, prefix) && !seen[heading] {
			t.Errorf("the runbook has %s, which is no alert", heading)
		}
	}
}

// tier makes the tier of a big key the severity of the alert: these may page.
const tier = "{{ $labels.severity }}"

// TestPages: a page comes within two minutes, goes within three, and a restart of
// the exporter does not send it twice.
func TestPages(t *testing.T) {
	pages := 0
	for _, a := range alerts(t) {
		if s := a.Labels["severity"]; s != tier && s != "critical" {
			continue
		}
		pages++
		if a.KeepFiringFor == "" || duration(t, a.For) > 30*time.Second || duration(t, a.KeepFiringFor) > 2*time.Minute {
			t.Errorf("%s pages: for %s, keep_firing_for %q", a.Alert, a.For, a.KeepFiringFor)
		}
	}
	if pages != 2 {
		t.Errorf("%d alerts may page", pages)
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := model.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(d)
}

// TestCovered: each alert has a test in which it is quiet, fires, and resolves.
func TestCovered(t *testing.T) {
	files, err := filepath.Glob("tests/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	for _, name := range files {
		var file struct {
			Tests []struct {
				Alerts []struct {
					At     string `yaml:"eval_time"`
					Alert  string `yaml:"alertname"`
					Firing []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		load(t, name, &file)
		for _, test := range file.Tests {
			for _, fires := range test.Alerts {
				var before, after bool
				for _, other := range test.Alerts {
					if other.Alert == fires.Alert && len(other.Firing) == 0 {
						before = before || duration(t, other.At) < duration(t, fires.At)
						after = after || duration(t, other.At) > duration(t, fires.At)
					}
				}
				if len(fires.Firing) > 0 && before && after {
					covered[fires.Alert] = true
				}
			}
		}
	}
	for _, a := range alerts(t) {
		if !covered[a.Alert] {
			t.Errorf("no test sees %s quiet, firing and resolved", a.Alert)
		}
	}
}

// TestMetrics: each metric that is named is in the metric table, or recorded.
func TestMetrics(t *testing.T) {
	exist := families()
	exist["redis_keyhealth_exporter"] = true // the program
	queries := map[string]string{runbook: read(t, runbook)}
	for _, name := range []string{"rules.yml", "alerts.yml"} {
		for _, r := range rules(t, name) {
			exist[r.Record] = true
			queries[name] += strings.Join(append(slices.Collect(maps.Values(r.Annotations)), r.Expr), "\n")
		}
	}
	metrics := regexp.MustCompile(`[a-z_:]*redis_keyhealth_[a-z0-9_:]+`)
	for name, text := range queries {
		found := metrics.FindAllString(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", name)
		}
		for _, metric := range found {
			if !exist[metric] {
				t.Errorf("%s names %s, which is neither in the metric table nor recorded", name, metric)
			}
		}
	}
}

// families are the names of the metric table.
func families() map[string]bool {
	descs := make(chan *prometheus.Desc)
	go func() {
		collector.New(collector.Options{}).Describe(descs)
		close(descs)
	}()
	names := map[string]bool{}
	for desc := range descs {
		names[regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(desc.String())[1]] = true
	}
	return names
}

// headings are the titles in the runbook.
func headings(t *testing.T) map[string]bool {
	t.Helper()
	titles := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(read(t, runbook), -1) {
		titles[found[1]] = true
	}
	return titles
}

// TestRunbook: each alert's section has all four parts.
func TestRunbook(t *testing.T) {
	text := read(t, runbook)
	for _, section := range strings.Split(text, "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		if !strings.HasPrefix(title, prefix) {
			continue
		}
		at := -1
		for _, part := range []string{"**Means.**", "**Look.**", "**Fix.**", "**Exempt.**"} {
			i := strings.Index(body, part)
			if i <= at {
				t.Errorf("%s: no %s, or not in its place", title, part)
			}
			at = i
		}
	}
}

func promtool(t *testing.T, args ...string) { run(t, "promtool", args...) }

// run runs a tool.
func run(t *testing.T, tool string, args ...string) string {
	t.Helper()
	path := testtools.Program(t, tool)
	cmd := exec.CommandContext(t.Context(), path, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr.String())
	}
	return string(out)
}

func load(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
