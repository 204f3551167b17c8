package integration

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/testredis"
)

// TestReadOnly: what a cycle sends is on the short list and changes nothing.
func TestReadOnly(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	load(t, client, 0, small("user", 1000)...)
	load(t, client, 3, small("user", 1000)...)
	load(t, client, 3, fixed("user", 20)...)
	for _, typ := range append([]string{"string"}, collections...) {
		load(t, client, 0, create(key{name: typ + ":big", typ: typ, length: 12_000})...)
	}
	digest := func() string {
		return fmt.Sprint(infoField(t, client, "persistence", "rdb_changes_since_last_save"), infoField(t, client, "replication", "master_repl_offset"))
	}
	before := digest()
	if err := client.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, flagsOf(server.Addr()), nil)
	r.cycle()

	allowed := []string{"hello", "config|resetstat"} // the handshake, and ours of this test
	for _, cmd := range keyspace.Commands() {
		allowed = append(allowed, cmd.String())
	}
	sent := commandCalls(t, client)
	for cmd := range sent {
		if !slices.Contains(allowed, cmd) {
			t.Errorf("%s was sent", cmd)
		}
	}
	for _, cmd := range []keyspace.Command{keyspace.CmdScan, keyspace.CmdMemoryUsage, keyspace.CmdType, keyspace.CmdPTTL, keyspace.CmdXlen, keyspace.CmdStrlen, keyspace.CmdObjectEncoding, keyspace.CmdObjectIdletime} {
		// What we say that we sent is what the server counted.
		if own := r.status().Commands[cmd]; own == 0 && cmd != keyspace.CmdPTTL || int64(own) != sent[cmd.String()] {
			t.Errorf("%s: %d by our count, %d by the server's", cmd, own, sent[cmd.String()])
		}
	}
	if n := sent["pttl"]; n != 0 {
		t.Errorf("%d PTTL where INFO says that nothing expires", n)
	}
	if after := digest(); after != before {
		t.Errorf("changes and replication offset went from %s to %s", before, after)
	}
	t.Logf("sent: %v", slices.Sorted(maps.Keys(sent)))
}

// TestNoTrace: idle times and LFU counters are what they were. Before Redis 7.2
// there is no NO-TOUCH, so the candidates pay for their length; `capability`
// says so.
func TestNoTrace(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu"} {
		t.Run(policy, func(t *testing.T) {
			server := testredis.Start(t, "--maxmemory", "1gb", "--maxmemory-policy", policy, "--lfu-decay-time", "0")
			client := server.Client(t)
			var watched []string
			for i := range 200 {
				watched = append(watched, fmt.Sprintf("user:%d", i))
			}
			for _, typ := range collections {
				watched = append(watched, typ+":small")
				load(t, client, 0, create(key{name: typ + ":small", typ: typ, length: 5})...)
			}
			load(t, client, 0, small("user", 200)...)
			for _, cmd := range fixed("sample", 20) { // they are asked for what is watched
				watched = append(watched, cmd[1].(string))
				load(t, client, 0, cmd)
			}
			load(t, client, 0, create(key{name: "hash:big", typ: "hash", length: 2000})...)

			subcommand, least := "IDLETIME", int64(2)
			if policy == "allkeys-lfu" {
				subcommand, least = "FREQ", 1
			}
			look := func(name string) int64 {
				n, err := client.Do(t.Context(), "OBJECT", subcommand, name).Int64()
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			eventually(t, "keys grow old", func() bool { return look(watched[0]) >= least && look("hash:big") >= least })
			before := map[string]int64{}
			for _, name := range watched {
				before[name] = look(name)
			}
			r := newRig(t, flagsOf(server.Addr()), nil)
			for range 3 {
				r.cycle()
			}
			for _, name := range watched {
				if after := look(name); after < before[name] || policy == "allkeys-lfu" && after != before[name] {
					t.Errorf("%s: %s went from %d to %d", name, subcommand, before[name], after)
				}
			}
			noTouch := r.metrics()[label("capability", "command=client|no-touch")]
			touched := policy == "allkeys-lru" && look("hash:big") < least
			if noTouch == 1 && touched {
				t.Error("NO-TOUCH is on, yet the candidate was touched")
			}
			t.Logf("NO-TOUCH %v, candidate touched %v", noTouch, touched)
		})
	}
}

// commandCalls reads INFO commandstats.
func commandCalls(t *testing.T, client *redis.Client) map[string]int64 {
	t.Helper()
	text, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, stats, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		n, _, _ := strings.Cut(stats, ",")
		calls[name], err = strconv.ParseInt(n, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
	}
	return calls
}

// memoryUsage asks for the size of a key.
func memoryUsage(t *testing.T, client *redis.Client, db int, name string) int64 {
	t.Helper()
	conn := client.Conn()
	defer conn.Close()
	pipe := conn.Pipeline()
	pipe.Select(t.Context(), db)
	size := pipe.MemoryUsage(t.Context(), name)
	pipe.Select(t.Context(), 0)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	return size.Val()
}

// infoField reads a number of INFO.
func infoField(t *testing.T, client *redis.Client, section, field string) int64 {
	t.Helper()
	text, err := client.Info(t.Context(), section).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatal(errors.Join(err, errors.New(line)))
			}
			return n
		}
	}
	t.Fatalf("INFO %s has no %s", section, field)
	return 0
}
