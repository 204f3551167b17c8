package topology

import (
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/testredis"
)

func TestKnownCommands(t *testing.T) {
	server := testredis.Start(t, "--rename-command", "KEYS", "x9keys", "--rename-command", "FLUSHALL", "")
	s := open(t, config.RedisFlags{Addr: server.Addr()})
	known, err := s.KnownCommands(t.Context(), policy.ForbiddenCommands())
	want := map[string]bool{"debug": true, "flushall": false, "flushdb": true, "keys": false, "monitor": true}
	if err != nil || !reflect.DeepEqual(known, want) {
		t.Errorf("%v, %v; want %v", known, err, want)
	}
	s = open(t, config.RedisFlags{Addr: testredis.Start(t, "--rename-command", "COMMAND", "").Addr()})
	if known, err := s.KnownCommands(t.Context(), policy.ForbiddenCommands()); err != nil || known != nil || s.capabilities[keyspace.CmdCommandInfo] != snapshot.Denied {
		t.Errorf("without COMMAND: %v, %v", known, err)
	}
}

func TestConfig(t *testing.T) {
	server := testredis.Start(t, "--timeout", "60", "--client-output-buffer-limit", "replica", "0", "1mb", "60", "--lazyfree-lazy-expire", "yes", "--requirepass", "sesame")
	s := open(t, config.RedisFlags{Addr: server.Addr(), Password: "sesame"})
	got, err := s.Config(t.Context())
	want := &policy.ServerConfig{
		Timeout: 60, ReplicaLimit: 0,
		LazyFree: map[string]bool{"lazyfree-lazy-expire": true, "lazyfree-lazy-eviction": false, "lazyfree-lazy-server-del": false, "lazyfree-lazy-user-del": false},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	s = open(t, config.RedisFlags{Addr: testredis.Start(t, "--rename-command", "CONFIG", "").Addr()})
	for range 2 {
		if got, err := s.Config(t.Context()); err != nil || got != nil || s.sent[keyspace.CmdConfigGet] != 1 {
			t.Errorf("without CONFIG: %v, %v, asked %d times", got, err, s.sent[keyspace.CmdConfigGet])
		}
	}
}

func TestReplicaLimit(t *testing.T) {
	for value, want := range map[string]int64{
		"normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60": 268435456,
		"normal 0 0 0 replica 0 0 0 pubsub 1 1 1":                             0,
		"normal 0 0 0 pubsub 1 1 1":                                           -1,
		"slave":                                                               -1, "slave x 0 0": -1, "slave -1 0 0": -1, "": -1,
	} {
		if got := replicaLimit(value); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
}

func TestKeysOf(t *testing.T) {
	many := strings.Fields(strings.Repeat("x ", 30))
	for _, tc := range []struct {
		args string
		want string
	}{
		{"HGETALL h", "h"},
		{"set k secret", "k"},
		{"lpush l secret secret2", "l"},
		{"mset a secret b secret2", "a b"},
		{"del a b c", "a b c"},
		{"sunionstore d a b", "d a b"},
		{"bitop and d a b", "d a b"},
		{"zunionstore d 2 a b weights 1 2", "d a b"},
		{"zinter 2 a b withscores", "a b"},
		{"lmpop 1 a left", "a"},
		{"eval return_secret 1 k secret", "k"},
		{"eval return_secret 0 secret", ""},
		{"eval return_secret x k", ""},
		{"eval return_secret 99 k", "k"},
		{"rename a b", "a b"},
		{"get k...", "k..."},
		{"get", ""},
		{"memory usage k", ""},
		{"type k", ""},
		{"auth secret", ""},
		{"config set requirepass secret", ""},
		{"nonesuch k", ""},
	} {
		if got := strings.Join(keysOf(strings.Fields(tc.args)), " "); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.args, got, tc.want)
		}
	}
	for _, args := range [][]string{{}, {"get", "kkk... (72 more bytes)"}, {"zunion", "9223372036854775807"}} {
		if got := keysOf(args); len(got) != 0 {
			t.Errorf("%q: %q", args, got)
		}
	}
	if got := keysOf(append(append([]string{"del"}, many...), "... (50 more arguments)")); len(got) != 30 {
		t.Errorf("of many arguments: %q", got)
	}
}

