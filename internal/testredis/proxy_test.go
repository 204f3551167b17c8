package testredis

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

func TestProxyForwards(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr())
	c := client(t, p.Addr())
	mustSet(t, c)
	if got, err := c.Get(t.Context(), "k").Result(); err != nil || got != "v" {
		t.Errorf("GET through the proxy: %q, %v", got, err)
	}
}

func TestProxySetUpstream(t *testing.T) {
	t.Parallel()
	first, second := Start(t), Start(t)
	p := StartProxy(t, first.Addr())
	old := client(t, p.Addr())
	mustSet(t, old)

	p.SetUpstream(second.Addr())
	if n, err := old.DBSize(t.Context()).Result(); err != nil || n != 1 {
		t.Errorf("an old connection left its server: DBSIZE %d, %v", n, err)
	}
	if n, err := client(t, p.Addr()).DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("a new connection does not go to the new server: DBSIZE %d, %v", n, err)
	}
}

func TestProxyPause(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := StartProxy(t, s.Addr())
	before := dial(t, p)
	ask(t, before)

	p.Pause()
	p.Pause() // the same as once
	during := dial(t, p)
	for _, conn := range []net.Conn{before, during} {
		write(t, conn, "PING\r\n")
		mustStaySilent(t, conn)
	}

	p.Resume()
	p.Resume()
	for _, conn := range []net.Conn{before, during} {
		mustRead(t, conn, "+PONG\r\n")
	}
}

func TestProxyPauseHidesHangUp(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := StartProxy(t, s.Addr())
	conn := dial(t, p)
	ask(t, conn)

	p.Pause()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	mustStaySilent(t, conn)
	p.Resume()
	mustBeCut(t, conn)
}

func TestProxyCutAll(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr())
	conns := []net.Conn{dial(t, p), dial(t, p)}
	for _, conn := range conns {
		ask(t, conn)
	}
	p.Pause() // no hindrance
	p.CutAll()
	for _, conn := range conns {
		mustBeCut(t, conn)
	}
	p.Resume()
	ask(t, dial(t, p))
}

func TestProxyGarble(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr())
	conn := dial(t, p)

	p.Garble(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("PONG"), []byte("PING?")) })
	write(t, conn, "PING\r\n")
	mustRead(t, conn, "+PING?\r\n")

	p.Garble(func([]byte) []byte { return nil })
	write(t, conn, "PING\r\n")
	mustStaySilent(t, conn)

	p.Garble(nil)
	ask(t, conn)
}

func TestProxyWithoutUpstream(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := StartProxy(t, s.Addr())
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	mustBeCut(t, dial(t, p))
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	ask(t, dial(t, p))
}

func TestProxyClose(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr())
	conn := dial(t, p)
	ask(t, conn)
	p.Pause()
	p.Close()
	mustBeCut(t, conn)
	if conn, err := net.Dial("tcp", p.Addr()); err == nil {
		conn.Close()
		t.Error("a closed proxy accepts connections")
	}
	p.Close() // the same as once
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func ask(t *testing.T, conn net.Conn) {
	t.Helper()
	write(t, conn, "PING\r\n")
	mustRead(t, conn, "+PONG\r\n")
}

func write(t *testing.T, conn net.Conn, data string) {
	t.Helper()
	if _, err := conn.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got, err := read(t, conn, len(want), 10*time.Second)
	if err != nil || got != want {
		t.Fatalf("read %q (%v), want %q", got, err, want)
	}
}

func mustStaySilent(t *testing.T, conn net.Conn) {
	t.Helper()
	got, err := read(t, conn, 1, 50*time.Millisecond)
	if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
		t.Fatalf("read %q (%v), want nothing", got, err)
	}
}

func mustBeCut(t *testing.T, conn net.Conn) {
	t.Helper()
	got, err := read(t, conn, 1, 10*time.Second)
	if timeout, ok := err.(net.Error); err == nil || ok && timeout.Timeout() {
		t.Fatalf("read %q (%v), want a closed connection", got, err)
	}
}

func read(t *testing.T, conn net.Conn, n int, patience time.Duration) (string, error) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, n)
	n, err := io.ReadFull(conn, buf)
	return string(buf[:n]), err
}
