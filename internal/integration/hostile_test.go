package integration

import (
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/testredis"
)

// peer is a server that answers everything it gets with the same bytes, and
// hangs up behind an answer that ends in "hang up".
func peer(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answer, hangUp := strings.CutSuffix(answer, "hang up")
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				buf := make([]byte, 4096)
				for {
					if _, err := conn.Read(buf); err != nil || answer == "" {
						return
					}
					if _, err := io.WriteString(conn, answer); err != nil || hangUp {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { listener.Close(); conns.Wait() })
	return listener.Addr().String()
}

// TestHostilePeer: whatever answers, it costs one cycle and no memory to speak
// of, and has one reason.
func TestHostilePeer(t *testing.T) {
	for _, tc := range []struct {
		about, answer string
		want          fault.Reason
	}{
		{"closes at once", "", fault.ConnLost},
		{"a web server", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", fault.Protocol},
		{"binary garbage", "\x00\x01\xfe\xff\r\n", fault.Protocol},
		{"TLS", "\x15\x03\x01\x00\x02\x02\x46", fault.Protocol},
		{"RESP3", "%1\r\n+a\r\n+b\r\n", fault.Protocol},
		{"an absurd bulk", "$9223372036854775807\r\n", fault.Protocol},
		{"a bulk of 2 GB", "$2000000000\r\n", fault.Protocol},
		{"an absurd array", "*9223372036854775807\r\n", fault.Protocol},
		{"an array of 10^9", "*1000000000\r\n", fault.Protocol},
		{"an endless nest", strings.Repeat("*1\r\n", 10_000), fault.Protocol},
		{"the wrong types", strings.Repeat("*2\r\n:1\r\n:2\r\n", 20), fault.Protocol},
		{"OK to everything", strings.Repeat("+OK\r\n", 20), fault.Protocol},
		{"maxclients", "-ERR max number of clients reached\r\nhang up", fault.ConnLost},
		{"protected mode", "-DENIED Redis is running in protected mode\r\nhang up", fault.ConnLost},
		{"LOADING", strings.Repeat("-LOADING Redis is loading the dataset in memory\r\n", 3), fault.NotReady},
		{"no Redis at all", strings.Repeat("-ERR unknown command\r\n", 3), fault.Unsupported},
	} {
		t.Run(tc.about, func(t *testing.T) {
			r := newRig(t, flagsOf(peer(t, tc.answer)), nil)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := r.scanner.RunCycle(t.Context())
			runtime.ReadMemStats(&after)
			if got := fault.ReasonOf(err); err == nil || got != tc.want {
				t.Errorf("%v: %v, want %v", got, err, tc.want)
			}
			if st := r.status(); st.Aborts[tc.want] != 1 || st.Up != tc.want.Answered() {
				t.Errorf("up %v, aborts %v", st.Up, st.Aborts)
			}
			if grew := after.TotalAlloc - before.TotalAlloc; grew > 16<<20 {
				t.Errorf("%d MiB were allocated", grew>>20)
			}
		})
	}
}

// TestGarbledInTheMiddle: what goes wrong on the way is noticed, and the next
// cycle is whole, without a restart.
func TestGarbledInTheMiddle(t *testing.T) {
	server := testredis.Start(t)
	load(t, server.Client(t), 0, small("user", 3000)...)
	proxy := testredis.StartProxy(t, server.Addr())
	for _, tc := range []struct {
		about  string
		garble func([]byte) []byte
		want   []fault.Reason
	}{
		{"a flipped length", func(b []byte) []byte { return []byte(strings.Replace(string(b), "$6\r\n", "$9\r\n", 1)) }, []fault.Reason{fault.Protocol}},
		{"a reply too many", func(b []byte) []byte {
			if strings.HasPrefix(string(b), "*2\r\n$") {
				b = append(b, "+OK\r\n"...)
			}
			return b
		}, []fault.Reason{fault.Protocol}},
		{"a hostile length", func(b []byte) []byte { return []byte(strings.Replace(string(b), "$6\r\n", "$99999999999\r\n", 1)) }, []fault.Reason{fault.Protocol}},
	} {
		r := newRig(t, flagsOf(proxy.Addr()), nil)
		proxy.Garble(tc.garble)
		err := r.scanner.RunCycle(t.Context())
		if got := fault.ReasonOf(err); err == nil || got != tc.want[0] {
			t.Errorf("%s: %v: %v", tc.about, got, err)
		}
		if r.scanner.State().Snapshot != nil {
			t.Errorf("%s: published", tc.about)
		}
		proxy.Garble(nil)
		r.cycle()
		if n := r.strings(0); n != 3000 {
			t.Errorf("%s: %v keys afterwards", tc.about, n)
		}
	}
}

// TestCut: a connection that is cut in mid-walk ends the cycle.
func TestCut(t *testing.T) {
	server := testredis.Start(t)
	load(t, server.Client(t), 0, small("user", 5000)...)
	proxy := testredis.StartProxy(t, server.Addr())
	r := newRig(t, flagsOf(proxy.Addr()), slowly(10_000))
	r.start()
	r.halfway()
	proxy.CutAll()
	eventually(t, "the loss is counted", func() bool { return r.status().Aborts[fault.ConnLost] == 1 })
	eventually(t, "a whole cycle", func() bool { return r.scanner.State().Snapshot != nil })
	if n := r.strings(0); n != 5000 {
		t.Errorf("%v keys", n)
	}
}

// TestDown: nothing listens.
func TestDown(t *testing.T) {
	port, err := testredis.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, flagsOf(net.JoinHostPort("127.0.0.1", itoa(port))), nil)
	if err := r.scanner.RunCycle(t.Context()); fault.ReasonOf(err) != fault.Down {
		t.Errorf("err = %v", err)
	}
	r = newRig(t, flagsOf("no-such-host.invalid:6379"), nil)
	if err := r.scanner.RunCycle(t.Context()); fault.ReasonOf(err) != fault.Down {
		t.Errorf("err = %v", err)
	}
	r = newRig(t, flagsOf("unix:///no/such/socket"), nil)
	if err := r.scanner.RunCycle(t.Context()); fault.ReasonOf(err) != fault.Down {
		t.Errorf("err = %v", err)
	}
}
