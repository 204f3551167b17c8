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
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/internal/testtools"
)

// mayBeEmpty are panels in which no data is good news, or cannot be had from the
// demonstration.
var mayBeEmpty = map[string]string{
	"big-keys.json: Hottest keys":            "needs an LFU policy, which has no idle times",
	"big-keys.json: Rules about hot keys":    "needs an LFU policy, which has no idle times",
	"big-keys.json: Watched keys":            "the policy watches none",
	"big-keys.json: Watched keys over time":  "the policy watches none",
	"cluster.json: Memory skew":              "one node has no peers",
	"cluster.json: Nodes":                    "one node has no peers",
	"cluster.json: Skew of keys":             "one node has no peers",
	"cluster.json: Worst memory skew":        "one node has no peers",
	"cluster.json: Worst skew of keys":       "one node has no peers",
	"scanner.json: Aborted cycles by reason": "none is aborted",
}

// TestData asks Prometheus for every panel of every dashboard while it scrapes the
// demonstration, just after a key became big.
func TestData(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the demonstration's first new key")
	}
	redisAddr, exporter := startDemo(t)
	client := redis.NewClient(&redis.Options{Addr: redisAddr})
	t.Cleanup(func() { client.Close() })
	if err := client.ConfigSet(t.Context(), "maxmemory", "1gb").Err(); err != nil {
		t.Fatal(err)
	}
	prometheus := startPrometheus(t, exporter)
	m := metricTable(t)
	appeared := resolved(m.last("big_key_first_seen_timestamp_seconds"), "1m")
	deadline := time.Now().Add(90 * time.Second)
	for prometheus.count(t, appeared) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("no key became big")
		}
		misuse(t, client)
		time.Sleep(500 * time.Millisecond)
	}
	drawn := make(map[string]bool)
	for _, q := range queries(t) {
		drawn[q.where] = true
		if prometheus.count(t, resolved(q.expr, "1m")) == 0 && mayBeEmpty[q.where] == "" {
			t.Errorf("%s: no data\n%s", q.where, q.expr)
		}
	}
	for panel := range mayBeEmpty {
		if !drawn[panel] {
			t.Errorf("there is no panel %q", panel)
		}
	}
}

// misuse calls commands of each kind that the exporter counts.
func misuse(t *testing.T, client *redis.Client) {
	t.Helper()
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Keys(t.Context(), "none:*")
		p.HGetAll(t.Context(), "order:lines:all")
		p.SInter(t.Context(), "user:tags:1001", "user:tags:1002")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// startDemo starts a Redis full of trouble and an exporter, and says where they are.
func startDemo(t *testing.T) (redisAddr, exporter string) {
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
		if found := regexp.MustCompile(`redis-server on (\S+)`).FindStringSubmatch(lines.Text()); found != nil {
			redisAddr = found[1]
		}
		if found := regexp.MustCompile(`http://(\S+)/metrics`).FindStringSubmatch(lines.Text()); found != nil {
			go io.Copy(io.Discard, stdout) // until it ends
			return redisAddr, found[1]
		}
	}
	t.Fatalf("the demonstration ended: %v", lines.Err())
	return "", ""
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

// prometheusURL is a server of Prometheus.
type prometheusURL string

func startPrometheus(t *testing.T, exporter string) prometheusURL {
	t.Helper()
	prometheus := testtools.Program(t, "prometheus")
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
	cmd := process(t, prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=error")
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
