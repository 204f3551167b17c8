package topology

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/scanner"
)

// maxPipelinedKeys is how many keys one pipeline may inspect: the rulebook's
// own limit (B, D, E). SCAN may return more than COUNT names.
const maxPipelinedKeys = 500

// probe is a row of what is asked of each key of a page: a new fact is a field
// in keyspace.Key and a row here.
type probe struct {
	fact keyspace.Facts
	cmd  keyspace.Command
	// read takes the reply into the key; false = there is no such key.
	read func(*keyspace.Key, *redis.Cmd) (exists bool, err error)
}

// probes are in the order in which they are sent. MEMORY USAGE comes first: it
// is the one that leaves no trace. TYPE decides on existence, as a replica
// gives a size of keys that have expired.
var probes = []probe{
	{keyspace.FactBytes, keyspace.CmdMemoryUsage, readBytes},
	{keyspace.FactType, keyspace.CmdType, readType},
	{keyspace.FactTTL, keyspace.CmdPTTL, readTTL},
}

func readBytes(k *keyspace.Key, reply *redis.Cmd) (bool, error) {
	if errors.Is(reply.Err(), redis.Nil) {
		return false, nil
	}
	n, err := reply.Int64()
	k.Bytes = max(n, 0)
	return true, err
}

func readType(k *keyspace.Key, reply *redis.Cmd) (bool, error) {
	name, err := reply.Text()
	k.Type = keyspace.ParseType(name)
	return name != "none", err
}

