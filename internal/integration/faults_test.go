package integration

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

// slowly makes a walk of some seconds, so that something can happen in it.
func slowly(keysPerSecond float64) func(*scanner.Options) {
	return func(o *scanner.Options) { o.MaxKeysPerSecond, o.Interval = keysPerSecond, 0 }
}

func (r *rig) strings(db int) float64 {
	snap := r.scanner.State().Snapshot
	for i := range snap.DBs {
		if snap.DBs[i].DB == db {
			return snap.DBs[i].Types[keyspace.String].Keys.Value
		}
	}
	return 0
}

// halfway waits until a good part of the running cycle is done.
func (r *rig) halfway() {
	r.t.Helper()
	eventually(r.t, "a cycle is under way", func() bool {
		st := r.status()
		return st.Scanning && 0.2 < st.Progress && st.Progress < 0.8
	})
}

// TestKilledMidCycle: a server that dies under the walk and comes back with
// other data from its RDB never makes a snapshot of both.
func TestKilledMidCycle(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	client := server.Client(t)
	const old, saved = 8000, 5000
	load(t, client, 0, small("saved", saved)...)
	if err := client.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	load(t, client, 0, small("old", old)...)

	r := newRig(t, flagsOf(server.Addr()), slowly(10_000))
	var snapshots []float64 // sizes of all that were published
	var last *snapshot.Snapshot
	look := func() {
		if s := r.scanner.State().Snapshot; s != nil && s != last {
			last = s
			snapshots = append(snapshots, r.strings(0))
		}
	}
	r.start()
	eventually(t, "a first cycle", func() bool { look(); return len(snapshots) > 0 })
	r.halfway()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is noticed", func() bool { look(); return !r.status().Up })
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a snapshot of the new data", func() bool { look(); return r.strings(0) == saved })
	for _, n := range snapshots {
		if n != old && n != saved {
			t.Errorf("a snapshot of %v keys: neither the old data nor the new", n)
		}
	}
	if st := r.status(); st.Aborts[fault.ConnLost] == 0 {
		t.Errorf("aborts %v", st.Aborts)
	}
}

// TestStopped: a server that hangs at any point is noticed within its deadline;
// after it goes on, a whole cycle follows on a new connection.
func TestStopped(t *testing.T) {
	for at, trigger := range map[string]string{ // what the server has just replied
		"the dial": "",
		"SCAN":     "cmdstat_",     // INFO, so that the first SCAN hangs
		"pipeline": "$6\r\nuser:1", // the first page, so that its probes hang
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			server := testredis.Start(t)
			load(t, server.Client(t), 0, small("user", 1000)...)
			proxy := testredis.StartProxy(t, server.Addr())
			var stopped atomic.Bool
			stop := func() {
				if !stopped.Swap(true) {
					if err := server.Pause(); err != nil {
						t.Error(err)
					}
				}
			}
			if trigger == "" {
				stop()
			} else {
				proxy.Garble(func(reply []byte) []byte {
					if bytes.Contains(reply, []byte(trigger)) {
						stop()
					}
					return reply
				})
			}
			r := newRig(t, flagsOf(proxy.Addr()), nil)
			r.start()
			eventually(t, "the hang is noticed", func() bool { return r.status().Aborts[fault.Timeout] > 0 })
			if st := r.status(); st.Up || r.scanner.State().Snapshot != nil {
				t.Errorf("up %v, snapshot %v", st.Up, r.scanner.State().Snapshot)
			}
			proxy.Garble(nil)
			if err := server.Resume(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a whole cycle", func() bool { return r.scanner.State().Snapshot != nil })
			if n := r.strings(0); n != 1000 || !r.status().Up {
				t.Errorf("%v keys, up %v", n, r.status().Up)
			}
		})
	}
}

// TestFlushedMidCycle: the figures of a walk that a FLUSHALL cut short are
// marked, raise no event, and are gone with the next cycle.
func TestFlushedMidCycle(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	client := server.Client(t)
	load(t, client, 0, small("user", 8000)...)
	r := newRig(t, flagsOf(server.Addr()), slowly(8000))
	r.start()
	eventually(t, "a first cycle", func() bool { return r.scanner.State().Snapshot != nil })
	for i := range 50 {
		load(t, client, 0, []any{"SET", fmt.Sprintf("big:%d", i), strings.Repeat("v", 20_000)})
	}
	eventually(t, "the big keys are news", func() bool {
		return r.scanner.State().BigKeys.New[keyspace.String][policy.Warning] == 50
	})
	r.halfway()
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an empty snapshot", func() bool { return len(r.scanner.State().Snapshot.DBs) == 0 })
	if st := r.status(); st.Cycles[snapshot.Suspect] != 1 {
		t.Errorf("cycles %v", st.Cycles)
	}
	eventually(t, "the end of the big keys is news", func() bool {
		return r.scanner.State().BigKeys.Resolved[keyspace.String][policy.Warning] == 50
	})
	for s := range r.metrics() {
		if strings.Contains(s, "db=db0") {
			t.Errorf("%s is still there", s)
		}
	}
}

