package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redis_keyhealth_exporter/internal/testredis"
)

const (
	// endsWithin is how long the end may take.
	endsWithin = 2 * time.Second
	// patience is for what a slow machine takes long for.
	patience = time.Minute
)

// quickDemo is one that takes seconds.
func quickDemo() *demo {
	return &demo{
		stdout:   &output{},
		stderr:   &output{},
		interval: 100 * time.Millisecond,
		every:    200 * time.Millisecond,
		lifetime: 10 * time.Millisecond,
		pickPort: testredis.FreePort,
	}
}

// running is a demonstration under way.
type running struct {
	stdout, stderr *output
	cancel         context.CancelFunc
	ended          chan struct{}
	err            error // once it ended
	check          func(t *testing.T)
}

// startDemo runs a demonstration in a TMPDIR of its own.
func startDemo(t *testing.T, d *demo) *running {
	t.Helper()
	temp := shortTempDir(t)
	t.Setenv("TMPDIR", temp)
	t.Setenv("SCAN_MAX_DUTY", "1") // the race detector slows the scan enough
	before := goleak.IgnoreCurrent()
	// Of a server that went, go-redis looks for up to a second longer.
	redisPool := goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{cancel: cancel, ended: make(chan struct{})}
	r.stdout, _ = d.stdout.(*output)
	r.stderr, _ = d.stderr.(*output)
	go func() {
		defer close(r.ended)
		r.err = d.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	r.check = func(t *testing.T) {
		t.Helper()
		mustBeEmpty(t, temp)
		if err := goleak.Find(before, redisPool); err != nil {
			t.Error(err)
		}
		if r.stdout == nil || !redisAddr.MatchString(r.stdout.String()) {
			return
		}
		if conn, err := net.Dial("tcp", r.redis(t)); err == nil {
			conn.Close()
			t.Error("redis-server still listens")
		}
	}
	return r
}

// stop ends the demonstration as Ctrl-C does and returns what it returned.
func (r *running) stop(t *testing.T) error {
	t.Helper()
	start := time.Now()
	r.cancel()
	err := r.wait(t)
	if took := time.Since(start); took > endsWithin {
		t.Errorf("it took %v to end", took)
	}
	return err
}

// wait returns what the demonstration returned, which must have cleaned up.
func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	r.check(t)
	return r.err
}

var redisAddr = regexp.MustCompile(`redis-server on (127\.0\.0\.1:\d+)`)

// redis is the address of the throw-away server.
func (r *running) redis(t *testing.T) string {
	t.Helper()
	match := redisAddr.FindStringSubmatch(r.stdout.String())
	if match == nil {
		t.Fatalf("no redis-server in %q", r.stdout)
	}
	return match[1]
}

// output collects what is printed. It is safe for concurrent use.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// await returns once the text was printed.
func (o *output) await(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(o.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q is not printed, but:\n%s", text, o)
		}
	}
}

// brokenPipe is what nobody reads any more.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// shortTempDir is t.TempDir with a path that leaves room for that of a socket.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
