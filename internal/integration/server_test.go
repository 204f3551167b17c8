package integration

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

// serverRules are the findings as series; a rule that was not evaluated has
// none, and rule_evaluated 0.
func (r *rig) serverRules() map[string]float64 {
	r.t.Helper()
	all, found := r.metrics(), map[string]float64{}
	for _, rule := range policy.Rules() {
		if !rule.AboutServer() {
			continue
		}
		v, ok := all[label("server_rule_violation", "rule="+rule.ID, "level="+rule.Level.String())]
		if ok {
			found[rule.ID] = v
		}
		if evaluated := all[label("rule_evaluated", "rule="+rule.ID)]; (evaluated == 1) != ok {
			r.t.Errorf("%s: evaluated %v, a series %v", rule.ID, evaluated, ok)
		}
		if _, ok := all[label("rule_violations", "rule="+rule.ID, "level="+rule.Level.String(), "namespace=default", "db=db0")]; ok {
			r.t.Errorf("%s is judged on keys", rule.ID)
		}
	}
	return found
}

func (r *rig) wantServerRules(about string, want map[string]float64) {
	r.t.Helper()
	got := r.serverRules()
	for _, rule := range policy.Rules() {
		g, evaluated := got[rule.ID]
		if w, ok := want[rule.ID]; ok != evaluated || g != w {
			r.t.Errorf("%s: %s = %v (evaluated %v), want %v (%v)", about, rule.ID, g, evaluated, w, ok)
		}
	}
}