// TestBusyScript: a script that blocks the server holds the walk up; the cursor
// lives on.
func TestBusyScript(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t, "--busy-reply-threshold", "50")
	client := server.Client(t)
	load(t, client, 0, small("user", 5000)...)
	r := newRig(t, flagsOf(server.Addr()), slowly(5000))
	r.start()
	r.halfway()
	script := server.Client(t)
	done := make(chan error, 1)
	go func() { done <- script.Eval(t.Context(), "while true do end", nil).Err() }()
	eventually(t, "the walk waits", func() bool { return r.status().KeyErrors[fault.PageBusy] > 0 })
	if !r.status().Up {
		t.Error("a server that says BUSY is up")
	}
	if err := client.ScriptKill(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-done
	eventually(t, "the cycle completes", func() bool { return r.status().Cycles[snapshot.Complete] > 0 })
	if n := r.strings(0); n != 5000 || r.status().Cycles[snapshot.Aborted] != 0 {
		t.Errorf("%v keys, cycles %v", n, r.status().Cycles)
	}
}

// TestVanishingKeys: keys that expire or go between SCAN and the probes are
// ordinary, and count as nothing but gone.
func TestVanishingKeys(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	client := server.Client(t)
	load(t, client, 0, small("stays", 2000)...)
	var commands [][]any
	for i := range 2000 {
		commands = append(commands, []any{"SET", fmt.Sprintf("goes:%d", i), "v", "PX", 1 + i})
	}
	load(t, client, 0, commands...)
	r := newRig(t, flagsOf(server.Addr()), slowly(3000))
	if err := r.scanner.RunCycle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.strings(0); n < 2000 || n > 3999 || r.status().Cycles[snapshot.Complete] != 1 {
		t.Errorf("%v keys, cycles %v: %v", n, r.status().Cycles, r.scanner.State().Snapshot.Suspect)
	}
	t.Logf("%d gone", r.status().KeyErrors[fault.Gone])
}

// TestNewBigKey: what grows big after the first cycle is news once, by name.
func TestNewBigKey(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	client := server.Client(t)
	load(t, client, 0, small("user", 500)...)
	load(t, client, 0, []any{"SET", "old:big", strings.Repeat("v", 6<<20)})
	r := newRig(t, flagsOf(server.Addr()), nil)
	r.cycle()
	load(t, client, 2, []any{"SET", "new:big", strings.Repeat("v", 20_000)})
	r.cycle()
	listed := []string{"db=db2", "namespace=default", "key_type=string", "severity=warning", "key=new:big"}
	families := []string{"new_big_keys_total", "resolved_big_keys_total", "big_key_memory_bytes", "big_key_elements", "tracked_big_keys"}
	bytes := float64(memoryUsage(t, client, 2, "new:big"))
	same(t, r.metrics(), map[string]float64{
		label("new_big_keys_total", "key_type=string", "severity=warning"): 1,
		label("big_key_memory_bytes", listed...):                           bytes,
		label("tracked_big_keys"):                                          2,
	}, families...)
	load(t, client, 2, []any{"APPEND", "new:big", strings.Repeat("v", 5<<20)})
	r.cycle()
	got := r.metrics()
	listed = []string{"db=db2", "namespace=default", "key_type=string", "severity=critical", "key=new:big"}
	same(t, got, map[string]float64{
		label("new_big_keys_total", "key_type=string", "severity=warning"):  1,
		label("new_big_keys_total", "key_type=string", "severity=critical"): 1,
		label("big_key_memory_bytes", listed...):                            float64(memoryUsage(t, client, 2, "new:big")),
		label("tracked_big_keys"):                                           2,
	}, families...)
	since := got[label("big_key_first_seen_timestamp_seconds", listed...)]
	if age := time.Since(time.Unix(int64(since), 0)); age < 0 || age > time.Minute {
		t.Errorf("first seen %v ago", age)
	}
	load(t, client, 2, []any{"DEL", "new:big"})
	r.cycle()
	same(t, r.metrics(), map[string]float64{
		label("new_big_keys_total", "key_type=string", "severity=warning"):       1,
		label("new_big_keys_total", "key_type=string", "severity=critical"):      1,
		label("resolved_big_keys_total", "key_type=string", "severity=critical"): 1,
		label("tracked_big_keys"): 2,
	}, families...)
	load(t, client, 2, []any{"SET", "new:big", strings.Repeat("v", 6<<20)})
	r.cycle()
	if v := r.metrics()[label("new_big_keys_total", "key_type=string", "severity=critical")]; v != 1 {
		t.Errorf("the same key back within 48 h is news again: %v", v)
	}
}
