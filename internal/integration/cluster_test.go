package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

// clusterClient writes to whichever server holds a key.
func clusterClient(t *testing.T, c *testredis.Cluster) *redis.ClusterClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.Primaries[0].Addr()}, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { client.Close() })
	return client
}

func loadCluster(t *testing.T, client *redis.ClusterClient, commands ...[]any) {
	t.Helper()
	pipe := client.Pipeline()
	for _, c := range commands {
		pipe.Do(t.Context(), c...)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func addresses(servers []*testredis.Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

var clusterTotals = []string{
	label("keys", "db=db0", "key_type=string"),
	label("memory_bytes", "db=db0", "key_type=string"),
	label("big_keys", "db=db0", "key_type=string", "severity=warning"),
}

// TestClusterFailover: every shard is scanned, on its replica; the sums are the
// truth, and stay so when a primary dies; nothing is new.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 3, true)
	client := clusterClient(t, c)
	loadCluster(t, client, append(small("user", 3000), bigKeys("big", 20)...)...)
	f := newFleet(t, config.RedisFlags{Addr: c.Primaries[0].Addr()}, func(o *scanner.Options) { o.Concurrency = 2 })
	f.scanned(addresses(c.Primaries)...)
	for i, p := range c.Primaries {
		n := f.node(p.Addr())
		if n.Status.Info.Address != c.Replicas[i].Addr() || n.Status.Info.Role != "replica" {
			t.Errorf("of %s is scanned: %+v", p.Addr(), n.Status.Info)
		}
		if n.Status.KeyErrors[fault.Moved] != 0 {
			t.Errorf("%d keys are elsewhere", n.Status.KeyErrors[fault.Moved])
		}
	}
	before := f.sums()
	for s, want := range map[string]float64{
		clusterTotals[0]: 3020, clusterTotals[2]: 20,
		label("topology_nodes", "role=primary"): 3, label("topology_nodes", "role=replica"): 3,
	} {
		if before[s] != want {
			t.Errorf("%s is %v, want %v", s, before[s], want)
		}
	}

	if err := c.Primaries[0].Kill(); err != nil { // the seed, too
		t.Fatal(err)
	}
	f.scanned(c.Replicas[0].Addr(), c.Primaries[1].Addr(), c.Primaries[2].Addr())
	if role := f.node(c.Replicas[0].Addr()).Status.Info.Role; role != "primary" {
		t.Errorf("of the promoted server's shard a %s is scanned", role)
	}
	after := f.sums()
	for _, s := range clusterTotals {
		if before[s] != after[s] {
			t.Errorf("%s was %v and is %v", s, before[s], after[s])
		}
	}
	if entered, resolved := f.events(); entered != 0 || resolved != 0 {
		t.Errorf("%v new, %v resolved", entered, resolved)
	}
	loadCluster(t, clusterClient(t, &testredis.Cluster{Primaries: c.Primaries[1:]}), bigKeys("later", 10)...)
	eventually(t, "news", func() bool { entered, _ := f.events(); return entered == 10 })
}

// TestClusterReshard: slots that move during a cycle make it suspect; wherever
// they are afterwards, the sums are the truth, and nothing is new or resolved.
func TestClusterReshard(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 2, false)
	client := clusterClient(t, c)
	var slots []int
	for _, key := range bigKeys("big", 20) {
		if slot := int(keyspace.SlotOf(key[1].(string))); slot < 8192 {
			slots = append(slots, slot)
		}
	}
	loadCluster(t, client, append(small("user", 2000), bigKeys("big", 20)...)...)
	f := newFleet(t, config.RedisFlags{Addr: strings.Join(addresses(c.Primaries), ",")}, func(o *scanner.Options) { o.MaxKeysPerSecond = 500 })
	f.scanned(addresses(c.Primaries)...)
	before := f.sums()
	if before[clusterTotals[0]] != 2020 {
		t.Errorf("%v keys", before[clusterTotals[0]])
	}
	eventually(t, "a cycle", func() bool { s := f.node(c.Primaries[0].Addr()).Status; return s.Scanning && s.Progress > 0.2 })
	for _, slot := range slots {
		c.MoveSlot(t, slot, c.Primaries[0], c.Primaries[1])
	}
	eventually(t, "a suspect cycle", func() bool { return f.sums()[label("scan_cycles_total", "result=suspect")] > 0 })
	for range 2 { // the second one is all behind the move
		f.scanned(addresses(c.Primaries)...)
	}
	after := f.sums()
	for _, s := range clusterTotals {
		if before[s] != after[s] {
			t.Errorf("%s was %v and is %v", s, before[s], after[s])
		}
	}
	if entered, resolved := f.events(); entered != 0 || resolved != 0 {
		t.Errorf("%v new, %v resolved; %d slots of big keys moved", entered, resolved, len(slots))
	}
	if n := f.sums()[label("scan_aborts_total", "reason=topology")]; n > 1 { // that of finding out that it is a cluster
		t.Errorf("%v aborts", n)
	}
	loadCluster(t, client, []any{"DEL", "big:0"}, []any{"DEL", "big:1"})
	eventually(t, "the end of two", func() bool { _, resolved := f.events(); return resolved == 2 })
}

// TestClusterGrowsAndShrinks: who gets slots is scanned, who has none any more
// takes its series along.
func TestClusterGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 2, false)
	first, second, third := c.Primaries[0], c.Primaries[1], c.Add(t)
	const slot = 12182 // of the second
	loadCluster(t, clusterClient(t, c), []any{"SET", "{foo}:1", strings.Repeat("x", 20_000)})
	f := newFleet(t, config.RedisFlags{Addr: first.Addr(), Mode: "cluster"}, nil)
	f.scanned(first.Addr(), second.Addr())
	c.MoveSlot(t, slot, second, third)
	f.scanned(first.Addr(), second.Addr(), third.Addr())
	if big := f.sums()[clusterTotals[2]]; big != 1 {
		t.Errorf("%v big keys", big)
	}
	if entered, resolved := f.events(); entered != 0 || resolved != 0 {
		t.Errorf("%v new, %v resolved", entered, resolved)
	}
	c.MoveSlot(t, slot, third, second)
	f.scanned(first.Addr(), second.Addr())
	if entered, resolved := f.events(); entered != 0 || resolved != 0 {
		t.Errorf("back: %v new, %v resolved", entered, resolved)
	}
}

func TestClusterMistakes(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	lonely := testredis.Start(t, "--cluster-enabled", "yes")
	for about, tc := range map[string]struct {
		flags  config.RedisFlags
		reason fault.Reason
		says   string
	}{
		"no cluster": {config.RedisFlags{Addr: server.Addr(), Mode: "cluster"}, fault.Config, "part of no cluster"},
		"no slots":   {config.RedisFlags{Addr: lonely.Addr(), Mode: "cluster"}, fault.NotReady, "knows of no slots"},
		"nobody":     {config.RedisFlags{Addr: "127.0.0.1:1,127.0.0.1:2"}, fault.Down, "refused"},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, tc.flags, nil)
			eventually(t, "an abort", func() bool { return f.States()[0].Status.Aborts[tc.reason] > 0 })
			time.Sleep(100 * time.Millisecond)
			if lines := f.logs.String(); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, tc.says) || !strings.Contains(lines, "reason="+tc.reason.String()) {
				t.Errorf("logged:\n%s", lines)
			}
		})
	}
}
