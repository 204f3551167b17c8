package topology

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/scanner"
)

const (
	// maxSilence and maxLag are how far behind a healthy replica may be: a primary
	// speaks to it every 10 s.
	maxSilence = 15 * time.Second
	maxLag     = 16 << 20 // bytes of the replication stream

	// settle is how long a replica must be healthy before it is preferred again: a
	// change ends the cycle that runs.
	settle = 5 * time.Minute
)

// member is a server of a shard.
type member struct {
	address string // announced
	self    string // its name in the cluster
}

// layout is what the topology says of a shard.
type layout struct {
	primary  member
	replicas []member
	slots    *keyspace.Slots
}

// shard settles which server of a shard is scanned.
type shard struct {
	cfg   config.Deployment
	guard *guard

	node    *node // nil = none yet
	primary string
	chosen  string    // announced address of node
	healthy time.Time // since when another replica could be chosen; zero = it could not
	refused map[string]refusal
}

// refusal is an answer to a password, which is not tried again at once: accounts
// get locked.
type refusal struct {
	err error
	at  time.Time
}

// replication is what a server says of its part in it.
type replication struct {
	role     string
	linked   bool
	silence  time.Duration // since the primary was last heard of
	offset   int64
	received bool // the data is whole
}

// scan is the node to scan, as the layout is now: the same as before if nothing
// about it changed. p is what the primary says, nil = it cannot be asked.
func (s *shard) scan(ctx context.Context, l layout, p *replication) *node {
	if s.primary != l.primary.address {
		s.primary, s.chosen, s.healthy = l.primary.address, "", time.Time{}
	}
	chosen, role := l.primary, "primary"
	if i := s.choose(ctx, l.replicas, p); s.cfg.Replicas && i >= 0 {
		chosen, role = l.replicas[i], "replica"
	}
	s.chosen = chosen.address
	where := &place{Shard: scanner.Shard{Slots: l.slots, Role: role, Replicas: len(l.replicas)}, self: chosen.self}
	id := keyspace.NodeID{Target: s.cfg.Target, Node: l.primary.address}
	if role == "replica" {
		where.primary = func() *node {
			primary := s.reach(l.primary.address, id)
			primary.place.Store(&place{Shard: scanner.Shard{Role: "primary"}})
			return primary
		}
	}
	address, _ := s.guard.reach(chosen.address)
	if s.node == nil || s.node.id != id || s.node.cfg.Address != address || s.node.Shard().Role != role {
		s.node = s.reach(chosen.address, id)
	}
	s.node.place.Store(where)
	return s.node
}

// choose picks the replica to scan; -1 = the primary is.
func (s *shard) choose(ctx context.Context, replicas []member, p *replication) int {
	if !s.cfg.Replicas {
		return -1
	}
	last := slices.IndexFunc(replicas, func(m member) bool { return m.address == s.chosen })
	if last >= 0 {
		r, err := s.ask(ctx, s.chosen)
		// While there is no primary, a replica is what is left of the data.
		if err == nil && r.role == "replica" && (p == nil || r.follows(p)) {
			return last
		}
	}
	found := slices.IndexFunc(replicas, func(m member) bool {
		if m.address == s.chosen {
			return false
		}
		r, err := s.ask(ctx, m.address)
		return err == nil && r.follows(p)
	})
	if found < 0 && p == nil && last >= 0 {
		return last
	}
	return s.prefer(found)
}

// prefer settles whether a healthy replica is taken, or -1: who scans the primary
// does so until the replica has been healthy for a while.
func (s *shard) prefer(found int) int {
	switch onPrimary := s.chosen == s.primary; {
	case found < 0:
		s.healthy = time.Time{}
	case onPrimary && s.healthy.IsZero():
		s.healthy = time.Now()
		return -1
	case onPrimary && time.Since(s.healthy) < settle:
		return -1
	}
	return found
}

// follows tells whether a replica is healthy; of the primary nil = nothing is
// known.
func (r *replication) follows(p *replication) bool {
	return r.role == "replica" && r.linked && r.received && r.silence <= maxSilence && (p == nil || p.offset-r.offset <= maxLag)
}

// reach is the node at an announced address.
func (s *shard) reach(announced string, id keyspace.NodeID) *node {
	address, by := s.guard.reach(announced)
	n := newNode(s.cfg.At(address), id)
	n.guard = by
	return n
}

// ask asks a server for its part in the replication.
func (s *shard) ask(ctx context.Context, announced string) (*replication, error) {
	if r, ok := s.refused[announced]; ok && time.Since(r.at) < fault.Auth.Wait() {
		return nil, r.err
	}
	var r *replication
	err := s.reach(announced, keyspace.NodeID{}).ask(ctx, func(net.Conn) {}, func(conn *redis.Conn) error {
		text, err := conn.Info(ctx, "replication").Result()
		r = parseReplication(text)
		return err
	})
	if err != nil && fault.ReasonOf(err) == fault.Auth {
		if s.refused == nil {
			s.refused = map[string]refusal{}
		}
		s.refused[announced] = refusal{err, time.Now()}
	}
	return r, err
}

// parseReplication reads that section of INFO.
func parseReplication(text string) *replication {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && len(fields) < maxFields {
			fields[name] = value
		}
	}
	number := func(name string) int64 {
		n, err := strconv.ParseInt(fields[name], 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	r := &replication{role: "primary", offset: number("master_repl_offset")}
	if fields["role"] != "master" {
		silence := number("master_last_io_seconds_ago")
		r.role, r.offset = "", number("slave_repl_offset")
		if fields["role"] == "slave" {
			r.role = "replica"
		}
		r.linked = fields["master_link_status"] == "up" && silence >= 0
		r.silence = time.Duration(min(silence, 1<<20)) * time.Second
		r.received = fields["master_sync_in_progress"] != "1"
	}
	return r
}
