package web

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-kit/log"
)

// pipes is a listener of connections in memory, so that a test lives in virtual
// time.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.accepted <- server
	return client
}

// serving runs a test against a server in virtual time.
func serving(t *testing.T, h http.Handler, logger log.Logger, test func(t *testing.T, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		server := NewServer(h, logger)
		listener := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
		ended := make(chan error)
		go func() { ended <- server.Serve(listener) }()
		test(t, listener.dial)
		server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// TestSlowClients: whoever keeps a connection without using it loses it.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sent  string
		least, most time.Duration
	}{
		{"says nothing", "", 0, 5 * time.Second},
		{"in the middle of a header", "GET /report HTTP/1.1\r\nHost: x\r\nX-Slow: ", 0, 5 * time.Second},
		{"in the middle of a body", "GET /report HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", 0, 3 * time.Minute},
		// Prometheus keeps its connection from one scrape to the next.
		{"between requests", "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n", time.Minute, 3 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			serving(t, handler(t, shop()), log.NewNopLogger(), func(t *testing.T, dial func() net.Conn) {
				conn := dial()
				defer conn.Close()
				since := time.Now()
				if _, err := io.WriteString(conn, c.sent); err != nil {
					t.Fatal(err)
				}
				if err := conn.SetReadDeadline(since.Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, conn); err != nil {
					t.Errorf("still connected: %v", err)
				}
				if took := time.Since(since); took < c.least || took > c.most {
					t.Errorf("held for %v", took)
				}
			})
		})
	}
}

// TestSlowReader: whoever does not take the answer does not keep the handler.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	var handled atomic.Bool
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer handled.Store(true)
		for range 1000 {
			if _, err := w.Write(make([]byte, 10<<10)); err != nil {
				return
			}
		}
		t.Error("all was written")
	})
	serving(t, h, log.NewNopLogger(), func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		for since := time.Now(); !handled.Load(); time.Sleep(time.Second) {
			if took := time.Since(since); took > 2*time.Minute {
				t.Fatalf("held for %v", took)
			}
		}
	})
}

func TestHugeHeader(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{
		32 << 10: http.StatusOK,
		1 << 20:  http.StatusRequestHeaderFieldsTooLarge,
	} {
		serving(t, handler(t, shop()), log.NewNopLogger(), func(t *testing.T, dial func() net.Conn) {
			conn := dial()
			defer conn.Close()
			go func() {
				_, _ = io.WriteString(conn, "GET /-/healthy HTTP/1.1\r\nHost: x\r\nX-Huge: "+strings.Repeat("x", size)+"\r\n\r\n")
			}()
			reader := bufio.NewReader(conn)
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, reader) // until the server hangs up
			if response.StatusCode != want {
				t.Errorf("a header of %d bytes: %d, want %d", size, response.StatusCode, want)
			}
		})
	}
}

// TestServerLog: what net/http has to say goes to the program's log, a line each.
func TestServerLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(errBroken) })
	serving(t, h, log.NewLogfmtLogger(&out), func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, conn) // until it is closed
	})
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "level=warn ") || !strings.Contains(got, errBroken.Error()) {
		t.Errorf("the log: %q", got)
	}
}

// TestReportLimit: beyond the slots a report is refused, not queued.
func TestReportLimit(t *testing.T) {
	slots := make(chan struct{}, 1)
	handler := limited(slots, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	ask := func() int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/report", nil))
		return w.Code
	}
	slots <- struct{}{}
	if code := ask(); code != http.StatusServiceUnavailable {
		t.Errorf("%d while the slot is taken", code)
	}
	<-slots
	for range 3 {
		if code := ask(); code != http.StatusOK {
			t.Errorf("%d while it is free", code)
		}
	}
}
