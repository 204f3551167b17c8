package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const alertmanager = "../deploy/alertmanager.yml"

func TestAmtool(t *testing.T) {
	run(t, "amtool", "check-config", alertmanager)
	for labels, want := range map[string]string{
		"severity=critical":                     "redis-page",
		"severity=warning":                      "redis-notify",
		"severity=ticket":                       "redis-ticket",
		"severity=info":                         "nobody",
		"severity=critical owner=identity-team": "identity-team-page",
		"severity=warning owner=identity-team":  "identity-team-notify",
		"severity=ticket owner=identity-team":   "identity-team-ticket",
		"severity=info owner=identity-team":     "nobody",
		"severity=critical owner=another-team":  "redis-page",
	} {
		args := append([]string{"config", "routes", "test", "--config.file=" + alertmanager, "alertname=RedisKeyHealthNewBigKey"}, strings.Fields(labels)...)
		if got := strings.TrimSpace(run(t, "amtool", args...)); got != want {
			t.Errorf("%s goes to %q, want %q", labels, got, want)
		}
	}
}

// TestInhibition: what mutes and what is muted exists, is of one target, and is
// evaluated in this order.
func TestInhibition(t *testing.T) {
	var config struct {
		Route struct {
			Routes []struct {
				GroupBy []string `yaml:"group_by"`
			}
		}
		Rules []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
			Equal  []string
		} `yaml:"inhibit_rules"`
	}
	load(t, alertmanager, &config)
	if got := config.Route.Routes[0].GroupBy; !slices.Equal(got, []string{"alertname", "target", "namespace"}) {
		t.Errorf("grouped by %q", got)
	}
	var names []string
	for _, a := range alerts(t) {
		names = append(names, a.Alert)
	}
	matcher := regexp.MustCompile(`^alertname=~?"(.+)"$`)
	for _, r := range config.Rules {
		for _, side := range [][]string{r.Source, r.Target} {
			if len(side) != 1 || !matcher.MatchString(side[0]) {
				t.Fatalf("%q is no alert's name", side)
			}
			name := regexp.MustCompile("^(" + matcher.FindStringSubmatch(side[0])[1] + ")$")
			if !slices.ContainsFunc(names, name.MatchString) {
				t.Errorf("no alert is called %v", name)
			}
		}
		if !slices.Contains(r.Equal, "target") {
			t.Errorf("%q mutes %q of other targets", r.Source, r.Target)
		}
	}
	flood, key := slices.Index(names, prefix+"NewBigKeyFlood"), slices.Index(names, prefix+"NewBigKey")
	if flood > key {
		t.Error("the flood is evaluated after the keys that it mutes")
	}
}

// TestLinks: the sed of docs/deploy.md reaches every link of every alert, in both
// files that have them, and the dashboards are there.
func TestLinks(t *testing.T) {
	command := regexp.MustCompile(`sed -i (-e '[^']+') (-e '[^']+') \\\n +alerts/alerts.yml deploy/kubernetes/prometheusrule.yaml`).FindStringSubmatch(read(t, "../docs/deploy.md"))
	if command == nil {
		t.Fatal("docs/deploy.md gives no sed")
	}
	var scripts []string
	for _, c := range command[1:] {
		scripts = append(scripts, "-e", strings.Trim(strings.TrimPrefix(c, "-e "), "'"))
	}
	for _, name := range []string{"alerts.yml", "../deploy/kubernetes/prometheusrule.yaml"} {
		relative := regexp.MustCompile(`(?:runbook|dashboard)_url: [^h].*`)
		if n := len(relative.FindAllString(read(t, name), -1)); n <= len(alerts(t)) {
			t.Errorf("%s has %d links", name, n)
		}
		if left := relative.FindAllString(run(t, "sed", append(scripts, name)...), -1); len(left) > 0 {
			t.Errorf("%s keeps %q", name, left)
		}
	}
	for _, a := range alerts(t) {
		url, is := a.Annotations["dashboard_url"]
		if !is {
			continue
		}
		uid := regexp.MustCompile(`^/d/redis-keyhealth-([a-z-]+)\?var-target=`).FindStringSubmatch(url)
		if uid == nil {
			t.Errorf("%s leads to %s", a.Alert, url)
			continue
		}
		if _, err := os.Stat("../dashboards/" + uid[1] + ".json"); err != nil {
			t.Errorf("%s leads to %s: %v", a.Alert, url, err)
		}
	}
}
