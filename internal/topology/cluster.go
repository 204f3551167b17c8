package topology

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/scanner"
)

const (
	// maxShards is more than a cluster may have.
	maxShards = 1000

	// askedAtOnce is of how many shards the servers are asked at once.
	askedAtOnce = 8
)

// cluster is a Redis Cluster.
type cluster struct {
	cfg    config.Deployment
	guard  *guard
	seeds  []config.Redis    // the one that answered last comes first
	shards map[string]*shard // by the announced address of the primary
}

func newCluster(cfg config.Deployment, opts Options) *cluster {
	return &cluster{cfg: cfg, guard: newGuard(opts, cfg.Seeds), seeds: slices.Clone(cfg.Seeds)}
}

func (c *cluster) ID() keyspace.NodeID { return seedID(c.cfg) }

// Nodes asks the seeds in turns, and when none of them is left, the servers that
// were found.
func (c *cluster) Nodes(ctx context.Context) ([]scanner.Node, error) {
	var refusal error
	for i, seed := range c.seeds {
		layouts, err := c.askSlots(ctx, seed, nil)
		if err == nil {
			c.seeds = append([]config.Redis{seed}, slices.Delete(slices.Clone(c.seeds), i, i+1)...)
			return c.scan(ctx, layouts), nil
		}
		refusal = worst(refusal, "seed "+seed.Address, err)
	}
	if fault.ReasonOf(refusal) == fault.Auth {
		return nil, refusal // accounts get locked
	}
	for announced := range c.shards {
		address, by := c.guard.reach(announced)
		if layouts, err := c.askSlots(ctx, c.cfg.At(address), by); err == nil {
			return c.scan(ctx, layouts), nil
		}
	}
	return nil, refusal
}

func (c *cluster) askSlots(ctx context.Context, seed config.Redis, by *guard) (layouts []layout, err error) {
	n, seen := newNode(seed, keyspace.NodeID{}), func(net.Conn) {}
	if n.guard = by; by == nil {
		seen = c.guard.seen
	}
	err = n.ask(ctx, seen, func(conn *redis.Conn) error {
		reply := conn.Do(ctx, "cluster", "slots")
		if err := reply.Err(); err != nil {
			if strings.Contains(err.Error(), "cluster support disabled") {
				return fault.Newf(fault.Config, "it is part of no cluster: %w", err)
			}
			return err
		}
		host, _, _ := net.SplitHostPort(seed.Address)
		layouts, err = parseSlots(reply, host)
		if err == nil && len(layouts) == 0 {
			err = fault.Newf(fault.NotReady, "it knows of no slots: it was not added to a cluster yet, or has left it")
		}
		return err
	})
	return layouts, err
}

// scan settles for each shard which server is scanned.
func (c *cluster) scan(ctx context.Context, layouts []layout) []scanner.Node {
	last := c.shards
	c.shards = make(map[string]*shard, len(layouts))
	nodes := make([]scanner.Node, len(layouts))
	var asking sync.WaitGroup
	turns := make(chan struct{}, askedAtOnce)
	for i, l := range layouts {
		s := last[l.primary.address]
		if s == nil {
			s = &shard{cfg: c.cfg, guard: c.guard}
		}
		c.shards[l.primary.address] = s
		asking.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			var p *replication
			if c.cfg.Replicas && len(l.replicas) > 0 {
				if r, err := s.ask(ctx, l.primary.address); err == nil {
					p = r
				}
			}
			nodes[i] = s.scan(ctx, l, p)
		})
	}
	asking.Wait()
	return nodes
}

// slotsOf is what a server says that its own shard holds, in a reply to CLUSTER
// SLOTS; self is its name.
func slotsOf(reply *redis.Cmd, self string) (*keyspace.Slots, error) {
	if err := reply.Err(); err != nil {
		if reason, ok := replyReason(err); ok {
			return nil, fault.New(reason, err)
		}
		return nil, fault.New(fault.Protocol, err)
	}
	layouts, err := parseSlots(reply, "localhost") // nobody is going to dial it
	if err != nil {
		return nil, err
	}
	for _, l := range layouts {
		if slices.ContainsFunc(append(l.replicas, l.primary), func(m member) bool { return m.self == self }) {
			return l.slots, nil
		}
	}
	return &keyspace.Slots{}, nil
}

// parseSlots reads CLUSTER SLOTS: rows of first slot, last slot, the primary and
// its replicas. Who does not know its own host leaves it out: then it is the one
// that was asked.
func parseSlots(reply *redis.Cmd, asked string) ([]layout, error) {
	rows, err := reply.Slice()
	if err != nil || len(rows) > keyspace.NumSlots {
		return nil, fault.Newf(fault.Protocol, "reply of cluster slots: %d rows, %v", len(rows), err)
	}
	odd := fault.Newf(fault.Protocol, "reply of cluster slots: an odd row")
	var layouts []layout
	index := map[string]int{}
	for _, row := range rows {
		cells, _ := row.([]any)
		if len(cells) < 3 {
			return nil, odd
		}
		first, isNumber := cells[0].(int64)
		last, alsoNumber := cells[1].(int64)
		if !isNumber || !alsoNumber || first < 0 || last < first || last >= keyspace.NumSlots {
			return nil, odd
		}
		var members []member
		for _, cell := range cells[2:min(len(cells), 3+maxReplicas)] {
			m, ok := parseMember(cell, asked)
			if !ok {
				return nil, odd
			}
			members = append(members, m)
		}
		i, known := index[members[0].address]
		if !known {
			if i = len(layouts); i == maxShards {
				return nil, fault.Newf(fault.Protocol, "reply of cluster slots: more than %d shards", maxShards)
			}
			index[members[0].address] = i
			layouts = append(layouts, layout{primary: members[0], replicas: members[1:], slots: &keyspace.Slots{}})
		}
		layouts[i].slots.Add(int(first), int(last))
	}
	return layouts, nil
}

// parseMember reads a server: host, port, name, and since Redis 7 more about it.
// A host of "?" is a name that is not known; its IP is among the rest.
func parseMember(cell any, asked string) (member, bool) {
	words, _ := cell.([]any)
	if len(words) < 2 {
		return member{}, false
	}
	host, _ := words[0].(string) // or nil
	port, ok := words[1].(int64)
	if len(words) > 3 && (host == "?" || host == "") {
		if more, _ := words[3].([]any); len(more) >= 2 && more[0] == "ip" {
			host, _ = more[1].(string)
		}
	}
	if host == "" || host == "?" {
		host = asked
	}
	address, valid := config.AnnouncedAddress(host, strconv.FormatInt(port, 10))
	m := member{address: address, self: address}
	if len(words) > 2 {
		if self, _ := words[2].(string); self != "" && len(self) <= 64 {
			m.self = self
		}
	}
	return m, ok && valid
}
