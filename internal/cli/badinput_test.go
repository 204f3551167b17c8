package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/testredis"
)

// canary is a password that must show up nowhere.
const canary = "hunter2canary"

// TestBadValue gives each flag values that it cannot take, on the command line
// and in the environment.
func TestBadValue(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "none")
	garbage := file(t, canary)
	huge := file(t, strings.Repeat("x", 1<<20))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cert, _ := testredis.Certificate(t)

	for _, c := range []struct {
		flag, value string
		why         string   // part of what is said
		with        []string // further flags
	}{
		{"redis.addr", "redis://user:" + canary + "@127.0.0.1:6379", "--redis.password-file", nil},
		{"redis.addr", "redis://:" + canary + "@127.0.0.1", "--redis.password-file", nil},
		{"redis.addr", canary + "@127.0.0.1:6379", "--redis.password-file", nil},
		{"redis.addr", "unix://user:" + canary + "@/run/redis.sock", "--redis.password-file", nil},
		{"redis.addr", "redis://user:" + canary + "%40127.0.0.1:6379", "no host:port", nil},
		{"redis.addr", "redis://127.0.0.1:6379?password=" + canary, "no path or query", nil},
		{"redis.addr", "redis://127.0.0.1:6379/0", "no path or query", nil},
		{"redis.addr", "unix:///run/redis.sock?password=" + canary, "no path or query", nil},
		{"redis.addr", "redis://default:" + canary, "the port is no number", nil},
		{"redis.addr", "http://" + canary, "must be redis://", nil},
		{"redis.addr", "127.0.0.1:0", "the port is no number", nil},
		{"redis.addr", "127.0.0.1:65536", "the port is no number", nil},
		{"redis.addr", "[::1", "no host:port", nil},
		{"redis.addr", "my redis", "no host:port", nil},
		{"redis.addr", "a,,b", "an address is empty", nil},
		{"redis.addr", "a,rediss://b", "holds for all", nil},
		{"redis.mode", "Cluster", "none of auto", nil},
		{"redis.mode", "sentinel", "--redis.sentinel-master", nil},
		{"redis.addr", "unix://redis.sock", "must be absolute", nil},
		{"redis.name", "a\xffb", "printable", nil},
		{"redis.name", strings.Repeat("a", 201), "200 bytes", nil},
		{"redis.user", "monitor", "needs a password", nil},
		{"redis.password-file", missing, "no such file", nil},
		{"redis.password-file", dir, "no regular file", nil},
		{"redis.password-file", huge, "no regular file", nil},
		{"redis.password-file", os.DevNull, "no regular file", nil},
		{"redis.password-file", file(t, ""), "holds no password", nil},
		{"redis.tls-ca-file", cert, "rediss://", nil},
		{"redis.tls-cert-file", cert, "rediss://", nil},
		{"redis.tls-key-file", cert, "rediss://", nil},
		{"redis.tls-server-name", "redis", "rediss://", nil},
		{"redis.tls-ca-file", missing, "no such file", []string{"--redis.addr=rediss://127.0.0.1"}},
		{"redis.tls-ca-file", garbage, "no PEM certificate", []string{"--redis.addr=rediss://127.0.0.1"}},
		{"redis.tls-cert-file", cert, "give both or none", []string{"--redis.addr=rediss://127.0.0.1"}},

		{"scan.interval", "soon", "no duration", nil},
		{"scan.interval", "60", "no duration", nil},
		{"scan.interval", "-1s", "not within", nil},
		{"scan.interval", "8d", "not within", nil},
		{"scan.count", "0", "not within", nil},
		{"scan.count", "501", "not within", nil},
		{"scan.count", "many", "no whole number", nil},
		{"scan.count", "1.9", "no whole number", nil},
		{"scan.count", "NaN", "no whole number", nil},
		{"scan.max-duty", "0", "not above 0", nil},
		{"scan.max-duty", "1.1", "not above 0", nil},
		{"scan.max-duty", "2", "not above 0", nil},
		{"scan.max-duty", "NaN", "not above 0", nil},
		{"scan.max-duty", "half", "no number", nil},
		{"scan.max-keys-per-second", "-1", "not within", nil},
		{"scan.max-keys-per-second", "NaN", "not within", nil},
		{"scan.max-keys-per-second", "Inf", "not within", nil},
		{"state.file", "/dev/null", "no regular file", nil},
		{"scan.sample", "3", "none of 1, 2, 4, 8 and 16", nil},
		{"scan.detail", "17", "neither auto nor", nil},
		{"scan.detail", "some", "neither auto nor", nil},
		{"top.keys", "-1", "not within", nil},
		{"top.keys", "101", "not within", nil},
		{"top.keys", "all", "no whole number", nil},
		{"policy.file", missing, "no such file", nil},
		{"policy.file", dir, "no regular file", nil},
		{"policy.file", "/dev/zero", "no regular file", nil},
		{"policy.file", file(t, ""), ":1: is empty", nil},
		{"policy.file", file(t, "rules:\n  big: {}\n"), ":2: there is no rule", nil},
		{"metrics.max-series", "999", "below 1000", nil},

		{"web.telemetry-path", "metrics", "no path", nil},
		{"web.telemetry-path", "/a//b", "no path", nil},
		{"web.telemetry-path", "/report", "taken", nil},
		{"web.listen-address", "localhost", "missing port", nil},
		{"web.listen-address", "127.0.0.1:99999", "invalid port", nil},
		{"web.listen-address", "http://127.0.0.1:0", "too many colons", nil},
		{"web.listen-address", taken.Addr().String(), "address already in use", nil},
		{"web.config.file", missing, "no such file", nil},
		{"web.config.file", file(t, "garbage"), "cannot unmarshal", nil},
		{"web.config.file", file(t, "tls_server_config: {cert_file: none, key_file: none}"), "none", nil},
		{"web.config.file", file(t, "basic_auth_users: {admin: plain}"), "bcrypt", nil},
		{"log.level", "loud", "debug,info,warn,error", nil},
		{"log.format", "xml", "logfmt,json", nil},
	} {
		name := c.flag + "=" + strings.ToValidUTF8(c.value[:min(len(c.value), 50)], "?")
		t.Run(name, func(t *testing.T) {
			mustRefuse(t, append(c.with, "--"+c.flag+"="+c.value), program+": --"+c.flag, c.why)
		})
		t.Run(name+" from the environment", func(t *testing.T) {
			t.Setenv(envar(c.flag), c.value)
			mustRefuse(t, c.with, program+": "+envar(c.flag)+" (--"+c.flag+")", c.why)
		})
	}
	t.Run("systemd", func(t *testing.T) {
		mustRefuse(t, []string{"--web.systemd-socket"}, program+": --web.systemd-socket: ", "systemd")
		t.Setenv("WEB_SYSTEMD_SOCKET", "maybe")
		mustRefuse(t, nil, program+": WEB_SYSTEMD_SOCKET (--web.systemd-socket): ", "true or false")
	})
}

