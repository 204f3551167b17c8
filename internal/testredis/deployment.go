package testredis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// deploymentTimeout is how long servers may take to find each other.
const deploymentTimeout = 30 * time.Second

// MasterName is under which name the sentinels of StartSentinels know the servers.
const MasterName = "orders"

// Sentinels is a primary with replicas, and the three sentinels that watch it.
type Sentinels struct {
	Servers   []*Server // the first one is the primary at the start
	Sentinels []*Server
}

// StartSentinels returns once the replicas follow and the sentinels know them and
// each other. password is the sentinels' own; "" = none.
func StartSentinels(t testing.TB, replicas int, password string, args ...string) *Sentinels {
	t.Helper()
	primary := Start(t, args...)
	d := &Sentinels{Servers: []*Server{primary}}
	port := strconv.Itoa(primary.Port())
	for range replicas {
		d.Servers = append(d.Servers, Start(t, append(args, "--replicaof", "127.0.0.1 "+port)...))
	}
	config := strings.Join([]string{
		"sentinel monitor " + MasterName + " 127.0.0.1 " + port + " 2",
		"sentinel down-after-milliseconds " + MasterName + " 1000",
		"sentinel failover-timeout " + MasterName + " 5000",
	}, "\n") + "\n"
	if password != "" {
		config += "requirepass " + password + "\nsentinel sentinel-pass " + password + "\n"
	}
	for range 3 {
		s, err := Launch(Options{Args: []string{"--sentinel"}, Config: config})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		d.Sentinels = append(d.Sentinels, s)
	}
	for i, s := range d.Sentinels {
		await(t, fmt.Sprintf("sentinel %d knows the others", i), func(ctx context.Context) bool {
			master := pairs(tell(ctx, s, password, "sentinel", "master", MasterName))
			return master["num-slaves"] == strconv.Itoa(replicas) && master["num-other-sentinels"] == "2" && master["flags"] == "master"
		})
	}
	for _, s := range d.Servers[1:] {
		await(t, "a replica follows", func(ctx context.Context) bool { return follows(ctx, s) })
	}
	return d
}

// Primary is the server that the sentinels name; nil = none of Servers.
func (d *Sentinels) Primary(t testing.TB, password string) *Server {
	t.Helper()
	for _, sentinel := range d.Sentinels {
		words, _ := tell(t.Context(), sentinel, password, "sentinel", "get-master-addr-by-name", MasterName).StringSlice()
		for _, s := range d.Servers {
			if len(words) == 2 && words[1] == strconv.Itoa(s.Port()) {
				return s
			}
		}
	}
	return nil
}

// Cluster is a Redis Cluster.
type Cluster struct {
	args      []string
	Primaries []*Server // each with the same share of the slots
	Replicas  []*Server // the i-th is of the i-th primary
}

// StartCluster returns once each of its servers finds the cluster whole. Each
// primary has one replica, unless replicas is false.
func StartCluster(t testing.TB, primaries int, replicas bool, args ...string) *Cluster {
	t.Helper()
	args = append([]string{
		"--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-config-file", "nodes.conf",
		"--repl-ping-replica-period", "1", "--cluster-allow-replica-migration", "no",
	}, args...)
	c := &Cluster{args: args}
	for range primaries {
		c.Primaries = append(c.Primaries, Start(t, args...))
		if replicas {
			c.Replicas = append(c.Replicas, Start(t, args...))
		}
	}
	first := strconv.Itoa(c.Primaries[0].Port())
	for i, s := range append(c.Primaries[1:len(c.Primaries):len(c.Primaries)], c.Replicas...) {
		c.must(t, tell(t.Context(), s, "", "cluster", "set-config-epoch", i+2))
		c.must(t, tell(t.Context(), s, "", "cluster", "meet", "127.0.0.1", first))
	}
	for i, s := range c.Primaries {
		c.must(t, tell(t.Context(), s, "", "cluster", "addslotsrange", i*16384/primaries, (i+1)*16384/primaries-1))
	}
	for i, s := range c.Replicas {
		id, err := tell(t.Context(), c.Primaries[i], "", "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		await(t, "a replica knows its primary", func(ctx context.Context) bool {
			return tell(ctx, s, "", "cluster", "replicate", id).Err() == nil
		})
	}
	for _, s := range append(c.Primaries[:primaries:primaries], c.Replicas...) {
		await(t, "the cluster is whole", func(ctx context.Context) bool {
			info, _ := tell(ctx, s, "", "cluster", "info").Text()
			nodes, _ := tell(ctx, s, "", "cluster", "slots").Slice()
			return strings.Contains(info, "cluster_state:ok") && len(nodes) == primaries && whole(nodes, replicas)
		})
	}
	for _, s := range c.Replicas {
		await(t, "a replica follows", func(ctx context.Context) bool { return follows(ctx, s) })
	}
	return c
}