func readTTL(k *keyspace.Key, reply *redis.Cmd) (bool, error) {
	ms, err := reply.Int64()
	switch {
	case ms == -2:
		return false, err
	case ms < 0:
		k.TTL = keyspace.NoTTL
	default:
		k.TTL = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	return true, err
}

// Page inspects p.Keys and sends the SCAN last, in as few pipelines as the limit
// allows. The first key of a connection goes alone: what the account may not
// call is refused once, not a hundred times.
func (s *session) Page(ctx context.Context, p *scanner.Page) error {
	p.Problems, p.RoundTrips = p.Problems[:0], 0
	for range p.Keys {
		p.Problems = append(p.Problems, fault.NoProblem)
	}
	for from := 0; ; {
		to := min(from+s.chunk(p.Facts), len(p.Keys))
		last := to == len(p.Keys)
		if err := s.inspect(ctx, p, from, to, last && p.Scan); err != nil {
			return err
		}
		if from = to; last {
			return nil
		}
	}
}

// chunk is how many keys the next pipeline may hold.
func (s *session) chunk(facts keyspace.Facts) int {
	for _, probe := range probes {
		if facts&probe.fact != 0 && s.capabilities[probe.cmd] == snapshot.Untried {
			return 1
		}
	}
	return maxPipelinedKeys
}

// inspect sends one pipeline for the keys from..to, and the SCAN if it is time.
func (s *session) inspect(ctx context.Context, p *scanner.Page, from, to int, scan bool) error {
	b := s.batch()
	var asked []probe
	for _, probe := range probes {
		if p.Facts&probe.fact != 0 && !s.denied(probe.cmd) {
			asked = append(asked, probe)
		}
	}
	replies := make([]*redis.Cmd, 0, (to-from)*len(asked))
	for i := from; i < to; i++ {
		k := &p.Keys[i]
		k.Known = 0
		if k.Oversized() {
			p.Problems[i] = fault.OversizedName
			continue
		}
		for _, probe := range asked {
			replies = append(replies, b.add(ctx, probe.cmd, k.Name))
		}
	}
	var scanned *redis.Cmd
	if scan {
		scanned = b.add(ctx, keyspace.CmdScan, strconv.FormatUint(p.Cursor, 10), "count", p.Count)
	}
	if len(replies) == 0 && !scan {
		return nil
	}
	p.RoundTrips++
	if err := b.exec(ctx); err != nil {
		return err
	}
	for i := from; i < to; i++ {
		if p.Problems[i] != fault.NoProblem {
			continue
		}
		var err error
		if p.Problems[i], err = s.read(&p.Keys[i], asked, replies[:len(asked)]); err != nil {
			return err
		}
		replies = replies[len(asked):]
	}
	if !scan {
		return nil
	}
	return s.readScan(p, scanned)
}

// read takes the replies about one key.
func (s *session) read(k *keyspace.Key, asked []probe, replies []*redis.Cmd) (fault.KeyProblem, error) {
	worst := fault.NoProblem
	for i, probe := range asked {
		problem, err := s.learn(probe.cmd, replies[i].Err())
		if err != nil {
			return 0, err
		}
		if problem != fault.NoProblem {
			worst = problem
			continue
		}
		if s.denied(probe.cmd) {
			continue
		}
		exists, err := probe.read(k, replies[i])
		if err != nil {
			return 0, fault.Newf(fault.Protocol, "reply of %s: %w", probe.cmd, err)
		}
		if !exists {
			k.Known = 0
			return fault.Gone, nil
		}
		k.Known |= probe.fact
	}
	return worst, nil
}

// readScan takes the reply of SCAN: a cursor and names.
func (s *session) readScan(p *scanner.Page, reply *redis.Cmd) error {
	if err := reply.Err(); err != nil {
		return classify(err)
	}
	s.capabilities[keyspace.CmdScan] = snapshot.Allowed
	parts, err := reply.Slice()
	if err != nil || len(parts) != 2 {
		return fault.Newf(fault.Protocol, "SCAN did not reply with a cursor and names")
	}
	text, _ := parts[0].(string)
	names, ok := parts[1].([]any)
	cursor, err := strconv.ParseUint(text, 10, 64)
	if err != nil || !ok {
		return fault.Newf(fault.Protocol, "SCAN did not reply with a cursor and names")
	}
	p.Next, p.NextCursor = p.Next[:0], cursor
	for _, n := range names {
		name, ok := n.(string)
		if !ok {
			return fault.Newf(fault.Protocol, "SCAN replied with a name that is a %T", n)
		}
		k := keyspace.Key{DB: p.DB, Name: name, NameBytes: int64(len(name)), Hash: keyspace.HashName(name)}
		if k.Oversized() {
			// Cloned, since a cut would keep all of it in memory.
			k.Name = strings.Clone(name[:keyspace.MaxNameBytes])
		}
		p.Next = append(p.Next, k)
	}
	return nil
}

// Lengths asks each key for its length, which its type must be known for.
func (s *session) Lengths(ctx context.Context, keys []*keyspace.Key, problems []fault.KeyProblem) error {
	for len(keys) > 0 {
		n := min(len(keys), maxPipelinedKeys)
		if err := s.lengths(ctx, keys[:n], problems[:n]); err != nil {
			return err
		}
		keys, problems = keys[n:], problems[n:]
	}
	return nil
}

func (s *session) lengths(ctx context.Context, keys []*keyspace.Key, problems []fault.KeyProblem) error {
	b := s.batch()
	replies := make([]*redis.Cmd, len(keys))
	for i, k := range keys {
		if cmd, ok := keyspace.LengthCommand(k.Type); ok && !s.denied(cmd) {
			replies[i] = b.add(ctx, cmd, k.Name)
		}
	}
	if b.pipe.Len() == 0 {
		return nil
	}
	if err := b.exec(ctx); err != nil {
		return err
	}
	for i, reply := range replies {
		if reply == nil {
			continue
		}
		cmd, _ := keyspace.LengthCommand(keys[i].Type)
		var err error
		if problems[i], err = s.learn(cmd, reply.Err()); err != nil {
			return err
		}
		if problems[i] != fault.NoProblem || s.denied(cmd) {
			continue
		}
		n, err := reply.Int64()
		if err != nil {
			return fault.New(fault.Protocol, fmt.Errorf("reply of %s: %w", cmd, err))
		}
		if n == 0 {
			// No key has a length of 0 but the empty string, which is no candidate.
			problems[i] = fault.Gone
			continue
		}
		keys[i].Length = n
		keys[i].Known |= keyspace.FactLength
	}
	return nil
}
