package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redis_keyhealth_exporter/internal/testredis"
)

// hangingRedis is a server behind a proxy. Once hang was called, it swallows
// what the server says, so that the client is in the middle of a read, and the
// server is stopped.
func hangingRedis(t *testing.T) (addr string, hang func()) {
	t.Helper()
	server := testredis.Start(t)
	plant(t, server.Client(t))
	proxy := testredis.StartProxy(t, server.Addr())
	return proxy.Addr(), func() {
		t.Helper()
		swallowed, once := make(chan struct{}), sync.Once{}
		proxy.Garble(func([]byte) []byte {
			once.Do(func() { close(swallowed) })
			return nil
		})
		select {
		case <-swallowed:
		case <-time.After(30 * time.Second):
			t.Fatal("the exporter asks Redis nothing")
		}
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
	}
}

// openConnections has the exporter keep connections: one that says nothing, one
// in the middle of a request, and one that waits for the next.
func openConnections(t *testing.T, addr string) {
	t.Helper()
	for _, sent := range []string{"", "GET /metrics HTTP/1.1\r\nHost: ", "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := conn.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(sent, "\r\n\r\n") {
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("%v, %v", response, err)
			}
			response.Body.Close()
		}
	}
}

func TestShutdown(t *testing.T) {
	for _, c := range []struct {
		name  string
		redis func(*testing.T) (addr string, hang func())
		ready bool
	}{
		{"redis hangs", hangingRedis, true},
		{"redis answers", func(t *testing.T) (string, func()) { return testredis.Start(t).Addr(), func() {} }, true},
		{"redis is down", func(*testing.T) (string, func()) { return "127.0.0.1:1", func() {} }, false},
		{"redis is a black hole", func(t *testing.T) (string, func()) { return blackHole(t), func() {} }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr, hang := c.redis(t)
			others := goleak.IgnoreCurrent()
			e := start(t, "--redis.addr="+addr, "--scan.interval=0s", "--scan.max-duty=1")
			if c.ready {
				e.awaitReady(t)
			}
			hang()
			openConnections(t, strings.TrimPrefix(e.url, "http://"))
			if code := e.stop(t); code != exitOK { // within shutdownLimit
				t.Errorf("exit code %d", code)
			}
			if _, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://")); err == nil {
				t.Error("it still listens")
			}
			goleak.VerifyNone(t, others)
		})
	}
}

// blackHole accepts connections and says nothing.
func blackHole(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// TestEndBeforeStart: a program that is told to end at once ends.
func TestEndBeforeStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr buffer
	if code := Run(ctx, []string{"--redis.addr=" + blackHole(t), "--web.listen-address=127.0.0.1:0"}, io.Discard, &stderr); code != exitOK {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// TestBinary is about what no run within the test shows: main, signals, and the
// process's own exit code and streams.
func TestBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program, which is not built like this test")
	}
	binary := filepath.Join(t.TempDir(), program)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "redis_keyhealth_exporter").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}

	t.Run("bad flag", func(t *testing.T) {
		var stdout, stderr buffer
		cmd := exec.CommandContext(t.Context(), binary, "--scan.count=0")
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitConfig {
			t.Errorf("%v", err)
		}
		if got := stderr.String(); !strings.HasPrefix(got, program+": --scan.count: ") || strings.Count(got, "\n") != 1 || stdout.String() != "" {
			t.Errorf("stderr %q, stdout %q", got, stdout.String())
		}
	})
	t.Run("version", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), binary, "--version").Output()
		if err != nil || !strings.HasPrefix(string(out), program) {
			t.Errorf("%v: %s", err, out)
		}
	})
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(sig.String(), func(t *testing.T) { testSignal(t, binary, sig) })
	}
}

// testSignal ends the program while Redis hangs.
func testSignal(t *testing.T, binary string, sig os.Signal) {
	redis, hang := hangingRedis(t)
	var stderr buffer
	cmd := exec.CommandContext(t.Context(), binary, "--redis.addr="+redis, "--web.listen-address=127.0.0.1:0", "--scan.interval=0s")
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var addr string
	eventually(t, "the exporter listens", func() bool {
		if addresses := listeningOn(stderr.String()); addresses != nil {
			addr = addresses[0]
		}
		return addr != ""
	})
	hang()
	openConnections(t, addr)

	since := time.Now()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if took := time.Since(since); took > shutdownLimit {
			t.Errorf("the shutdown took %v", took)
		}
		if err != nil {
			t.Errorf("%v; the log:\n%s", err, stderr.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("it does not end; the log:\n%s", stderr.String())
	}
}
