// Package web is what the program shows over HTTP. No request starts work on
// Redis or names a server.
package web

import (
	"fmt"
	stdlog "log"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"redis_keyhealth_exporter/internal/snapshot"
)

const (
	// maxScrapes is how many scrapes may be in flight; more get a 503.
	maxScrapes = 40

	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// Source is what is scanned; a scanner.Supervisor is one.
type Source interface {
	States() []snapshot.NodeState
}

// Options are the settings of the web side.
type Options struct {
	Source        Source
	Gatherer      prometheus.Gatherer
	Registerer    prometheus.Registerer
	TelemetryPath string
	Version       string
	Interval      time.Duration // --scan.interval, for the report
	Reload        func() error  // the configuration; may be called from several goroutines
	Logger        log.Logger
}

// reserved are the paths that the metrics cannot be served at; nor below /docs.
var reserved = []string{"/report", "/report.json", "/docs", "/-/healthy", "/-/ready", "/-/reload"}

// telemetryPath is what a browser, a scrape and the landing page, which escapes
// nothing, agree on.
var telemetryPath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// ValidateTelemetryPath refuses a path that is not one, or that is taken.
func ValidateTelemetryPath(p string) error {
	switch {
	case !telemetryPath.MatchString(p) || path.Clean(p) != p:
		return fmt.Errorf("%q is no path such as /metrics", p)
	case slices.Contains(reserved, p), strings.HasPrefix(p, "/docs/"):
		return fmt.Errorf("%q is taken", p)
	}
	return nil
}

// New makes the handler of every path.
func New(o Options) (http.Handler, error) {
	landing, err := toolkit.NewLandingPage(toolkit.LandingConfig{
		Name:        "redis_keyhealth_exporter",
		Description: "The health of the keys in Redis, for Prometheus",
		Version:     o.Version,
		Profiling:   "false",
		Links: []toolkit.LandingLinks{
			{Address: "/report", Text: "Report", Description: "what was found, for people"},
			{Address: "/report.json", Text: "Report as JSON", Description: "the same for programs"},
			{Address: "/docs/", Text: "Documents", Description: "of this version: the rules, the metrics, what to do when an alert fires"},
			{Address: o.TelemetryPath, Text: "Metrics", Description: "for Prometheus"},
			{Address: "/-/healthy", Text: "Healthy", Description: "200 while the program runs"},
			{Address: "/-/ready", Text: "Ready", Description: "200 once every node was scanned"},
		},
	})
	if err != nil {
		return nil, err
	}
	reports := newReports(o)
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", landing)
	mux.Handle("GET "+o.TelemetryPath, metrics(o))
	slots := make(chan struct{}, maxScrapes)
	mux.Handle("GET /report", limited(slots, reports.html))
	mux.Handle("GET /report.json", limited(slots, reports.json))
	pages, err := renderDocs()
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /docs/{page...}", serveDocs(pages))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "healthy")
	})
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		for _, n := range o.Source.States() {
			if n.Snapshot == nil {
				http.Error(w, "not ready: the first cycle is not complete yet", http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ready")
	})
	// A page of another site must not make a browser do it.
	mux.Handle("POST /-/reload", http.NewCrossOriginProtection().Handler(limited(slots, reload(o))))
	return secured(mux), nil
}

// reload answers once the new configuration is in use, or says why it is not.
func reload(o Options) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Reload(); err != nil {
			http.Error(w, "reload failed, the old configuration stays: "+err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "reloaded")
	}
}

func metrics(o Options) http.Handler {
	return promhttp.InstrumentMetricHandler(o.Registerer, promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
		ErrorLog:            scrapeLog{o.Logger, new(atomic.Int64)},
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true,
		Registry:            o.Registerer,
	}))
}

// limited answers 503 while every slot is taken, as promhttp does for scrapes.
func limited(slots chan struct{}, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next(w, r)
		default:
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		}
	})
}

// NewServer bounds what a client may take of the server.
func NewServer(handler http.Handler, logger log.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          stdlog.New(serverLog{logger}, "", 0),
	}
}

// secured adds headers that keep a key's name from ever becoming code.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// scrapeLog logs what goes wrong with scrapes, a line a minute: a client that
// hangs up is an error, too.
type scrapeLog struct {
	logger log.Logger
	last   *atomic.Int64 // Unix seconds
}

func (l scrapeLog) Println(v ...any) {
	now, last := time.Now().Unix(), l.last.Load()
	if now-last < 60 || !l.last.CompareAndSwap(last, now) {
		return
	}
	level.Error(l.logger).Log("msg", "scrape failed", "err", strings.TrimSpace(fmt.Sprintln(v...)))
}

// serverLog takes what net/http says by itself, of handshakes that fail for
// example; it would go to the process's stderr otherwise, whatever the format.
type serverLog struct{ logger log.Logger }

func (l serverLog) Write(line []byte) (int, error) {
	return len(line), level.Warn(l.logger).Log("msg", "web server", "err", strings.TrimSpace(string(line)))
}
