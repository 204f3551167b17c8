package topology

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/resp"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, flags config.RedisFlags) *session {
	t.Helper()
	cfg, err := flags.Validate()
	if err != nil {
		t.Fatal(err)
	}
	n := Standalone(cfg)
	s, err := n.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); n.Close() })
	return s.(*session)
}

// TestPageIsSplit: SCAN may return more names than a pipeline should carry, and
// the first key of a connection goes alone.
func TestPageIsSplit(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	const facts = keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL
	page := &scanner.Page{Scan: true, Count: 10}
	for i := range 1202 {
		name := fmt.Sprint("user:", i)
		if i != 600 { // that one went meanwhile
			if err := client.Set(t.Context(), name, "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		page.Keys = append(page.Keys, keyspace.Key{Name: name, NameBytes: int64(len(name))})
		page.Wants = append(page.Wants, facts)
	}
	s := open(t, config.RedisFlags{Addr: server.Addr()})
	for _, want := range []int{1 + 3, 3} { // 1+500+500+201, then 500+500+202
		if err := s.Page(t.Context(), page); err != nil {
			t.Fatal(err)
		}
		if page.RoundTrips != want {
			t.Errorf("%d round trips, want %d", page.RoundTrips, want)
		}
		for i, k := range page.Keys {
			if gone := page.Problems[i] == fault.Gone; gone != (i == 600) || !gone && (!k.Has(facts) || k.Bytes == 0 || k.Type != keyspace.String || k.TTL != keyspace.NoTTL) {
				t.Fatalf("key %d: %+v, problem %v", i, k, page.Problems[i])
			}
		}
		if len(page.Next) == 0 || page.NextCursor == 0 {
			t.Errorf("no SCAN: %d names, cursor %d", len(page.Next), page.NextCursor)
		}
	}
}

// TestWrongTypeAndGone: a key that is replaced or deleted between its TYPE and
// its length is no error of the cycle.
func TestWrongTypeAndGone(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	if err := client.Set(t.Context(), "replaced", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s := open(t, config.RedisFlags{Addr: server.Addr()})
	keys := []*keyspace.Key{{Name: "replaced", Type: keyspace.Hash}, {Name: "deleted", Type: keyspace.List}, {Name: "replaced", Type: keyspace.String}, {Name: "replaced", Type: keyspace.Module}}
	for _, k := range keys {
		k.Known = keyspace.FactType
	}
	problems := make([]fault.KeyProblem, len(keys))
	if err := s.Inspect(t.Context(), keys, keyspace.FactLength, problems); err != nil {
		t.Fatal(err)
	}
	want := []fault.KeyProblem{fault.WrongType, fault.Gone, fault.NoProblem, fault.NoProblem}
	if fmt.Sprint(problems) != fmt.Sprint(want) {
		t.Errorf("problems %v, want %v", problems, want)
	}
	if keys[2].Length != 1 || !keys[2].Has(keyspace.FactLength) || keys[3].Has(keyspace.FactLength) {
		t.Errorf("lengths %+v", keys[2:])
	}
}

// TestReadTTL: what PTTL replies, its extremes included.
func TestReadTTL(t *testing.T) {
	for reply, want := range map[string]struct {
		ttl    time.Duration
		exists bool
	}{
		":-2\r\n":                  {0, false},
		":-1\r\n":                  {keyspace.NoTTL, true},
		":0\r\n":                   {0, true},
		":1500\r\n":                {1500 * time.Millisecond, true},
		":9223372036854775807\r\n": {math.MaxInt64 / time.Millisecond * time.Millisecond, true},
	} {
		var k keyspace.Key
		exists, err := readTTL(&k, resp.NewReader(strings.NewReader(reply)))
		if err != nil || exists != want.exists || exists && k.TTL != want.ttl {
			t.Errorf("%q: %v, exists %v, %v", reply, k.TTL, exists, err)
		}
	}
}

// TestHome: a look into other databases, as where INFO is denied, does not move
// the walk, even if it was cut short.
func TestHome(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	if err := client.Do(t.Context(), "ACL", "SETUSER", "noinfo", "on", ">pw", "~*", "+@all", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	s := open(t, config.RedisFlags{Addr: server.Addr(), User: "noinfo", Password: "pw"})
	if err := s.Select(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context())
	if err != nil || !info.Denied || s.db != 2 {
		t.Errorf("in db %d: %+v, %v", s.db, info, err)
	}
	if err := s.use(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if err := s.Page(t.Context(), &scanner.Page{Scan: true, Count: 10}); err != nil || s.db != 2 {
		t.Errorf("the page was of db %d: %v", s.db, err)
	}
}

// TestReadOnlyHook: what is not on the list never leaves the process, alone or
// in the middle of a pipeline.
func TestReadOnlyHook(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	s := open(t, config.RedisFlags{Addr: server.Addr()})
	for _, args := range [][]any{
		{"set", "k", "v"},
		{"SET", "k", "v"},
		{"del", "k"},
		{"flushall"},
		{"keys", "*"},
		{"eval", "return 1", "0"},
		{"debug", "object", "k"},
		{"client", "kill", "id", "1"},
		{"client"},
		{"memory", "purge"},
		{"memory"},
		{"config", "get", "*"},
		{"config", "get", "requirepass"},
		{"config", "get", "timeout", "requirepass"},
		{"config", "get", "lazyfree-*"},
		{"config", "set", "timeout", "1"},
		{"command"},
		{"slowlog", "reset"},
		{"get", "k"},
		{"monitor"},
	} {
		if err := s.conn.Do(t.Context(), args...).Err(); err == nil || !strings.Contains(err.Error(), "read-only list") {
			t.Errorf("%v: err = %v", args, err)
		}
		pipe := s.conn.Pipeline()
		ping := pipe.Ping(t.Context())
		pipe.Do(t.Context(), args...)
		if _, err := pipe.Exec(t.Context()); err == nil || ping.Err() == nil {
			t.Errorf("%v in a pipeline: err = %v", args, err)
		}
	}
	for _, args := range [][]any{{"PING"}, {"memory", "usage", "k"}, {"MEMORY", "USAGE", "k"}, {"client", "no-touch", "on"}, {"config", "get", "timeout"}, {"slowlog", "get"}} {
		if err := s.conn.Do(t.Context(), args...).Err(); err != nil && strings.Contains(err.Error(), "read-only list") {
			t.Errorf("%v: err = %v", args, err)
		}
	}
	stats, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []string{"set", "del", "flushall", "keys", "eval", "get", "monitor"} {
		if strings.Contains(stats, "cmdstat_"+cmd+":") {
			t.Errorf("%s reached the server", cmd)
		}
	}
}

// TestRotatedPassword: each connection reads the password file anew, through a
// symlink that was swapped, as Kubernetes does.
func TestRotatedPassword(t *testing.T) {
	server := testredis.Start(t, "--requirepass", "first")
	dir := t.TempDir()
	link := filepath.Join(dir, "password")
	swap := func(password string) {
		t.Helper()
		target := filepath.Join(dir, password+".txt")
		if err := os.WriteFile(target, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	swap("first")
	cfg, err := config.RedisFlags{Addr: server.Addr(), PasswordFile: link}.Validate()
	if err != nil {
		t.Fatal(err)
	}
	n := Standalone(cfg)
	t.Cleanup(n.Close)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "first", Protocol: 2, DisableIdentity: true})
	defer admin.Close()
	connect := func() error {
		s, err := n.Open(t.Context())
		if err == nil {
			s.Close()
		}
		return err
	}
	if err := connect(); err != nil {
		t.Fatal(err)
	}
	if err := admin.ConfigSet(t.Context(), "requirepass", "second").Err(); err != nil {
		t.Fatal(err)
	}
	if err := connect(); fault.ReasonOf(err) != fault.Auth {
		t.Errorf("with the old password: %v", err)
	}
	swap("second")
	if err := connect(); err != nil {
		t.Errorf("with the new one: %v", err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := connect(); fault.ReasonOf(err) != fault.Auth || !strings.Contains(err.Error(), link) {
		t.Errorf("without the file: %v", err)
	}
}

// TestCloseInterrupts: a node that is closed ends what hangs, and dials no more.
func TestCloseInterrupts(t *testing.T) {
	server := testredis.Start(t)
	cfg, err := config.RedisFlags{Addr: server.Addr()}.Validate()
	if err != nil {
		t.Fatal(err)
	}
	n := Standalone(cfg)
	s, err := n.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Ping(t.Context())
		done <- err
	}()
	n.Close()
	if err := <-done; fault.ReasonOf(err) != fault.ConnLost {
		t.Errorf("err = %v", err)
	}
	if _, err := n.Open(t.Context()); err == nil {
		t.Error("a closed node dials")
	}
}

// TestGreetingWhileBusy: that a script blocks the server says nothing of what
// the account may call.
func TestGreetingWhileBusy(t *testing.T) {
	server := testredis.Start(t, "--busy-reply-threshold", "20")
	client, killer := server.Client(t), server.Client(t)
	done := make(chan error, 1)
	go func() { done <- client.Eval(t.Context(), "while true do end", nil).Err() }()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if err := killer.Ping(t.Context()).Err(); err != nil && strings.HasPrefix(err.Error(), "BUSY") {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the server is not busy: %v", err)
		}
	}
	s := open(t, config.RedisFlags{Addr: server.Addr()})
	for _, cmd := range []keyspace.Command{keyspace.CmdSetName, keyspace.CmdNoTouch} {
		if s.denied(cmd) {
			t.Errorf("%s is denied", cmd)
		}
	}
	if err := killer.ScriptKill(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	<-done
}