// TestBadLine is about lines that are wrong in themselves.
func TestBadLine(t *testing.T) {
	address := "redis://user:" + canary + "@127.0.0.1:6379"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--scan.counts=1"}, "unknown flag --scan.counts"},
		{[]string{"--no-scan.count"}, "unknown flag --no-scan.count"},
		{[]string{"--redis.password=" + canary}, "unknown flag --redis.password;"},
		{[]string{"--redis.addr:" + address}, "unknown flag --redis.addr;"},
		{[]string{"-redis.addr=" + address}, "two dashes"},
		{[]string{"--scan.count"}, "expected argument for flag '--scan.count'"},
		{[]string{"--log.level=info", "--scan.count"}, "expected argument for flag '--scan.count'"},
		{[]string{"--scan.count", "--log.level=info"}, "expected argument for flag '--scan.count'"},
		{[]string{"--top.keys=1", "--top.keys=2"}, "flag 'top.keys' cannot be repeated"},
		{[]string{address}, "unexpected argument"},
		{[]string{"serve", address}, "unexpected argument"},
		{[]string{"--redis.addr=127.0.0.1", address}, "unexpected argument"},
		{[]string{"@" + file(t, "--scan.count=0")}, "unexpected argument"},
		{[]string{"scan"}, "unexpected argument"},
		{[]string{"check", address}, "unexpected argument"},
		{[]string{"--key=a"}, "unknown flag --key"},
		{[]string{"check", "--db=3"}, "--db: goes with --key"},
		{[]string{"check", "--db=-1", "--key=a"}, "--db: -1 is no number of a database"},
		{[]string{"check", "--db=x", "--key=a"}, `--db: "x" is no whole number`},
		{[]string{"check", "--key"}, "expected argument for flag '--key'"},
		{[]string{"check", "--scan.count=0"}, "--scan.count: 0"},
		{[]string{"check", "--policy.file=" + file(t, "rule: {}")}, ":1: unknown key \"rule\""},
		{[]string{"help", "scan"}, "unexpected argument"},
		{[]string{""}, "unexpected argument"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			mustRefuse(t, c.args, program+": ", c.want)
		})
	}
}

// TestFlagBeforeEnvironment: what the command line says is not blamed on the
// environment, nor broken by it.
func TestFlagBeforeEnvironment(t *testing.T) {
	t.Setenv("SCAN_COUNT", "700")
	t.Setenv("SCAN_MAX_DUTY", "")
	mustRefuse(t, []string{"--scan.count=600"}, program+": --scan.count: 600", "")
	mustRefuse(t, []string{"--scan.count=6", "--scan.max-duty=2"}, program+": --scan.max-duty: 2", "")
}

// mustRefuse runs the program, which must end at once with one line that begins
// and goes on as said, and must not have turned to Redis.
func mustRefuse(t *testing.T, args []string, begin, why string) {
	t.Helper()
	redis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var contacts atomic.Int32
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			conn, err := redis.Accept()
			if err != nil {
				return
			}
			contacts.Add(1)
			conn.Close()
		}
	}()
	if os.Getenv("REDIS_ADDR") == "" && !strings.Contains(strings.Join(args, " "), "redis.addr") {
		t.Setenv("REDIS_ADDR", redis.Addr().String())
	}
	if os.Getenv("WEB_LISTEN_ADDRESS") == "" && !strings.Contains(strings.Join(args, " "), "web.listen-address") {
		t.Setenv("WEB_LISTEN_ADDRESS", "127.0.0.1:0")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var stdout, stderr buffer
	code := Run(ctx, args, &stdout, &stderr)
	redis.Close()
	<-accepting

	out := stderr.String()
	if code != exitConfig {
		t.Errorf("exit code %d", code)
	}
	if !strings.HasPrefix(out, begin) || !strings.Contains(out, why) || strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, "\n") {
		t.Errorf("stderr is no line %q… with %q:\n%s", begin, why, out)
	}
	if strings.Contains(out+stdout.String(), canary) {
		t.Errorf("the password shows: %s%s", out, stdout.String())
	}
	if stdout.String() != "" {
		t.Errorf("stdout: %s", stdout.String())
	}
	if contacts.Load() != 0 {
		t.Error("the scan had begun")
	}
}

// file makes a file of a name of its own.
func file(t *testing.T, content string) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// replace gives a file another content, by renaming, as mounted secrets get it.
func replace(t *testing.T, name, content string) {
	t.Helper()
	if err := os.Rename(file(t, content), name); err != nil {
		t.Fatal(err)
	}
}
