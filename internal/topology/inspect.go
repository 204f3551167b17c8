package topology

import (
	"context"
	"errors"
	"math"
	"time"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/resp"
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
	read func(*keyspace.Key, *resp.Reader) (exists bool, err error)
}

// probes are in the order in which they are sent. MEMORY USAGE comes first: it
// is the one that leaves no trace. TYPE decides on existence, as a replica
// gives a size of keys that have expired.
var probes = []probe{
	{keyspace.FactBytes, keyspace.CmdMemoryUsage, readBytes},
	{keyspace.FactType, keyspace.CmdType, readType},
	{keyspace.FactTTL, keyspace.CmdPTTL, readTTL},
}

func readBytes(k *keyspace.Key, reply *resp.Reader) (bool, error) {
	n, err := reply.Int()
	k.Bytes = max(n, 0)
	return !errors.Is(err, resp.ErrNil), err
}

func readType(k *keyspace.Key, reply *resp.Reader) (bool, error) {
	name, err := reply.Status()
	if err != nil {
		return true, err
	}
	k.Type = keyspace.ParseType(string(name))
	return string(name) != "none", nil
}

func readTTL(k *keyspace.Key, reply *resp.Reader) (bool, error) {
	ms, err := reply.Int()
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
	if err := s.use(ctx, s.home); err != nil {
		return err // a look into other databases was cut short
	}
	p.Problems, p.Next, p.RoundTrips = p.Problems[:0], p.Next[:0], 0
	s.keys = s.keys[:0]
	var facts keyspace.Facts
	for i := range p.Keys {
		k := &p.Keys[i]
		k.Known = 0
		s.keys = append(s.keys, k)
		problem := fault.NoProblem
		if k.Oversized() {
			problem = fault.OversizedName
		} else {
			facts |= p.Wants[i]
		}
		p.Problems = append(p.Problems, problem)
	}
	for from := 0; ; {
		to := min(from+s.chunk(facts), len(p.Keys))
		last := to == len(p.Keys)
		scan := p
		if !last || !p.Scan {
			scan = nil
		}
		sent, err := s.inspect(s.keys[from:to], p.Wants[from:to], p.Problems[from:to], scan)
		if err != nil {
			return err
		}
		if sent {
			p.RoundTrips++
		}
		if from = to; last {
			return nil
		}
	}
}

