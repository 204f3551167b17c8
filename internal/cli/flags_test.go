package cli

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redis_keyhealth_exporter/internal/testredis"
)

// TestHelp: help and version go to stdout and are no error, whatever else is
// wrong with the line.
func TestHelp(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"--help", "--redis.addr"},
		{"--help", "Commands:"},
		{"--help", "requirepass"}, // what the right for --server.config-probe shows, too
		{"-h", "--redis.addr"},
		{"help", "Commands:"},
		{"serve --help", "--redis.addr"},
		{"--help --scan.count=0", "--redis.addr"},
		{"--version", program + ", version "},
		{"-V", program + ", version "},
		{"serve --version", program + ", version "},
	} {
		t.Setenv("SCAN_MAX_DUTY", "2")
		var stdout, stderr buffer
		if code := Run(t.Context(), strings.Fields(c.line), &stdout, &stderr); code != exitOK {
			t.Errorf("%s: exit code %d", c.line, code)
		}
		if !strings.Contains(stdout.String(), c.want) || stderr.String() != "" {
			t.Errorf("%s: stdout %q, stderr %q", c.line, stdout.String(), stderr.String())
		}
		if usages := strings.Count(stdout.String(), "usage: "); usages > 1 {
			t.Errorf("%s: the usage comes %d times", c.line, usages)
		}
	}
}

// TestEnvironmentNames: each flag can be set by a variable of the same name, and
// the help says so.
func TestEnvironmentNames(t *testing.T) {
	var stdout buffer
	Run(t.Context(), []string{"--help"}, &stdout, io.Discard)
	// A flag's text ends where the next one begins.
	pieces := regexp.MustCompile(`(?m)^  (?:-\w, |    )--(?:\[no-\])?([a-z.-]+)`)
	at := pieces.FindAllStringSubmatchIndex(stdout.String(), -1)
	var found []string
	for i, m := range at {
		end := len(stdout.String())
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		flag, text := stdout.String()[m[2]:m[3]], stdout.String()[m[0]:end]
		if flag == "help" || flag == "version" {
			continue
		}
		found = append(found, flag)
		variable := strings.ToUpper(regexp.MustCompile(`[.-]`).ReplaceAllString(flag, "_"))
		if !strings.Contains(text, "($"+variable+")") {
			t.Errorf("--%s: the help does not name %s:\n%s", flag, variable, text)
		}
	}
	for _, flag := range []string{"redis.addr", "scan.max-duty", "web.listen-address", "web.config.file", "web.telemetry-path", "log.level", "log.format", "top.keys"} {
		if !slices.Contains(found, flag) {
			t.Errorf("--%s is missing among %v", flag, found)
		}
	}
}

// TestEnvironment sets flags by variables; one on the command line wins.
func TestEnvironment(t *testing.T) {
	t.Setenv("REDIS_ADDR", testredis.Start(t).Addr())
	t.Setenv("REDIS_NAME", "named in the environment")
	t.Setenv("WEB_TELEMETRY_PATH", "/from/environment")
	t.Setenv("SCAN_INTERVAL", "5m")
	t.Setenv("SCAN_COUNT", "7")
	t.Setenv("TOP_KEYS", "nonsense")
	t.Setenv("LOG_FORMAT", "json")
	e := start(t, "--scan.count=500", "--top.keys=3", "--log.format=logfmt")
	e.awaitReady(t)
	metrics := e.get(t, "/from/environment")
	if metrics.status != http.StatusOK {
		t.Fatalf("the path of the metrics: %d", metrics.status)
	}
	sample(t, metrics.body, "redis_keyhealth_up", `target="named in the environment"`)
	if landing := e.get(t, "/").body; !strings.Contains(landing, `href="/from/environment"`) {
		t.Error("the landing page does not know where the metrics are")
	}
	if a := e.get(t, "/metrics"); a.status != http.StatusNotFound {
		t.Errorf("the default path is served, too: %d", a.status)
	}
	if report := e.get(t, "/report.json").body; !strings.Contains(report, `"interval_seconds": 300`) {
		t.Error("the interval of the environment is not used")
	}
}

// TestListenAddresses: the flag may be repeated, and a variable holds several.
func TestListenAddresses(t *testing.T) {
	redis := "--redis.addr=" + testredis.Start(t).Addr()
	for _, c := range []struct {
		name string
		env  string
		args []string
	}{
		{"flags", "", []string{"--web.listen-address=127.0.0.1:0", "--web.listen-address=127.0.0.1:0"}},
		{"variable", "127.0.0.1:0\n127.0.0.1:0", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("WEB_LISTEN_ADDRESS", c.env)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var stderr buffer
			code := make(chan int)
			go func() { code <- Run(ctx, append(c.args, redis), io.Discard, &stderr) }()
			eventually(t, "it listens twice", func() bool { return len(listeningOn(stderr.String())) == 2 })
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for _, address := range listeningOn(stderr.String()) {
				response, err := client.Get("http://" + address + "/-/healthy")
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
			}
			cancel()
			if got := <-code; got != exitOK {
				t.Errorf("exit code %d: %s", got, stderr.String())
			}
		})
	}
}
