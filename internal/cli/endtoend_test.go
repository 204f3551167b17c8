package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/internal/testtools"
	"redis_keyhealth_exporter/internal/web"
)

// The keys that the tests plant.
const (
	bigKey    = "shop:basket:4711"
	scriptKey = "<script>alert(1)</script>"
)

// plant fills a server: 4 keys in db 0 and 1 in db 3. One is big, one has a TTL,
// the name of one is no name.
func plant(t *testing.T, c *redis.Client) {
	t.Helper()
	_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		ctx := t.Context()
		p.Set(ctx, bigKey, strings.Repeat("x", 6<<20), 0)
		p.Set(ctx, scriptKey, "v", 0)
		p.HSet(ctx, "shop:order:1", "total", "12")
		p.Set(ctx, "shop:session:1", "v", time.Hour)
		p.Do(ctx, "select", 3)
		p.SAdd(ctx, "shop:tags:1", "a", "b")
		p.Do(ctx, "select", 0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEndToEnd(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	plant(t, client)
	bigBytes := client.MemoryUsage(t.Context(), bigKey).Val()
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	e := start(t, "--redis.addr="+server.Addr(), "--redis.name=shop", "--scan.max-duty=1", "--scan.interval=0s")

	if a := e.get(t, "/-/healthy"); a.status != http.StatusOK {
		t.Errorf("healthy: %d %s", a.status, a.body)
	}
	if a := e.get(t, "/-/ready"); a.status != http.StatusServiceUnavailable {
		t.Errorf("ready before the first cycle: %d %s", a.status, a.body)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	e.awaitReady(t)

	t.Run("metrics", func(t *testing.T) { testMetrics(t, e, server.Addr(), bigBytes) })
	t.Run("report", func(t *testing.T) { testReport(t, e) })
	t.Run("report.json", func(t *testing.T) { testReportJSON(t, e, server.Addr(), bigBytes) })
	t.Run("paths", func(t *testing.T) { testPaths(t, e) })

	if code := e.stop(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if e.stdout.String() != "" {
		t.Errorf("stdout: %s", e.stdout)
	}
	for line := range strings.Lines(e.stderr.String()) {
		for _, key := range []string{"level=", "ts=", "msg="} {
			if strings.Count(" "+line, " "+key) != 1 {
				t.Errorf("%q stands not once in: %s", key, line)
			}
		}
	}
}

func testMetrics(t *testing.T, e *exporter, addr string, bigBytes int64) {
	for _, c := range []struct{ accept, contentType, end string }{
		{"", "text/plain; version=0.0.4", "\n"},
		{"text/plain", "text/plain; version=0.0.4", "\n"},
		{"application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1.0.0", "\n# EOF\n"},
	} {
		a := e.do(t, http.MethodGet, "/metrics", func(r *http.Request) { r.Header.Set("Accept", c.accept) })
		if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), c.contentType) || !strings.HasSuffix(a.body, c.end) {
			t.Errorf("Accept %q: %d, %q, the end is %q", c.accept, a.status, a.header.Get("Content-Type"), a.body[max(0, len(a.body)-20):])
		}
	}

	metrics := e.get(t, "/metrics").body
	const db0, db3, str = `db="db0"`, `db="db3"`, `key_type="string"`
	for _, c := range []struct {
		family string
		labels []string
		want   float64
	}{
		{"redis_keyhealth_up", []string{`target="shop"`}, 1},
		{"redis_keyhealth_keys", []string{db0, str}, 3},
		{"redis_keyhealth_keys", []string{db0, `key_type="hash"`}, 1},
		{"redis_keyhealth_keys", []string{db3, `key_type="set"`}, 1},
		{"redis_keyhealth_big_keys", []string{db0, str, `severity="critical"`}, 1},
		{"redis_keyhealth_top_key_memory_bytes", []string{`key="` + bigKey + `"`}, float64(bigBytes)},
		{"redis_keyhealth_keys_without_ttl", []string{db0}, 3},
	} {
		if got := sample(t, metrics, c.family, append(c.labels, `node="`+addr+`"`)...); got != c.want {
			t.Errorf("%s%v is %v, want %v", c.family, c.labels, got, c.want)
		}
	}

	for _, family := range []string{"redis_keyhealth_exporter_build_info", "go_goroutines", "process_start_time_seconds", "promhttp_metric_handler_requests_total"} {
		if !strings.Contains(metrics, "\n"+family) {
			t.Errorf("%s is missing", family)
		}
	}

	promtool := testtools.Program(t, "promtool")
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(metrics)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

func testReport(t *testing.T, e *exporter) {
	a := e.get(t, "/report")
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %s", a.status, a.header.Get("Content-Type"))
	}
	for _, want := range []string{
		bigKey, "&lt;script&gt;alert(1)&lt;/script&gt;", "shop", "big_string", "ttl_missing", "name_format", " MiB", "db3",
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(strings.ToLower(a.body), "<script") {
		t.Error("the page has a script")
	}
}

func testReportJSON(t *testing.T, e *exporter, addr string, bigBytes int64) {
	a := e.get(t, "/report.json")
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("%d %s", a.status, a.header.Get("Content-Type"))
	}
	var report web.Report
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatal(err)
	}
	if len(report.Nodes) != 1 {
		t.Fatalf("%d nodes", len(report.Nodes))
	}
	n := report.Nodes[0]
	if n.Target != "shop" || n.Node != addr || !n.Up || n.Role != "primary" || n.Problem != "" || n.Completed == nil {
		t.Errorf("the node: %+v", n)
	}
	if n.Keys != 5 || n.WithoutTTL != 4 || n.BigKeys != 1 || n.CriticalKeys != 1 || n.Coverage != 1 {
		t.Errorf("keys %v, without TTL %v, big keys %v, critical %v, coverage %v", n.Keys, n.WithoutTTL, n.BigKeys, n.CriticalKeys, n.Coverage)
	}
	if len(n.Suspect) > 0 {
		t.Errorf("suspect: %v", n.Suspect)
	}
	rules := map[string]float64{}
	for _, rule := range n.Rules {
		rules[rule.ID] = rule.Keys
	}
	for rule, want := range map[string]float64{"big_string": 1, "ttl_missing": 4, "name_format": 1, "name_too_long": 0} {
		if got, there := rules[rule]; !there || got != want {
			t.Errorf("rule %s: %v keys (%v), want %v", rule, got, there, want)
		}
	}
	if len(n.TopBytes) != 5 || n.TopBytes[0].Key != bigKey || n.TopBytes[0].Bytes != bigBytes || n.TopBytes[0].Expires != nil {
		t.Errorf("the largest keys: %+v", n.TopBytes)
	}
	if len(n.Databases) != 2 || n.Databases[1] != (web.DatabaseReport{DB: "db3", Keys: 1, WithoutTTL: 1}) {
		t.Errorf("the databases: %+v", n.Databases)
	}
	if len(n.NewBigKeys) != 0 {
		t.Errorf("what the first cycle finds is not new: %+v", n.NewBigKeys)
	}
}

func testPaths(t *testing.T, e *exporter) {
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", 200},
		{"GET", "/metrics", 200},
		{"HEAD", "/metrics", 200},
		{"GET", "/-/healthy", 200},
		{"GET", "/-/ready", 200},
		{"GET", "/nothing", 404},
		{"GET", "/metrics/more", 404},
		{"GET", "/debug/pprof/", 404},
		{"GET", "/probe?target=127.0.0.1:1", 404},
		{"POST", "/metrics", 405},
		{"POST", "/report", 405},
		{"DELETE", "/", 405},
		{"GET", "/-/reload", 405},
		{"PUT", "/-/reload", 405},
		{"POST", "/-/reload", 200},
	} {
		if got := e.do(t, c.method, c.path, nil).status; got != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	landing := e.get(t, "/").body
	for _, link := range []string{`href="/metrics"`, `href="/report"`, `href="/report.json"`} {
		if !strings.Contains(landing, link) {
			t.Errorf("the landing page has no %s", link)
		}
	}
	if strings.Contains(landing, "debug/pprof") {
		t.Error("the landing page links what there is not")
	}
}

// TestConnections reaches Redis in each way that --redis.addr knows.
func TestConnections(t *testing.T) {
	cert, key := testredis.Certificate(t)
	plain := testredis.Start(t)
	secure := testredis.Start(t, "--port", "0", "--tls-port", "{port}",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"host and port", []string{"--redis.addr=" + plain.Addr()}},
		{"URL", []string{"--redis.addr=redis://" + plain.Addr() + "/"}},
		{"socket", []string{"--redis.addr=unix://" + filepath.Join(plain.Dir(), "redis.sock")}},
		{"TLS", []string{"--redis.addr=rediss://" + secure.Addr(), "--redis.tls-ca-file=" + cert, "--redis.tls-cert-file=" + cert, "--redis.tls-key-file=" + key}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, c.args...)
			e.awaitReady(t)
		})
	}
	t.Run("TLS of a stranger", func(t *testing.T) {
		e := start(t, "--redis.addr=rediss://"+secure.Addr())
		eventually(t, "the certificate is refused", func() bool {
			return strings.Contains(e.get(t, "/metrics").body, `reason="tls",target="`+secure.Addr()+`"} 1`)
		})
	})
}

