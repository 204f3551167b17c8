package integration

import (
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

// TestWatchList: between two cycles that are an hour apart, the end, the growth
// and the shrinking of big keys show, in any database; and a big key that nobody
// uses gets no younger by being watched.
func TestWatchList(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	fields := []any{"HSET", "hash:1"}
	for range 1500 {
		fields = append(fields, len(fields), "v")
	}
	load(t, client, 0, []any{"SET", "string:1", strings.Repeat("v", 20_000)}, fields, []any{"SET", "unused:1", strings.Repeat("v", 20_000)})
	load(t, client, 3, []any{"SET", "other:1", strings.Repeat("v", 20_000)}, []any{"SET", "other:2", "v"})

	r := newRig(t, flagsOf(server.Addr()), func(o *scanner.Options) { o.Interval, o.WatchInterval = time.Hour, time.Second })
	r.start()
	eventually(t, "first cycle", func() bool { return r.status().Cycles[snapshot.Complete] == 1 })
	age := func() time.Duration { return client.ObjectIdleTime(t.Context(), "unused:1").Val() }
	eventually(t, "the unused key is 2 s old", func() bool { return age() >= 2*time.Second })
	if got := r.metrics()["watched_keys{}"]; got != 4 {
		t.Errorf("%v keys are watched", got)
	}

	load(t, client, 0, []any{"APPEND", "string:1", strings.Repeat("v", 6<<20)}, []any{"DEL", "hash:1"}, []any{"SADD", "hash:1", "a set now"})
	load(t, client, 3, []any{"SET", "other:1", "small"}, []any{"APPEND", "other:2", strings.Repeat("v", 20_000)})
	eventually(t, "what changed shows", func() bool {
		got := r.metrics()
		return got[label("new_big_keys_total", "key_type=string", "severity=critical")] == 1 &&
			got[label("resolved_big_keys_total", "key_type=string", "severity=warning")] == 1 &&
			got[label("resolved_big_keys_total", "key_type=hash", "severity=warning")] == 1
	})
	got := r.metrics()
	if bytes := got[label("big_key_memory_bytes", "db=db0", "namespace=default", "key_type=string", "severity=critical", "key=string:1")]; bytes < 6<<20 || bytes > 16<<20 {
		t.Errorf("the key that grew takes %v bytes", bytes)
	}
	if got["watched_keys{}"] != 2 || got[label("new_big_keys_total", "key_type=string", "severity=warning")] != 0 {
		t.Errorf("%v keys are watched", got["watched_keys{}"])
	}
	load(t, client, 0, []any{"DEL", "string:1"})
	eventually(t, "the end of the key shows", func() bool {
		got := r.metrics()
		return got[label("resolved_big_keys_total", "key_type=string", "severity=critical")] == 1 && got["watched_keys{}"] == 1
	})
	if n := r.status().Cycles[snapshot.Complete]; n != 1 {
		t.Errorf("%d cycles: the scan may have seen all that", n)
	}
	if a := age(); a < 3*time.Second {
		t.Errorf("the unused key looks used %v ago", a)
	}
}

// TestSlowLogHints: between two cycles an hour apart, the slow log leads to a key
// that became big; the commands that used it are not repeated, only its size is
// asked for. Queues that the policy names show from the first look on.
func TestSlowLogHints(t *testing.T) {
	server := testredis.Start(t, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "1000")
	client := server.Client(t)
	load(t, client, 2, []any{"SET", "a:1", "v"}, []any{"RPUSH", "queue:mail", "a", "b", "c"})
	rules, err := policy.New(policy.Spec{Watch: []policy.WatchedKey{{DB: 2, Name: "queue:mail"}, {Name: "queue:mail"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, flagsOf(server.Addr()), func(o *scanner.Options) {
		o.Policy, o.Interval, o.WatchInterval, o.SlowlogHints = rules, time.Hour, time.Second, true
	})
	r.start()
	elements := label("watched_key_elements", "db=db2", "namespace=default", "key_type=list", "key=queue:mail")
	eventually(t, "first cycle and look", func() bool { return r.status().Cycles[snapshot.Complete] == 1 && r.metrics()[elements] == 3 })
	load(t, client, 2, []any{"APPEND", "a:1", strings.Repeat("v", 20_000)}, []any{"GET", "a:1"}, []any{"LPOP", "queue:mail"})
	eventually(t, "the key is known to be big", func() bool {
		got := r.metrics()
		return got[label("new_big_keys_total", "key_type=string", "severity=warning")] == 1 && got["watched_keys{}"] == 1 && got[elements] == 2
	})
	if got := r.metrics()[label("watched_key_elements", "db=db0", "namespace=default", "key_type=unknown", "key=queue:mail")]; got != 0 {
		t.Errorf("a key that is not there has %v elements", got)
	}
	if n := r.status().Cycles[snapshot.Complete]; n != 1 {
		t.Errorf("%d cycles", n)
	}
}

// TestDrainedStream: a stream without entries is a key like any other, and may
// be large by its groups.
func TestDrainedStream(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	commands := [][]any{
		{"XGROUP", "CREATE", "groups:1", "g", 0, "MKSTREAM"},
		{"XADD", "jobs:1", "*", "f", "v"},
		{"XTRIM", "jobs:1", "MAXLEN", 0},
	}
	for i := range 10_000 {
		commands = append(commands, []any{"XGROUP", "CREATECONSUMER", "groups:1", "g", i})
	}
	load(t, client, 0, commands...)
	rules, err := policy.New(policy.Spec{Watch: []policy.WatchedKey{{Name: "jobs:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, flagsOf(server.Addr()), func(o *scanner.Options) { o.Policy, o.WatchInterval, o.Interval = rules, time.Second, 0 })
	r.start()
	watched := label("watched_key_elements", "db=db0", "namespace=default", "key_type=stream", "key=jobs:1")
	eventually(t, "a cycle and a look", func() bool {
		_, looked := r.metrics()[watched]
		return looked && r.status().Cycles[snapshot.Complete] > 0
	})
	got := r.metrics()
	for s, want := range map[string]float64{
		label("keys", "db=db0", "key_type=stream"):                                                        2,
		label("big_keys", "db=db0", "key_type=stream", "severity=warning"):                                1,
		label("rule_violations", "db=db0", "level=mandatory", "namespace=default", "rule=big_collection"): 1,
		label("scan_errors_total", "reason=gone"):                                                         0,
		watched: 0,
	} {
		if got[s] != want {
			t.Errorf("%s is %v, want %v", s, got[s], want)
		}
	}
}