func TestParseSlow(t *testing.T) {
	args := []any{"get", "k"}
	for _, tc := range []struct {
		about string
		reply any
		ok    bool
		keys  int
	}{
		{"Redis 3", []any{int64(1), int64(2), int64(3), args}, true, 1},
		{"Redis 4 and later", []any{int64(1), int64(2), int64(3), args, "127.0.0.1:1", "app"}, true, 1},
		{"our own", []any{int64(1), int64(2), int64(3), args, "127.0.0.1:1", clientName}, true, 0},
		{"odd arguments", []any{int64(1), int64(2), int64(3), []any{int64(1), nil}}, true, 0},
		{"too short", []any{int64(1), int64(2), int64(3)}, false, 0},
		{"no numbers", []any{"1", "2", "3", args}, false, 0},
		{"no entry", "x", false, 0},
		{"nothing", nil, false, 0},
	} {
		if entry, ok := parseSlow(tc.reply); ok != tc.ok || len(entry.keys) != tc.keys {
			t.Errorf("%s: %+v, %v", tc.about, entry, ok)
		}
	}
}

// TestSlowKeys: names of keys come out of the slow log, once and in bounds.
// Values do not, nor what this program itself did.
func TestSlowKeys(t *testing.T) {
	server := testredis.Start(t, "--slowlog-log-slower-than", "0")
	client := server.Client(t)
	for _, args := range [][]any{{"set", "a:1", "secret"}, {"get", "a:1"}, {"hset", "h:1", "field", "secret"}, {"set", strings.Repeat("n", 129), "secret"}} {
		if err := client.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, config.RedisFlags{Addr: server.Addr()})
	if _, err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	look := func(s *session, want ...string) {
		t.Helper()
		if got, err := s.SlowKeys(t.Context()); err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	look(s, "h:1", "a:1")
	look(s)
	if err := client.Do(t.Context(), "set", "a:2", "secret").Err(); err != nil {
		t.Fatal(err)
	}
	look(s, "a:2")
	for i := range 120 {
		if err := client.Do(t.Context(), "set", i, "secret").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.SlowKeys(t.Context()); err != nil || len(got) != maxSlowKeys || got[0] != "119" {
		t.Errorf("%d names, %v", len(got), err)
	}
	// Ids begin anew with the process.
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	s2 := open(t, config.RedisFlags{Addr: server.Addr()})
	s2.slow = s.slow
	if err := client.Do(t.Context(), "set", "a:3", "secret").Err(); err != nil {
		t.Fatal(err)
	}
	look(s2, "a:3")
}

// TestToggle: what an older server lacks is not off.
func TestToggle(t *testing.T) {
	for _, tc := range []struct {
		reply    any
		on, told bool
	}{
		{[]any{"lazyfree-lazy-user-del", "yes"}, true, true},
		{[]any{"lazyfree-lazy-user-del", "no"}, false, true},
		{[]any{"lazyfree-lazy-user-del", "maybe"}, false, false},
		{[]any{}, false, false},
		{nil, false, false},
	} {
		if on, told := toggle(redis.NewCmdResult(tc.reply, nil)); on != tc.on || told != tc.told {
			t.Errorf("%v: %v, %v", tc.reply, on, told)
		}
	}
}

// TestSlowNews: after a restart ids begin anew, and those that reach the old ones
// are told apart by their time.
func TestSlowNews(t *testing.T) {
	entry := func(id, unix int64) slowEntry { return slowEntry{id: id, unix: unix} }
	for _, tc := range []struct {
		about   string
		entries []slowEntry
		want    int
	}{
		{"nothing", nil, 0},
		{"the same", []slowEntry{entry(5, 100), entry(4, 90)}, 0},
		{"one more, within the same second", []slowEntry{entry(6, 100), entry(5, 100)}, 1},
		{"restarted", []slowEntry{entry(1, 120), entry(0, 110)}, 2},
		{"restarted, as many", []slowEntry{entry(5, 130), entry(4, 120)}, 2},
		{"restarted, and more", []slowEntry{entry(6, 130), entry(5, 120), entry(4, 110)}, 3},
	} {
		seen := &slowSeen{id: 5, unix: 100}
		if got := len(seen.news(tc.entries)); got != tc.want {
			t.Errorf("%s: %d entries, want %d", tc.about, got, tc.want)
		}
	}
}