// Inspect fetches the same facts of each key.
func (s *session) Inspect(ctx context.Context, keys []*keyspace.Key, facts keyspace.Facts, problems []fault.KeyProblem) error {
	if len(keys) == 0 {
		return nil
	}
	if err := s.use(ctx, keys[0].DB); err != nil {
		return err
	}
	s.wants = s.wants[:0]
	for range keys {
		s.wants = append(s.wants, facts)
	}
	for from := 0; from < len(keys); {
		to := min(from+s.chunk(facts), len(keys))
		if _, err := s.inspect(keys[from:to], s.wants[from:to], problems[from:to], nil); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// chunk is how many keys the next pipeline may hold.
func (s *session) chunk(facts keyspace.Facts) int {
	for i := range probes {
		if facts&probes[i].fact != 0 && s.capabilities[probes[i].cmd] == snapshot.Untried {
			return 1
		}
	}
	return maxPipelinedKeys
}

// inspect sends one pipeline of probes and, if there is a page to scan, its
// SCAN; false = there was nothing to send. Keys that have a problem are left out.
func (s *session) inspect(keys []*keyspace.Key, wants []keyspace.Facts, problems []fault.KeyProblem, scan *scanner.Page) (sent bool, err error) {
	// What is asked is settled before: a command may be found denied meanwhile.
	var allowed keyspace.Facts
	for i := range probes {
		if !s.denied(probes[i].cmd) {
			allowed |= probes[i].fact
		}
	}
	w := s.wire
	w.writer.Reset()
	for i, k := range keys {
		if problems[i] != fault.NoProblem {
			continue
		}
		for j := range probes {
			if allowed&wants[i]&probes[j].fact != 0 {
				s.askKey(probes[j].cmd, k.Name)
			}
		}
	}
	if scan != nil {
		s.askScan(scan.Cursor, scan.Count)
	}
	if w.writer.Len() == 0 {
		return false, nil
	}
	if err := w.send(); err != nil {
		return true, err
	}
	r := replies{s: s}
	for i, k := range keys {
		if problems[i] != fault.NoProblem {
			continue
		}
		if problems[i], err = r.key(k, allowed&wants[i]); err != nil {
			return true, err
		}
	}
	if scan != nil {
		if err := r.scan(scan); err != nil {
			return true, err
		}
	}
	return true, r.end()
}

// key takes the replies about one key.
func (r *replies) key(k *keyspace.Key, asked keyspace.Facts) (worst fault.KeyProblem, broken error) {
	gone := false
	for i := range probes {
		p := &probes[i]
		if asked&p.fact == 0 {
			continue
		}
		exists, err := p.read(k, r.s.wire.reader)
		problem, usable, broken := r.take(p.cmd, err)
		switch {
		case broken != nil:
			return 0, broken
		case problem != fault.NoProblem:
			worst = problem
		case usable && !exists:
			gone = true
		case usable:
			k.Known |= p.fact
		}
	}
	if gone {
		k.Known = 0
		return fault.Gone, nil
	}
	return worst, nil
}

// scan takes the reply of SCAN: a cursor and names.
func (r *replies) scan(p *scanner.Page) error {
	names := &r.s.wire.page
	switch err := r.s.wire.reader.Scan(names, keyspace.MaxNameBytes); {
	case isReply(err):
		if reason, _ := replyReason(err); reason == fault.Permission || reason == fault.Unsupported {
			r.s.capabilities[keyspace.CmdScan] = snapshot.Denied
		}
		r.keep(classify(err))
		return nil
	case err != nil:
		return classify(err)
	}
	r.s.capabilities[keyspace.CmdScan] = snapshot.Allowed
	p.Next, p.NextCursor = p.Next[:0], names.Cursor
	text := string(names.Arena) // the one allocation of a page
	for _, n := range names.Names {
		k := keyspace.Key{DB: p.DB, Name: text[n.From:n.To], NameBytes: n.Bytes, Hash: n.Hash}
		if !k.Oversized() {
			k.Hash = keyspace.HashName(k.Name)
		}
		p.Next = append(p.Next, k)
	}
	return nil
}

// Lengths asks each key for its length, which its type must be known for.
func (s *session) Lengths(ctx context.Context, keys []*keyspace.Key, problems []fault.KeyProblem) error {
	if len(keys) == 0 {
		return nil
	}
	if err := s.use(ctx, keys[0].DB); err != nil {
		return err
	}
	for len(keys) > 0 {
		n := min(len(keys), maxPipelinedKeys)
		if err := s.lengths(keys[:n], problems[:n]); err != nil {
			return err
		}
		keys, problems = keys[n:], problems[n:]
	}
	return nil
}

func (s *session) lengths(keys []*keyspace.Key, problems []fault.KeyProblem) error {
	deniedBefore := s.capabilities
	asked := func(k *keyspace.Key) (keyspace.Command, bool) {
		cmd, ok := keyspace.LengthCommand(k.Type)
		return cmd, ok && deniedBefore[cmd] != snapshot.Denied
	}
	w := s.wire
	w.writer.Reset()
	for _, k := range keys {
		if cmd, ok := asked(k); ok {
			s.askKey(cmd, k.Name)
		}
	}
	if w.writer.Len() == 0 {
		return nil
	}
	if err := w.send(); err != nil {
		return err
	}
	r := replies{s: s}
	for i, k := range keys {
		cmd, ok := asked(k)
		if !ok {
			continue
		}
		n, err := w.reader.Int()
		problem, usable, broken := r.take(cmd, err)
		if broken != nil {
			return broken
		}
		problems[i] = problem
		switch {
		case !usable:
		case n <= 0:
			// No key has a length of 0 but the empty string, which is no candidate.
			problems[i] = fault.Gone
		default:
			k.Length = n
			k.Known |= keyspace.FactLength
		}
	}
	return r.end()
}
