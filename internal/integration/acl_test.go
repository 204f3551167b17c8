package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/testredis"
)

const password = "correct-horse"

// fullRights are what a cycle uses, as an ACL rule before Redis 7.2.
var fullRights = []string{
	"+ping", "+info", "+scan", "+type", "+pttl", "+memory|usage", "+dbsize", "+select",
	"+strlen", "+llen", "+hlen", "+scard", "+zcard", "+xlen", "+client|setname", "+command|info",
	"+object|encoding", "+object|idletime", "+object|freq",
}

func setUser(t *testing.T, client *redis.Client, rules ...string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", "keyhealth", "reset", "on", ">" + password, "-@all"}
	for _, r := range rules {
		args = append(args, r)
	}
	if err := client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

func userFlags(addr string) config.RedisFlags {
	return config.RedisFlags{Addr: addr, User: "keyhealth", Password: password}
}

// plantACL plants what needs every command.
func plantACL(t *testing.T, client *redis.Client) {
	t.Helper()
	load(t, client, 0, small("user", 500)...)
	for _, typ := range append([]string{"string"}, collections...) {
		load(t, client, 0, create(key{name: typ + ":big", typ: typ, length: 11_000})...)
	}
	load(t, client, 0, []any{"SET", "ttl:long", "v", "EX", 100 * 86_400})
	load(t, client, 0, create(key{name: "hash:loose", typ: "hash", length: 600})...)
	load(t, client, 2, small("user", 10)...)
	load(t, client, 0, fixed("user", 20)...)
	load(t, client, 2, fixed("user", 20)...)
}

// fixed are n small keys, all of them in the fixed sample.
func fixed(prefix string, n int) [][]any {
	var commands [][]any
	for i := 0; len(commands) < n; i++ {
		name := fmt.Sprintf("%s:f%d", prefix, i)
		if keyspace.HashName(name)>>32%64 == 0 {
			commands = append(commands, []any{"SET", name, "v"})
		}
	}
	return commands
}

// TestDeniedCommands takes away one command at a time: what does not need it is
// published, what does is absent and said not to be evaluated, and the server's
// ACL LOG gets one entry at most for it.
func TestDeniedCommands(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	plantACL(t, client)
	bigRules := []string{"big_string", "many_elements", "big_collection", "big_element"}
	all := newRig(t, flagsOf(server.Addr()), nil)
	all.cycle()
	complete := all.metrics()

	for _, tc := range []struct {
		denied       string
		abort        fault.Reason // 255 = the cycle completes
		notEvaluated []string
		absent       []string // families
	}{
		{"", 255, nil, nil},
		{"client|setname", 255, nil, nil},
		{"ping", 255, nil, nil},
		{"dbsize", 255, nil, nil},
		{"command|info", 255, nil, nil},
		{"info", 255, []string{"idle_permanent"}, []string{"keys_without_ttl", "server_memory_bytes", "idle_seconds_count"}},
		{"object|encoding", 255, []string{"loose_encoding"}, []string{"keys_by_encoding"}},
		{"object|idletime", 255, []string{"idle_permanent"}, []string{"idle_seconds_count"}},
		{"memory|usage", 255, append([]string{"loose_encoding"}, bigRules...), []string{"memory_bytes", "key_memory_bytes_count", "big_keys", "top_key_memory_bytes", "top_key_elements", "key_elements_count"}},
		{"type", 255, append([]string{"loose_encoding"}, bigRules...), []string{"big_keys", "key_elements_count", "top_key_elements"}},
		{"pttl", 255, []string{"ttl_missing", "ttl_too_long", "ttl_clustered", "idle_permanent"}, []string{"ttl_seconds_count", "top_key_expiry_timestamp_seconds", "expiring_keys_peak", "idle_seconds_count"}},
		{"strlen", 255, []string{"big_string"}, nil},
		{"llen", 255, []string{"many_elements", "big_element"}, nil},
		{"hlen", 255, []string{"many_elements", "big_element", "loose_encoding"}, nil},
		{"scard", 255, []string{"many_elements", "big_element"}, nil},
		{"zcard", 255, []string{"many_elements", "big_element"}, nil},
		{"xlen", 255, []string{"many_elements"}, nil},
		{"scan", fault.Permission, nil, nil},
		{"select", fault.Config, nil, nil},
	} {
		t.Run("without "+tc.denied, func(t *testing.T) {
			rights := slices.DeleteFunc(slices.Clone(fullRights), func(r string) bool { return r == "+"+tc.denied })
			setUser(t, client, append(rights, "%R~*")...)
			if err := client.Do(t.Context(), "ACL", "LOG", "RESET").Err(); err != nil {
				t.Fatal(err)
			}
			r := newRig(t, userFlags(server.Addr()), nil)
			err := r.scanner.RunCycle(t.Context())
			if tc.abort != 255 {
				if fault.ReasonOf(err) != tc.abort || r.scanner.State().Snapshot != nil {
					t.Errorf("err = %v, snapshot %v", err, r.scanner.State().Snapshot)
				}
				if !r.status().Up {
					t.Error("a server that lets us in is up")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := r.metrics()
			var notEvaluated []string
			for _, id := range append([]string{"ttl_missing", "ttl_too_long", "ttl_clustered", "name_format", "loose_encoding", "idle_permanent"}, bigRules...) {
				if got[label("rule_evaluated", "rule="+id)] == 0 {
					notEvaluated = append(notEvaluated, id)
				}
			}
			slices.Sort(notEvaluated)
			if want := slices.Sorted(slices.Values(tc.notEvaluated)); !slices.Equal(notEvaluated, want) {
				t.Errorf("not evaluated: %v, want %v", notEvaluated, want)
			}
			for s := range got {
				name, _, _ := strings.Cut(s, "{")
				if slices.Contains(tc.absent, name) && !strings.Contains(s, "key_type=unknown") {
					t.Errorf("%s = %v without %s", s, got[s], tc.denied)
				}
				for _, id := range notEvaluated {
					if strings.HasPrefix(s, "rule_violations") && strings.Contains(s, "rule="+id+",") || strings.HasSuffix(s, "rule="+id+"}") && name == "rule_violations" {
						t.Errorf("%s = %v, but it is not evaluated", s, got[s])
					}
				}
			}
			// What remains is what it is with all rights.
			for s, v := range complete {
				name, _, _ := strings.Cut(s, "{")
				if v2, ok := got[s]; ok && v2 != v && (name == "rule_violations" || name == "naming_violation_ratio" || name == "memory_bytes" && tc.denied != "type") {
					t.Errorf("%s = %v, %v with all rights", s, v2, v)
				}
			}
			if tc.denied != "" && tc.denied != "dbsize" && got[label("capability", "command="+tc.denied)] != 0 {
				t.Errorf("capability of %s is not 0", tc.denied)
			}
			if tc.denied != "" && tc.denied != "dbsize" {
				if _, ok := got[label("capability", "command="+tc.denied)]; !ok {
					t.Errorf("no capability of %s", tc.denied)
				}
			}
			entries, err := client.Do(t.Context(), "ACL", "LOG").Slice()
			if err != nil {
				t.Fatal(err)
			}
			if n := len(entries); n > 1 || tc.denied == "" && n > 0 {
				t.Errorf("%d entries in the ACL LOG", n)
			}
		})
	}
}

// TestKeyPatternACL: SCAN names keys that the ACL closes to us. A few of them
// count as unknown; when there are many, the cycle ends and nothing is shown.
func TestKeyPatternACL(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	load(t, client, 0, small("app", 2000)...)
	load(t, client, 0, small("other", 50)...)
	setUser(t, client, append(slices.Clone(fullRights), "%R~app:*")...)
	r := newRig(t, userFlags(server.Addr()), nil)
	r.cycle()
	same(t, r.metrics(), map[string]float64{
		label("keys", "db=db0", "key_type=string"):      2000,
		label("keys", "db=db0", "key_type=unknown"):     50,
		label("scan_errors_total", "reason=permission"): 50,
	}, "keys", "scan_errors_total")

	setUser(t, client, append(slices.Clone(fullRights), "%R~other:*")...)
	r = newRig(t, userFlags(server.Addr()), nil)
	err := r.scanner.RunCycle(t.Context())
	if fault.ReasonOf(err) != fault.Permission || r.scanner.State().Snapshot != nil || !strings.Contains(err.Error(), "%R~*") {
		t.Errorf("err = %v, snapshot %v", err, r.scanner.State().Snapshot)
	}
	if n := r.status().Commands; n[0] > 3 {
		t.Errorf("%d pages before giving up", n[0])
	}
}

// TestRightsTakenAway: a right that goes within a cycle ends it, since half of
// its keys would be measured.
func TestRightsTakenAway(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	load(t, client, 0, small("user", 5000)...)
	setUser(t, client, append(slices.Clone(fullRights), "%R~*")...)
	r := newRig(t, userFlags(server.Addr()), slowly(5000))
	r.start()
	r.halfway()
	if err := client.Do(t.Context(), "ACL", "SETUSER", "keyhealth", "-memory|usage").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cycle ends", func() bool { return r.status().Aborts[fault.Permission] == 1 })
	if s := r.scanner.State().Snapshot; s != nil {
		t.Error("half of the keys were published")
	}
}

// TestPassword: a wrong one is `auth`, costs two failures at the most, and the
// right one works at the next try.
func TestPassword(t *testing.T) {
	server := testredis.Start(t, "--requirepass", password)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: password, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	load(t, client, 0, small("user", 10)...)
	for _, tc := range []struct {
		about string
		flags config.RedisFlags
	}{
		{"wrong", config.RedisFlags{Addr: server.Addr(), Password: "wrong"}},
		{"none", config.RedisFlags{Addr: server.Addr()}},
		{"wrong user", config.RedisFlags{Addr: server.Addr(), User: "nobody", Password: password}},
	} {
		if err := client.ConfigResetStat(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		r := newRig(t, tc.flags, nil)
		err := r.scanner.RunCycle(t.Context())
		if st := r.status(); fault.ReasonOf(err) != fault.Auth || st.Up || st.Aborts[fault.Auth] != 1 {
			t.Errorf("%s: err = %v, up %v", tc.about, err, st.Up)
		}
		if strings.Contains(err.Error(), password) {
			t.Errorf("%s: the error tells the password", tc.about)
		}
		text, _ := client.Info(t.Context(), "errorstats").Result()
		if strings.Contains(text, "WRONGPASS:count=3") {
			t.Errorf("%s: %s", tc.about, text)
		}
	}
	r := newRig(t, config.RedisFlags{Addr: server.Addr(), Password: password}, nil)
	if err := client.ConfigSet(t.Context(), "requirepass", "changed").Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.scanner.RunCycle(t.Context()); fault.ReasonOf(err) != fault.Auth {
		t.Errorf("err = %v", err)
	}
	if err := client.ConfigSet(t.Context(), "requirepass", password).Err(); err != nil {
		t.Fatal(err)
	}
	r.cycle()
	if st := r.status(); !st.Up || st.Cycles[snapshot.Complete] != 1 {
		t.Errorf("up %v, cycles %v", st.Up, st.Cycles)
	}
}