func do(t *testing.T, client *redis.Client, args ...any) {
	t.Helper()
	if err := client.Do(t.Context(), args...).Err(); err != nil && err != redis.Nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// TestServerRules: each rule is broken and kept on a real server.
func TestServerRules(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	load(t, client, 0, small("user", 100)...)
	r := newRig(t, flagsOf(server.Addr()), nil)
	r.cycle()
	want := map[string]float64{"cmd_forbidden_enabled": 1, "multi_db": 0, "maxmemory_policy": 1, "mixed_business": 0}
	r.wantServerRules("first cycle", want)

	want["cmd_forbidden_used"], want["cmd_multi_key_used"] = 0, 0
	r.cycle()
	r.wantServerRules("quiet", want)

	do(t, client, "KEYS", "nonesuch")
	do(t, client, "CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru")
	load(t, client, 3, small("user", 1)...)
	want["cmd_forbidden_used"], want["maxmemory_policy"], want["multi_db"] = 1, 0, 1
	r.cycle()
	r.wantServerRules("KEYS, and a second database", want)

	do(t, client, "SUNION", "a", "b")
	do(t, client, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	want["cmd_forbidden_used"], want["cmd_multi_key_used"], want["maxmemory_policy"] = 0, 1, 1
	r.cycle()
	r.wantServerRules("SUNION, and nothing to evict", want)

	for i := range 9 {
		load(t, client, 0, small("business"+strconv.Itoa(i), 50)...)
	}
	want["cmd_multi_key_used"], want["mixed_business"] = 0, 1
	r.cycle()
	r.wantServerRules("ten businesses", want)

	do(t, client, "FLUSHALL")
	want["cmd_forbidden_used"], want["mixed_business"], want["multi_db"], want["maxmemory_policy"] = 1, 0, 0, 0
	r.cycle()
	r.wantServerRules("FLUSHALL", want)

	// What is called on a server that began to count anew is still known; that
	// nothing was, is not.
	do(t, client, "CONFIG", "RESETSTAT")
	do(t, client, "KEYS", "nonesuch")
	delete(want, "cmd_multi_key_used")
	r.cycle()
	r.wantServerRules("reset, then KEYS", want)
	if err := server.Restart("--maxmemory", "1gb", "--maxmemory-policy", "noeviction"); err != nil {
		t.Fatal(err)
	}
	delete(want, "cmd_forbidden_used")
	r.cycle()
	r.wantServerRules("restarted", want)
}

// TestServerCommands: the counters are the server's own, and those of the
// rulebook are there before the first call.
func TestServerCommands(t *testing.T) {
	server := testredis.Start(t, "--enable-debug-command", "local")
	client := server.Client(t)
	families := []string{"forbidden_command_calls_total", "on_command_calls_total", "multi_key_command_calls_total"}
	for _, args := range [][]any{
		{"KEYS", "x"},
		{"KEYS", "x"},
		{"FLUSHDB"},
		{"DEBUG", "SLEEP", "0"},
		{"HGETALL", "h"},
		{"LRANGE", "l", "0", "-1"},
		{"DEL", "x"},
		{"DEL", "x"},
		{"DEL", "x"},
		{"EVAL", "return 1", "0"},
		{"SUNION", "a", "b"},
		{"SINTERSTORE", "d", "a", "b"},
		{"RPOPLPUSH", "a", "b"},
		{"ZREMRANGEBYSCORE", "z", "0", "1"},
		{"GEORADIUS_RO", "g", "0", "0", "1", "m"},
	} {
		do(t, client, args...)
	}
	r := newRig(t, flagsOf(server.Addr()), nil)
	if got := r.metrics(); got[label("forbidden_command_calls_total", "command=keys")] != 0 {
		t.Error("counters before the first cycle")
	}
	r.cycle()
	calls, truth := commandCalls(t, client), map[string]float64{}
	for family, commands := range map[string][]string{families[0]: policy.ForbiddenCommands(), families[1]: policy.OnCommands(), families[2]: policy.MultiKeyCommands()} {
		for _, cmd := range commands {
			truth[label(family, "command="+cmd)] = float64(calls[cmd])
		}
	}
	got := r.metrics()
	same(t, got, truth, families...)
	for s, want := range map[string]float64{
		label(families[0], "command=keys"): 2, label(families[0], "command=debug"): 1, label(families[0], "command=monitor"): 0,
		label(families[1], "command=del"): 3, label(families[1], "command=eval"): 1, label(families[2], "command=sinterstore"): 1,
	} {
		if got[s] != want {
			t.Errorf("%s = %v, want %v", s, got[s], want)
		}
	}
	if seconds := got[label("on_command_seconds_total", "command=del")]; seconds < 0 || seconds > 1 {
		t.Errorf("DEL took %v s", seconds)
	}
}

// TestConfigProbe: settings are read by consent only, and only those that rules
// need; where that is denied the rules are not evaluated.
func TestConfigProbe(t *testing.T) {
	server := testredis.Start(t, "--requirepass", password)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: password, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	load(t, client, 0, small("user", 10)...)
	flags := flagsOf(server.Addr())
	flags.Password = password
	probing := func(o *scanner.Options) { o.ConfigProbe = true }

	off := newRig(t, flags, nil)
	off.cycle()
	if n := commandCalls(t, client)["config|get"]; n != 0 {
		t.Errorf("CONFIG GET was sent %d times", n)
	}
	if got := off.serverRules(); len(got) != 4 {
		t.Errorf("without CONFIG GET: %v", got)
	}

	on := newRig(t, flags, probing)
	on.cycle()
	want := map[string]float64{"cmd_forbidden_enabled": 1, "multi_db": 0, "maxmemory_policy": 1, "mixed_business": 0, "lazyfree_off": 1, "limits_unset": 1}
	on.wantServerRules("defaults", want)
	do(t, client, "CONFIG", "SET", "timeout", "300")
	for _, name := range policy.ConfigLazyFree() {
		do(t, client, "CONFIG", "SET", name, "yes")
	}
	on.cycle()
	want["lazyfree_off"], want["limits_unset"], want["cmd_forbidden_used"], want["cmd_multi_key_used"] = 0, 0, 0, 0
	on.wantServerRules("set", want)
	for s := range on.metrics() {
		if strings.Contains(s, password) {
			t.Errorf("%s tells the password", s)
		}
	}

	rights := append([]string{"%R~*"}, fullRights...)
	setUser(t, client, rights...)
	do(t, client, "ACL", "LOG", "RESET")
	denied := newRig(t, userFlags(server.Addr()), probing)
	denied.cycle()
	delete(want, "lazyfree_off")
	delete(want, "limits_unset")
	delete(want, "cmd_forbidden_used")
	delete(want, "cmd_multi_key_used")
	denied.wantServerRules("denied", want)
	if v, ok := denied.metrics()[label("capability", "command=config|get")]; !ok || v != 0 {
		t.Errorf("capability %v", v)
	}
	entries, err := client.Do(t.Context(), "ACL", "LOG").Slice()
	if err != nil || len(entries) > 1 {
		t.Errorf("%d entries in the ACL LOG, %v", len(entries), err)
	}
}

// TestReplicaIsNoPrimary: a replica's own statistics and settings say nothing.
func TestReplicaIsNoPrimary(t *testing.T) {
	primary := testredis.Start(t)
	load(t, primary.Client(t), 0, small("user", 10)...)
	replica := testredis.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(primary.Port()))
	client := replica.Client(t)
	deadline := time.Now().Add(time.Minute)
	for client.DBSize(t.Context()).Val() != 10 {
		if time.Now().After(deadline) {
			t.Fatal("the replica got no data")
		}
		time.Sleep(10 * time.Millisecond)
	}
	do(t, client, "KEYS", "x")
	r := newRig(t, flagsOf(replica.Addr()), func(o *scanner.Options) { o.ConfigProbe = true })
	for range 2 {
		r.cycle()
		r.wantServerRules("a replica", nil)
	}
	for s := range r.metrics() {
		if strings.Contains(s, "_command_calls_total") || strings.HasPrefix(s, "on_command") {
			t.Errorf("%s of a replica", s)
		}
	}
	if calls := commandCalls(t, client); calls["config|get"]+calls["command|info"] != 0 {
		t.Errorf("a replica was asked: %v", calls)
	}
}
