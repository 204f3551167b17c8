package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The tests of this package do not run in parallel: go-redis has one logger for
// the whole process, which each run of the program sets.
func TestMain(m *testing.M) {
	// Whoever runs the tests may use the exporter, too.
	_, app := commandLine(io.Discard)
	for _, flag := range app.Model().Flags {
		os.Unsetenv(flag.Envar)
	}
	os.Unsetenv("REDIS_PASSWORD")
	goleak.VerifyTestMain(m)
}

// shutdownLimit is what the program promises.
const shutdownLimit = 2 * time.Second

// exporter is one run of the program within the test.
type exporter struct {
	url    string // http://host:port
	client *http.Client
	stdout *buffer
	stderr *buffer

	cancel context.CancelFunc
	ended  chan struct{}
	code   int // once ended is closed
}

var loopback = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// listeningOn finds the addresses that a log, of either format, names.
func listeningOn(log string) []string {
	var addresses []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"Listening on"`) {
			addresses = append(addresses, loopback.FindString(line))
		}
	}
	return addresses
}

// start runs the program until the end of the test and returns once it listens.
// It logs all that it can.
func start(t *testing.T, args ...string) *exporter {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e := &exporter{
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		stdout: &buffer{}, stderr: &buffer{},
		cancel: cancel, ended: make(chan struct{}),
	}
	args = append([]string{"--web.listen-address=127.0.0.1:0", "--log.level=debug"}, args...)
	go func() {
		defer close(e.ended)
		e.code = Run(ctx, args, e.stdout, e.stderr)
	}()
	t.Cleanup(func() {
		if code := e.stop(t); code != exitOK {
			t.Errorf("exit code %d; the log:\n%s", code, e.stderr)
		}
	})
	eventually(t, "the exporter listens", func() bool {
		if addresses := listeningOn(e.stderr.String()); addresses != nil {
			e.url = "http://" + addresses[0]
		}
		return e.url != "" || e.hasEnded()
	})
	if e.hasEnded() {
		t.Fatalf("the exporter ended: %s", e.stderr)
	}
	return e
}

func (e *exporter) hasEnded() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// stop ends the run and returns its exit code.
func (e *exporter) stop(t *testing.T) int {
	t.Helper()
	since := time.Now()
	e.cancel()
	select {
	case <-e.ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("the exporter does not end; its log:\n%s", e.stderr)
	}
	if took := time.Since(since); took > shutdownLimit {
		t.Errorf("the shutdown took %v", took)
	}
	return e.code
}

// answer is what the exporter said to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

func (e *exporter) get(t *testing.T, path string) answer {
	t.Helper()
	return e.do(t, http.MethodGet, path, nil)
}

func (e *exporter) do(t *testing.T, method, path string, prepare func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, e.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(r)
	}
	response, err := e.client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v; the log:\n%s", method, path, err, e.stderr)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

// awaitReady waits for the end of the first cycle.
func (e *exporter) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, "the exporter is ready", func() bool { return e.get(t, "/-/ready").status == http.StatusOK })
}

// sample finds the value of a series: the family's name and some of its labels.
func sample(t *testing.T, metrics, family string, labels ...string) float64 {
	t.Helper()
	var others []string
	for line := range strings.Lines(metrics) {
		series := strings.TrimSpace(line)
		space := strings.LastIndexByte(series, ' ')
		if space < 0 {
			continue
		}
		series, value := series[:space], series[space+1:]
		name, rest, _ := strings.Cut(series, "{")
		if name != family {
			continue
		}
		others = append(others, series)
		if slices.ContainsFunc(labels, func(label string) bool { return !strings.Contains(rest, label) }) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return v
	}
	t.Fatalf("no series of %s with %s among %q", family, labels, others)
	return 0
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