// TestWebConfig: TLS and basic authentication of the exporter's own side.
func TestWebConfig(t *testing.T) {
	const (
		password = "hunter2 web"
		hash     = "$2b$04$abcdefghijklmnopqrstuuW4F7eJjGjcBZWTyBlAGBeaR55lFnjSq"
	)
	cert, key := testredis.Certificate(t)
	e := start(t, "--redis.addr="+testredis.Start(t).Addr(), "--web.config.file="+file(t,
		"tls_server_config: {cert_file: "+cert+", key_file: "+key+"}\nbasic_auth_users: {prometheus: "+hash+"}\n"))

	if a := e.get(t, "/metrics"); a.status != http.StatusBadRequest {
		t.Errorf("plain text: %d", a.status)
	}
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	e.url = strings.Replace(e.url, "http:", "https:", 1)
	e.client.Transport = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted}}

	for _, path := range []string{"/", "/metrics", "/report", "/report.json", "/-/healthy", "/-/ready", "/-/reload"} {
		for _, c := range []struct {
			user, password string
			fine           bool
		}{
			{"prometheus", password, true},
			{"prometheus", "hunter2", false},
			{"stranger", password, false},
			{"", "", false},
		} {
			a := e.do(t, http.MethodGet, path, func(r *http.Request) {
				if c.user != "" {
					r.SetBasicAuth(c.user, c.password)
				}
			})
			if (a.status != http.StatusUnauthorized) != c.fine {
				t.Errorf("%s as %q with %q: %d", path, c.user, c.password, a.status)
			}
		}
	}

	// What net/http says of a failed handshake goes to the log as well.
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: x509.NewCertPool()}}).DialContext(context.Background(), "tcp", strings.TrimPrefix(e.url, "https://"))
	if err == nil {
		conn.Close()
		t.Fatal("a stranger's certificate is trusted")
	}
	eventually(t, "the handshake is logged", func() bool { return strings.Contains(e.stderr.String(), "TLS handshake error") })
	for line := range strings.Lines(e.stderr.String()) {
		if !strings.HasPrefix(line, "level=") {
			t.Errorf("no line of the log's form: %s", line)
		}
	}
}
