package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/scanner"
)

// sentinels is a deployment whose primary sentinels know.
type sentinels struct {
	shard
	seeds []config.Redis // the one that answered last comes first
}

func newSentinels(cfg config.Deployment, opts Options) *sentinels {
	return &sentinels{
		shard: shard{cfg: cfg, guard: newGuard(opts, cfg.Seeds)},
		seeds: slices.Clone(cfg.Seeds),
	}
}

func (s *sentinels) ID() keyspace.NodeID { return seedID(s.cfg) }

// Nodes asks the sentinels in turns until one names a server that says itself that
// it is the primary: another one may be cut off from the rest. Where none does,
// the first answer must do.
func (s *sentinels) Nodes(ctx context.Context) ([]scanner.Node, error) {
	var (
		first   *layout
		refusal error
		asked   = map[string]bool{} // primaries: one that is gone costs a timeout
	)
	for i, seed := range s.seeds {
		l, err := s.askSentinel(ctx, seed)
		if err != nil {
			refusal = worst(refusal, "sentinel "+seed.Address, err)
			continue
		}
		if asked[l.primary.address] {
			continue
		}
		asked[l.primary.address] = true
		p, err := s.ask(ctx, l.primary.address)
		if err == nil && p.role == "primary" {
			s.seeds = append([]config.Redis{seed}, slices.Delete(slices.Clone(s.seeds), i, i+1)...)
			return []scanner.Node{s.scan(ctx, *l, p)}, nil
		}
		if first == nil {
			first = l
		}
	}
	if first == nil {
		return nil, refusal
	}
	return []scanner.Node{s.scan(ctx, *first, nil)}, nil
}

// worst is what to report when nobody answers: rather what one said than that
// another was not there.
func worst(before error, who string, err error) error {
	if before != nil && (told(before) || !told(err)) {
		return before
	}
	return fault.New(fault.ReasonOf(err), fmt.Errorf("%s: %w", who, err))
}

func told(err error) bool {
	switch fault.ReasonOf(err) {
	case fault.Down, fault.Timeout, fault.ConnLost:
		return false
	}
	return true
}

func (s *sentinels) askSentinel(ctx context.Context, seed config.Redis) (*layout, error) {
	l := &layout{}
	err := newNode(seed, keyspace.NodeID{}).ask(ctx, s.guard.seen, func(conn *redis.Conn) error {
		primary, err := conn.Do(ctx, "sentinel", sentinelMaster, s.cfg.Master).StringSlice()
		switch {
		case errors.Is(err, redis.Nil):
			return fault.Newf(fault.Config, "knows no master named %q", s.cfg.Master)
		case err != nil && strings.HasPrefix(err.Error(), "ERR unknown command"):
			return fault.Newf(fault.Config, "is none: %w", err)
		case err != nil:
			return err
		case len(primary) != 2:
			return fault.Newf(fault.Protocol, "names the master in %d words", len(primary))
		}
		var ok bool
		if l.primary.address, ok = config.AnnouncedAddress(primary[0], primary[1]); !ok {
			return fault.Newf(fault.Protocol, "names no host:port as the master")
		}
		rows, err := conn.Do(ctx, "sentinel", sentinelReplicas, s.cfg.Master).Slice()
		if err != nil && strings.HasPrefix(err.Error(), "ERR Unknown sentinel subcommand") {
			rows, err = conn.Do(ctx, "sentinel", sentinelSlaves, s.cfg.Master).Slice()
		}
		if reason, _ := replyReason(err); reason == fault.Permission {
			return nil // the primary is known
		}
		l.replicas = liveReplicas(rows)
		return err
	})
	return l, err
}

// maxReplicas is how many of a shard are looked at.
const maxReplicas = 100

// liveReplicas reads SENTINEL REPLICAS. Those that the sentinel cannot reach are
// left out: it never forgets one.
func liveReplicas(rows []any) []member {
	var live []member
	for _, row := range rows {
		pairs, ok := row.([]any)
		if !ok || len(live) == maxReplicas {
			continue
		}
		fields := map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			name, _ := pairs[i].(string)
			fields[name], _ = pairs[i+1].(string)
		}
		down := slices.ContainsFunc(strings.Split(fields["flags"], ","), func(flag string) bool {
			return flag == "s_down" || flag == "o_down" || flag == "disconnected"
		})
		address, ok := config.AnnouncedAddress(fields["ip"], fields["port"])
		if ok && !down {
			live = append(live, member{address: address})
		}
	}
	slices.SortFunc(live, func(a, b member) int { return strings.Compare(a.address, b.address) })
	return live
}
