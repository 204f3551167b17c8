package testredis

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(ownerEnv) != "" {
		beOwner()
	}
	goleak.VerifyTestMain(m)
}

// ownerEnv makes the test binary a program that owns a server and never stops.
const ownerEnv = "TESTREDIS_OWNER"

func beOwner() {
	s, err := Launch(Options{})
	if err != nil {
		os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString(s.Dir() + " " + s.Addr() + "\n")
	select {}
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := Start(t, "--databases", "3")
	if want := "127.0.0.1:" + strconv.Itoa(s.Port()); s.Addr() != want {
		t.Errorf("Addr is %s, want %s", s.Addr(), want)
	}
	if got := config(t, s, "dir"); got != s.Dir() {
		t.Errorf("the server works in %s, Dir is %s", got, s.Dir())
	}
	if got := config(t, s, "save"); got != "" {
		t.Errorf("the server saves its data: %q", got)
	}
	if got := config(t, s, "databases"); got != "3" {
		t.Errorf("the server has %s databases, the argument says 3", got)
	}
}

func TestServerAnswersWithError(t *testing.T) {
	t.Parallel()
	s := Start(t, "--requirepass", "secret")
	if err := s.Client(t).Ping(t.Context()).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Errorf("PING without password: %v", err)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	primary := Start(t)
	s, err := Launch(Options{
		Args:   []string{"--sentinel"},
		Config: "sentinel monitor orders 127.0.0.1 " + strconv.Itoa(primary.Port()) + " 1\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Client(t).Do(t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "orders").StringSlice()
	if err != nil || net.JoinHostPort(got[0], got[1]) != primary.Addr() {
		t.Errorf("the sentinel says the primary is %v (%v), want %s", got, err, primary.Addr())
	}
}

func TestPortInArgs(t *testing.T) {
	t.Parallel()
	s := Start(t, "--cluster-enabled", "yes", "--cluster-announce-port", "{port}")
	if got := config(t, s, "cluster-announce-port"); got != strconv.Itoa(s.Port()) {
		t.Errorf("{port} became %s, the port is %d", got, s.Port())
	}
}

func TestUnder(t *testing.T) {
	t.Parallel()
	starts := filepath.Join(t.TempDir(), "starts")
	s, err := Launch(Options{Under: []string{"sh", "-c", `echo >>"$0" && exec "$@"`, starts}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	mustPing(t, s.Client(t))
	if lines, err := os.ReadFile(starts); err != nil || string(lines) != "\n\n" {
		t.Errorf("the command ran %d times for two servers, %v", len(lines), err)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := Start(t)
	client := s.Client(t)
	mustPing(t, client)

	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	mustTimeOut(t, client)
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	mustPing(t, client)
}

func TestKill(t *testing.T) {
	t.Parallel()
	s := Start(t, "--save", "3600 1")
	client := s.Client(t)
	mustSet(t, client)

	for range 2 {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Error("a killed server answers")
	}
	if err := s.Pause(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("pausing a killed server: %v", err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := s.Client(t).Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("data that was never saved survived a crash: %v", err)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	s := Start(t, "--save", "3600 1")
	mustSet(t, s.Client(t))
	addr, id := s.Addr(), runID(t, s)

	if err := s.Pause(); err != nil { // no hindrance
		t.Fatal(err)
	}
	if err := s.Restart("--maxmemory", "100mb"); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != addr {
		t.Errorf("the address changed from %s to %s", addr, s.Addr())
	}
	if runID(t, s) == id {
		t.Error("the server was not restarted")
	}
	if got, err := s.Client(t).Get(t.Context(), "k").Result(); err != nil || got != "v" {
		t.Errorf("the RDB file was not loaded: %q, %v", got, err)
	}
	if got := config(t, s, "maxmemory"); got != "104857600" {
		t.Errorf("maxmemory is %s in spite of the argument", got)
	}

	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := config(t, s, "maxmemory"); got != "0" {
		t.Errorf("maxmemory is %s, set for another run", got)
	}
	if got := config(t, s, "save"); got != "3600 1" {
		t.Errorf("save is %q: the arguments of Start are gone", got)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	s, err := Launch(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if err := s.Client(t).Ping(t.Context()).Err(); err == nil {
		t.Error("a closed server answers")
	}
	if err := s.Kill(); err != nil {
		t.Errorf("killing a closed server: %v", err)
	}
	if s.Restart() == nil || s.Pause() == nil || s.Resume() == nil {
		t.Error("a closed server can be used")
	}
}

func TestLaunchFails(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	_, err := Launch(Options{Args: []string{"--maxmemory", "lots"}})
	if err == nil || !strings.Contains(err.Error(), "argument must be a memory value") {
		t.Errorf("the error does not show the server's words: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(temp, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestLaunchWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Launch(Options{})
	if err == nil || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("the error does not tell how to install redis-server: %v", err)
	}
}

func TestPortRace(t *testing.T) {
	t.Parallel()
	taken := Start(t).Port()
	calls := 0
	s, err := launch(Options{}, func() (int, error) {
		if calls++; calls <= 2 {
			return taken, nil
		}
		return FreePort()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if calls != 3 || s.Port() == taken {
		t.Errorf("port %d after %d tries; %d is another server's", s.Port(), calls, taken)
	}

	_, err = launch(Options{}, func() (int, error) { return taken, nil })
	if !errors.Is(err, errPortTaken) {
		t.Errorf("without any free port: %v", err)
	}
}

func TestFreePort(t *testing.T) {
	t.Parallel()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if port < minPort || port > maxPort {
		t.Errorf("port %d is out of range", port)
	}
}

func config(t *testing.T, s *Server, name string) string {
	t.Helper()
	values, err := s.Client(t).ConfigGet(t.Context(), name).Result()
	if err != nil {
		t.Fatal(err)
	}
	return values[name]
}

func runID(t *testing.T, s *Server) string {
	t.Helper()
	id := s.Client(t).InfoMap(t.Context(), "server").Item("Server", "run_id")
	if id == "" {
		t.Fatal("INFO has no run_id")
	}
	return id
}

func mustSet(t *testing.T, client *redis.Client) {
	t.Helper()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func mustPing(t *testing.T, client *redis.Client) {
	t.Helper()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

func mustTimeOut(t *testing.T, client *redis.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := client.Ping(ctx).Err()
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("PING did not time out: %v", err)
	}
}
