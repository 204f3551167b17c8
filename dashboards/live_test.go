package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/testredis"
)

// mayBeEmpty are panels in which no data is good news, or cannot be had from the
// demonstration.
var mayBeEmpty = map[string]string{
	"big-keys.json: Hottest keys":               "needs an LFU policy",
	"big-keys.json: Rules about hot keys":       "needs an LFU policy",
	"big-keys.json: Rules about structure":      "none may be broken",
	"big-keys.json: Watched keys":               "the policy watches none",
	"big-keys.json: Watched keys over time":     "the policy watches none",
	"cluster.json: Fullest node":                "there is no maxmemory",
	"cluster.json: Memory and its limit":        "there is no maxmemory",
	"cluster.json: Memory skew":                 "one node has no peers",
	"cluster.json: Nodes":                       "neither skew nor maxmemory",
	"cluster.json: Skew of keys":                "one node has no peers",
	"cluster.json: Worst memory skew":           "one node has no peers",
	"cluster.json: Worst skew of keys":          "one node has no peers",
	"lifetimes.json: Big keys that expire":      "needs CONFIG GET",
	"scanner.json: Aborted cycles by reason":    "none is aborted",
	"scanner.json: Rules that were not judged":  "all may be judged",
	"server.json: Commands over several keys":   "few commands are called",
	"server.json: Forbidden commands":           "few commands are called",
	"server.json: Forbidden commands over time": "few commands are called",
	"server.json: Fullest node":                 "there is no maxmemory",
	"server.json: Mean time of a call":          "few commands are called",
	"server.json: O(N) commands":                "few commands are called",
	"server.json: O(N) commands by node":        "few commands are called",
	"server.json: Time in O(N) commands":        "few commands are called",
}

// TestData asks Prometheus for every panel of every dashboard while it scrapes the
// demonstration, just after a key became big.
func TestData(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the demonstration's first new key")
	}
	prometheus := startPrometheus(t, startDemo(t))
	m := metricTable(t)
	appeared := resolved(m.last("big_key_first_seen_timestamp_seconds"), "1m")
	deadline := time.Now().Add(90 * time.Second)
	for prometheus.count(t, appeared) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("no key became big")
		}
		time.Sleep(500 * time.Millisecond)
	}
	drawn := make(map[string]bool)
	for _, q := range queries(t) {
		drawn[q.where] = true
		n := prometheus.count(t, resolved(q.expr, "1m"))
		if n == 0 && mayBeEmpty[q.where] == "" && !waits(q.expr) {
			t.Errorf("%s: no data\n%s", q.where, q.expr)
		}
	}
	for panel := range mayBeEmpty {
		if !drawn[panel] {
			t.Errorf("there is no panel %q", panel)
		}
	}
}

// waits tells whether a query is about what is not there yet.
func waits(expr string) bool {
	for _, rule := range pendingRules {
		if strings.Contains(expr, fmt.Sprintf("rule=%q", rule)) {
			return true
		}
	}
	for name := range pending {
		if strings.Contains(expr, namespace+name) {
			return true
		}
	}
	return false
}

// startDemo starts a Redis full of trouble and an exporter, and says where that is.
func startDemo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "demo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../internal/demo").CombinedOutput(); err != nil {
		t.Fatalf("building the demonstration: %v\n%s", err, out)
	}
	demo := process(t, binary)
	demo.Stderr = os.Stderr
	stdout, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if found := regexp.MustCompile(`http://(\S+)/metrics`).FindStringSubmatch(lines.Text()); found != nil {
			go io.Copy(io.Discard, stdout) // until it ends
			return found[1]
		}
	}
	t.Fatalf("the demonstration ended: %v", lines.Err())
	return ""
}

// process ends with the test, and is given the time to clean up.
func process(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	t.Cleanup(func() {
		cancel()
		if cmd.Process != nil {
			cmd.Wait()
		}
	})
	return cmd
}

// server of Prometheus, by its address.
type prometheusURL string

func startPrometheus(t *testing.T, exporter string) prometheusURL {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Fatal("prometheus is not on PATH: apt-get install prometheus, brew install prometheus")
	}
	port, err := testredis.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n  - {job_name: redis_keyhealth, static_configs: [{targets: [%q]}]}\n", exporter)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := process(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := prometheusURL("http://" + addr)
	deadline := time.Now().Add(30 * time.Second)
	for {
		response, err := http.Get(string(p) + "/-/ready")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return p
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("Prometheus is not ready: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// count is how many series a query has now, those left out that are no number.
func (p prometheusURL) count(t *testing.T, expr string) int {
	t.Helper()
	response, err := http.PostForm(string(p)+"/api/v1/query", url.Values{"query": {expr}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error != "" {
		t.Errorf("%s\n%s", answer.Error, expr)
	}
	n := 0
	for _, r := range answer.Data.Result {
		if r.Value[1] != "NaN" {
			n++
		}
	}
	return n
}
