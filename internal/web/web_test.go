package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"redis_keyhealth_exporter/internal/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handler serves the states, and the metrics of a registry that holds little.
func handler(t *testing.T, states ...snapshot.NodeState) http.Handler {
	t.Helper()
	h, err := New(options(states...))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func options(states ...snapshot.NodeState) Options {
	registry := prometheus.NewRegistry()
	return Options{
		Source:        fake(states),
		Gatherer:      registry,
		Registerer:    registry,
		TelemetryPath: "/metrics",
		Version:       "0.1.0",
		Interval:      time.Minute,
		Reload:        func() error { return nil },
		Logger:        log.NewNopLogger(),
	}
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		states []snapshot.NodeState
		want   int
	}{
		{"never scanned", []snapshot.NodeState{unscanned()}, 503},
		{"in the first cycle", []snapshot.NodeState{firstCycle()}, 503},
		{"refused", []snapshot.NodeState{refused()}, 503},
		{"scanned", []snapshot.NodeState{idle()}, 200},
		{"in a later cycle", []snapshot.NodeState{shop()}, 200},
		{"down after a cycle", []snapshot.NodeState{down()}, 200},
		{"empty", []snapshot.NodeState{empty()}, 200},
		{"one of two", []snapshot.NodeState{shop(), unscanned()}, 503},
		{"two of two", []snapshot.NodeState{shop(), down()}, 200},
	} {
		h := handler(t, c.states...)
		if got := get(h, "/-/ready"); got.Code != c.want {
			t.Errorf("%s: ready is %d, want %d", c.name, got.Code, c.want)
		}
		if got := get(h, "/-/healthy"); got.Code != 200 {
			t.Errorf("%s: healthy is %d", c.name, got.Code)
		}
	}
}

// TestHeaders: whatever is served, it cannot run, be framed, be taken for
// something else, or be kept.
func TestHeaders(t *testing.T) {
	t.Parallel()
	h := handler(t, shop())
	for _, path := range []string{"/", "/metrics", "/report", "/report.json", "/-/healthy", "/-/ready", "/nothing"} {
		header := get(h, path).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "no-referrer",
			"Cache-Control":           "no-store",
		} {
			if got := header.Get(name); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		policy := header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "script-src") {
			t.Errorf("%s: %s", path, policy)
		}
	}
}

func TestScrapesInFlight(t *testing.T) {
	t.Parallel()
	o := options(shop())
	var inside atomic.Int32
	release := make(chan struct{})
	o.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		inside.Add(1)
		<-release
		return nil, nil
	})
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var scrapes sync.WaitGroup
	codes := make([]int, maxScrapes)
	for i := range codes {
		scrapes.Go(func() { codes[i] = get(h, "/metrics").Code })
	}
	for deadline := time.Now().Add(30 * time.Second); inside.Load() < maxScrapes; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d scrapes at a time, want %d", inside.Load(), maxScrapes)
		}
	}
	oneMore := make(chan int, 1)
	scrapes.Go(func() { oneMore <- get(h, "/metrics").Code })
	select {
	case code := <-oneMore:
		if code != http.StatusServiceUnavailable {
			t.Errorf("one more: %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Error("one more waits with the others")
	}
	if code := get(h, "/-/healthy").Code; code != http.StatusOK {
		t.Errorf("other paths are kept from answering: %d", code)
	}
	close(release)
	scrapes.Wait()
	for _, code := range codes {
		if code != http.StatusOK {
			t.Errorf("a scrape within the limit: %d", code)
		}
	}
}

func TestTelemetryPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		fine bool
	}{
		{"/metrics", true},
		{"/redis/key-health_1.0~x", true},
		{"/-/metrics", true},
		{"", false},
		{"/", false},
		{"metrics", false},
		{"/metrics/", false},
		{"//metrics", false},
		{"/a//b", false},
		{"/a/../b", false},
		{"/./a", false},
		{"/..", false},
		{"/a b", false},
		{"/a?b", false},
		{"/a#b", false},
		{"/{a}", false},
		{"/{a...}", false},
		{"/%6detrics", false},
		{"/metr\u00efcs", false},
		{"/metrics\n", false},
		{`/"><script>`, false},
		{"http://host/metrics", false},
		{"/report", false},
		{"/report.json", false},
		{"/docs", false},
		{"/docs/metrics", false},
		{"/docsmetrics", true},
		{"/-/healthy", false},
		{"/-/ready", false},
	} {
		if err := ValidateTelemetryPath(c.path); (err == nil) != c.fine {
			t.Errorf("%q: %v", c.path, err)
		}
		if !c.fine {
			continue
		}
		o := options(shop())
		o.TelemetryPath = c.path
		h, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if w := get(h, c.path); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%q is served as %d %s", c.path, w.Code, w.Header().Get("Content-Type"))
		}
		if landing := get(h, "/").Body.String(); !strings.Contains(landing, `href="`+c.path+`"`) {
			t.Errorf("%q is not linked", c.path)
		}
	}
}

// TestFailedScrape: a scrape that fails is told to both sides.
func TestFailedScrape(t *testing.T) {
	t.Parallel()
	o := options(shop())
	var out strings.Builder
	o.Logger = log.NewLogfmtLogger(&out)
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.CollectorFunc(func(ch chan<- prometheus.Metric) {
		ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("a", "b", nil, nil), errBroken)
	}))
	o.Gatherer = registry
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if w := get(h, "/metrics"); w.Code != http.StatusInternalServerError {
		t.Errorf("%d", w.Code)
	}
	if got := out.String(); !strings.Contains(got, "level=error") || !strings.Contains(got, errBroken.Error()) || strings.Count(got, "\n") != 1 {
		t.Errorf("the log: %q", got)
	}
}
