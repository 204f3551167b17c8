package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/testredis"
)

// mainEnv makes the test's binary be the program, to send signals to.
const mainEnv = "DEMO_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestDemo sees to it that no rule is missing in what is shown: one that is new
// needs keys in keyspace.go that break it.
func TestDemo(t *testing.T) {
	r := startDemo(t, quickDemo())
	r.stdout.await(t, "goes on until Ctrl-C")
	text := r.stdout.String()
	for _, rule := range policy.Rules() {
		line := regexp.MustCompile(`(?m)^` + rule.ID + ` +` + rule.Level.String() + ` +[1-9][0-9,]*  db\d .+$`)
		if rule.ID == "ttl_clustered" { // judged by the minute, not by the key
			line = regexp.MustCompile(`(?m)^ttl_clustered +mandatory +[1-9][0-9,]*$`)
		}
		if rule.AboutServer() {
			line = regexp.MustCompile(`(?m)^` + rule.ID + ` +` + rule.Level.String() + ` +server  (kept|violated|not judged)$`)
		}
		// The first two are off unless a policy configures them; the others need a
		// server that counts LFU, which then knows no idle times.
		configured := !slices.Contains([]string{"name_unknown_prefix", "json_string", "hot_key", "hot_and_big"}, rule.ID)
		if shown := line.MatchString(text); shown != configured {
			t.Errorf("rule %s: that keys break it is shown: %t, want %t", rule.ID, shown, configured)
		}
	}
	for _, k := range newKeys() {
		for _, event := range []string{"big key: " + k.name + ",", "resolved: " + k.name + ","} {
			if !strings.Contains(text, event) {
				t.Errorf("not told: %q", event)
			}
		}
	}
	if err := r.stop(t); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("printed:\n%s%s", text, r.stderr)
	}
}

func TestStoppedEarly(t *testing.T) {
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			r := startDemo(t, quickDemo())
			time.Sleep(after)
			if err := r.stop(t); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStoppedWhileNewKeyLives(t *testing.T) {
	d := quickDemo()
	d.lifetime = time.Hour
	r := startDemo(t, d)
	r.stdout.await(t, "new critical big key")
	if err := r.stop(t); err != nil {
		t.Error(err)
	}
}

func TestNobodyReads(t *testing.T) {
	d := quickDemo()
	d.stdout = brokenPipe{}
	if err := startDemo(t, d).wait(t); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("it ended with %v", err)
	}
}

func TestExporterFails(t *testing.T) {
	t.Setenv("SCAN_COUNT", "0")
	r := startDemo(t, quickDemo())
	if err := r.wait(t); !errors.Is(err, errEnded) {
		t.Errorf("it ended with %v", err)
	}
	if text := r.stderr.String(); !strings.Contains(text, "--scan.count") {
		t.Errorf("the exporter's own words are missing: %q", text)
	}
}

func TestPortRace(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"nodes": [{"node": "127.0.0.1:6379"}]}`)
	}))
	defer stranger.Close()
	taken := stranger.Listener.Addr().(*net.TCPAddr).Port

	d := quickDemo()
	calls := 0
	d.pickPort = func() (int, error) {
		if calls++; calls <= 2 {
			return taken, nil
		}
		return testredis.FreePort()
	}
	r := startDemo(t, d)
	r.stdout.await(t, "/report")
	if strings.Contains(r.stdout.String(), ":"+strconv.Itoa(taken)+"/") {
		t.Error("it sends people to a stranger's port")
	}
	if err := r.stop(t); err != nil {
		t.Error(err)
	}

	d.pickPort = func() (int, error) { return taken, nil }
	if err := startDemo(t, d).wait(t); !errors.Is(err, errEnded) {
		t.Errorf("without any free port: %v", err)
	}
}

func TestRedisDies(t *testing.T) {
	d := quickDemo()
	d.every = 500 * time.Millisecond
	r := startDemo(t, d)
	r.stdout.await(t, "Ctrl-C ends all")
	client, disconnect := connect(t.Context(), r.redis(t), 0)
	defer disconnect()
	_ = client.ShutdownNoSave(t.Context()).Err() // of a server that is gone
	if err := r.wait(t); err == nil || !strings.Contains(err.Error(), "creating "+newKeys()[0].name) {
		t.Errorf("it ended with %v", err)
	}
}

func TestWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := startDemo(t, quickDemo()).wait(t); err == nil || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("the error does not tell how to install redis-server: %v", err)
	}
}

// TestSignals runs the program as a person does: twice the same signal is what
// it gets when both a terminal and make send it.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			temp := shortTempDir(t)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), mainEnv+"=1", "TMPDIR="+temp, "REDIS_PASSWORD=of-another-server", "WEB_CONFIG_FILE=missing.yml")
			cmd.Stderr = os.Stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			defer kill.Stop()

			lines := bufio.NewScanner(stdout)
			for lines.Scan() && !strings.Contains(lines.Text(), "Ctrl-C ends all") {
			}
			signalled := time.Now()
			for range 2 {
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
			}
			last := ""
			for lines.Scan() {
				last = lines.Text()
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			if took := time.Since(signalled); took > endsWithin {
				t.Errorf("it took %v to end", took)
			}
			if !strings.HasPrefix(last, "Stopped") {
				t.Errorf("it did not say that it stopped: %q", last)
			}
			mustBeEmpty(t, temp)
		})
	}
}

func TestLoad(t *testing.T) {
	server := testredis.Start(t)
	start := time.Now()
	if err := load(t.Context(), server.Addr()); err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded in %v", time.Since(start))

	client := server.Client(t)
	info := client.InfoMap(t.Context(), "memory", "keyspace")
	used, err := strconv.Atoi(info.Item("Memory", "used_memory"))
	if err != nil || used > 60e6 {
		t.Errorf("it takes %d bytes (%v)", used, err)
	}
	for _, db := range []string{"db0", "db1"} {
		if info.Item("Keyspace", db) == "" {
			t.Errorf("%s is empty", db)
		}
	}
	if n, err := client.DBSize(t.Context()).Result(); err != nil || n < 2000 || n > 10_000 {
		t.Errorf("db0 has %d keys (%v)", n, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := load(ctx, server.Addr()); err == nil {
		t.Error("it loads on after the end")
	}
}

func TestShortened(t *testing.T) {
	for label, want := range map[string]string{
		`\e`:                                 `\e`,
		strings.Repeat("é", maxName):         strings.Repeat("é", maxName),
		strings.Repeat("é", maxName) + "end": strings.Repeat("é", maxName-1) + "…",
	} {
		if got := shortened(label); got != want {
			t.Errorf("shortened(%q) = %q, want %q", label, got, want)
		}
	}
}

// mustBeEmpty finds what a demonstration left behind in its TMPDIR.
func mustBeEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
