// Package monitoring holds what ships beside the program, alerts, recording
// rules and dashboards, against a real Redis, Prometheus and Alertmanager.
package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/internal/testtools"
)

// stack is a Redis, an exporter, a Prometheus with the shipped rules and an
// Alertmanager that sends to a webhook, as processes of their own.
type stack struct {
	t      *testing.T
	redis  *testredis.Server
	binary string
	args   []string // of the exporter

	exporter   *process
	prometheus string // http://host:port
	pages      *receiver
}

// process is a program that the test started.
type process struct {
	name string
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan struct{}
}

// launch starts a program until the end of the test.
func launch(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{name: filepath.Base(name), cmd: exec.Command(name, args...), log: &bytes.Buffer{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // killed in the end, whatever it says
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			log := p.log.Bytes()
			t.Logf("the end of the log of %s:\n%s", p.name, log[max(0, len(log)-3000):])
		}
	})
	return p
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// projectRoot is where go.mod is.
const projectRoot = "../.."

// newStack starts everything. The intervals are as short as a test wants them;
// the rules and the Alertmanager's routes are the shipped ones.
func newStack(t *testing.T, redisArgs ...string) *stack {
	t.Helper()
	s := &stack{t: t, redis: testredis.Start(t, redisArgs...), binary: filepath.Join(t.TempDir(), "redis_keyhealth_exporter"), pages: newReceiver(t)}
	build := exec.Command("go", "build", "-o", s.binary, ".")
	build.Dir = projectRoot
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	listen := address(t)
	s.args = []string{
		"--redis.addr=" + s.redis.Addr(), "--redis.name=shop", "--web.listen-address=" + listen,
		"--scan.interval=1s", "--scan.watch-interval=1s", "--state.file=" + filepath.Join(t.TempDir(), "state"),
	}
	s.exporter = launch(t, s.binary, s.args...)

	dir := t.TempDir()
	alertmanager := address(t)
	launch(t, testtools.Program(t, "prometheus-alertmanager", "alertmanager"),
		"--config.file="+s.alertmanagerConfig(dir), "--storage.path="+filepath.Join(dir, "alertmanager"),
		"--web.listen-address="+alertmanager, "--cluster.listen-address=")

	rules, err := filepath.Abs(projectRoot + "/alerts")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	write(t, config, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q, %q]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
scrape_configs:
  - job_name: redis_keyhealth
    static_configs: [{targets: [%q]}]
`, rules+"/rules.yml", rules+"/alerts.yml", alertmanager, listen))
	web := address(t)
	launch(t, testtools.Program(t, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "prometheus"), "--web.listen-address="+web)
	s.prometheus = "http://" + web
	s.eventually(time.Minute, "Prometheus scrapes the exporter", func() bool { return len(s.query(`redis_keyhealth_up == 1`)) == 1 })
	return s
}

// alertmanagerConfig is the shipped one, with the test's webhook for every
// receiver.
func (s *stack) alertmanagerConfig(dir string) string {
	s.t.Helper()
	shipped, err := os.ReadFile(projectRoot + "/deploy/alertmanager.yml")
	if err != nil {
		s.t.Fatal(err)
	}
	config := filepath.Join(dir, "alertmanager.yml")
	write(s.t, config, receivers.ReplaceAllString(string(shipped), s.pages.url+"/$1"))
	return config
}

var receivers = regexp.MustCompile(`http://\w+\.example/([\w-]+)`)

// restartExporter is a new release, or a reboot.
func (s *stack) restartExporter() {
	s.exporter.stop()
	s.exporter = launch(s.t, s.binary, s.args...)
}

// result is a series of an instant query.
type result struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// query runs an instant query; nil = Prometheus is not up yet, or found nothing.
func (s *stack) query(expr string) []result {
	s.t.Helper()
	answer, err := http.Get(s.prometheus + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var body struct {
		Status, Error string
		Data          struct{ Result []result }
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return nil
	}
	if answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusUnprocessableEntity {
		s.t.Fatalf("query %s: %s", expr, body.Error)
	}
	return body.Data.Result
}

func (s *stack) eventually(within time.Duration, what string, happens func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(within)
	for !happens() {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// notification is what an Alertmanager sends to a webhook.
type notification struct {
	Receiver string
	Status   string
	Alerts   []alert
}

type alert struct {
	Status              string // firing, resolved
	Labels, Annotations map[string]string
	StartsAt            time.Time
}

// receiver is whoever carries the pager.
type receiver struct {
	url string
	mu  sync.Mutex
	got []notification
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var n notification
		if err != nil || json.Unmarshal(body, &n) != nil {
			t.Errorf("a notification that is none: %s", body)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, n)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// about returns the alerts of one name and status that were sent so far, in
// order; of repeated notifications each counts.
func (r *receiver) about(name, status string) []alert {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []alert
	for _, n := range r.got {
		for _, a := range n.Alerts {
			if a.Labels["alertname"] == name && a.Status == status {
				found = append(found, a)
			}
		}
	}
	return found
}

// names are the alerts that were sent as firing, each once.
func (r *receiver) names() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]bool{}
	for _, n := range r.got {
		for _, a := range n.Alerts {
			if a.Status == "firing" {
				names[a.Labels["alertname"]] = true
			}
		}
	}
	return names
}

func address(t *testing.T) string {
	t.Helper()
	port, err := testredis.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