// Add starts a server that becomes part of the cluster and holds no slots.
func (c *Cluster) Add(t testing.TB) *Server {
	t.Helper()
	s := Start(t, c.args...)
	c.must(t, tell(t.Context(), s, "", "cluster", "set-config-epoch", 100))
	c.must(t, tell(t.Context(), s, "", "cluster", "meet", "127.0.0.1", strconv.Itoa(c.Primaries[0].Port())))
	name, err := tell(t.Context(), s, "", "cluster", "myid").Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range c.Primaries {
		await(t, "the cluster knows the server", func(ctx context.Context) bool {
			nodes, _ := tell(ctx, known, "", "cluster", "nodes").Text()
			info, _ := tell(ctx, s, "", "cluster", "info").Text()
			return strings.Contains(nodes, name) && strings.Contains(info, "cluster_state:ok")
		})
	}
	return s
}

// whole tells whether each row of CLUSTER SLOTS names the servers that there are.
func whole(rows []any, replicas bool) bool {
	want := 3
	if replicas {
		want++
	}
	for _, row := range rows {
		if cells, _ := row.([]any); len(cells) != want {
			return false
		}
	}
	return true
}

// MoveSlot moves a slot with its keys to another server, as redis-cli does.
func (c *Cluster) MoveSlot(t testing.TB, slot int, from, to *Server) {
	t.Helper()
	ctx := t.Context()
	name := func(s *Server) string {
		id, err := tell(ctx, s, "", "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	source, target := name(from), name(to)
	c.must(t, tell(ctx, to, "", "cluster", "setslot", slot, "importing", source))
	c.must(t, tell(ctx, from, "", "cluster", "setslot", slot, "migrating", target))
	for {
		keys, err := tell(ctx, from, "", "cluster", "getkeysinslot", slot, 100).StringSlice()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", "127.0.0.1", to.Port(), "", 0, 5000, "keys"}
		for _, key := range keys {
			args = append(args, key)
		}
		c.must(t, tell(ctx, from, "", args...))
	}
	for _, s := range append([]*Server{to, from}, c.Primaries...) {
		c.must(t, tell(ctx, s, "", "cluster", "setslot", slot, "node", target))
	}
}

func (c *Cluster) must(t testing.TB, cmd *redis.Cmd) {
	t.Helper()
	if err := cmd.Err(); err != nil {
		t.Fatal(cmd, err)
	}
}

// tell sends one command over a connection of its own.
func tell(ctx context.Context, s *Server, password string, args ...any) *redis.Cmd {
	opts := options(s.Addr())
	opts.Password = password
	client := redis.NewClient(opts)
	defer client.Close()
	return client.Do(ctx, args...)
}

func follows(ctx context.Context, s *Server) bool {
	info, _ := tell(ctx, s, "", "info", "replication").Text()
	return strings.Contains(info, "master_link_status:up") && !strings.Contains(info, "master_sync_in_progress:1")
}

// pairs reads a list of names and values.
func pairs(reply *redis.Cmd) map[string]string {
	words, _ := reply.StringSlice()
	values := map[string]string{}
	for i := 0; i+1 < len(words); i += 2 {
		values[words[i]] = words[i+1]
	}
	return values
}

// await polls until what happens, or fails the test.
func await(t testing.TB, what string, happens func(context.Context) bool) {
	t.Helper()
	for start := time.Now(); !happens(t.Context()); {
		if time.Since(start) > deploymentTimeout {
			t.Fatalf("not within %v: %s", deploymentTimeout, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
