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

// probe is a row of what is asked of a key: a new fact is a field in keyspace.Key
// and a row here.
type probe struct {
	fact keyspace.Facts
	// cmd is the command that tells the fact, of a key of the type; false = no
	// command does.
	cmd func(keyspace.Type) (keyspace.Command, bool)
	// read takes the reply into the key; false = there is no such key.
	read func(*keyspace.Key, *resp.Reader) (exists bool, err error)
}

// probes are in the order in which they are sent. MEMORY USAGE comes first: it
// is the one that leaves no trace. TYPE decides on existence, as a replica
// gives a size of keys that have expired. What touches LRU and LFU on servers
// without NO-TOUCH comes behind what reads them.
var probes = []probe{
	{keyspace.FactBytes, always(keyspace.CmdMemoryUsage), readBytes},
	{keyspace.FactType, always(keyspace.CmdType), readType},
	{keyspace.FactTTL, always(keyspace.CmdPTTL), readTTL},
	{keyspace.FactEncoding, always(keyspace.CmdObjectEncoding), readEncoding},
	{keyspace.FactIdle, always(keyspace.CmdObjectIdletime), readIdle},
	{keyspace.FactFrequency, always(keyspace.CmdObjectFreq), readFrequency},
	{keyspace.FactLength, keyspace.LengthCommand, readLength},
	{keyspace.FactHead, ofStrings(keyspace.CmdGetRange), readHead},
}

// byType are the facts whose command depends on the type, which must be known.
const byType = keyspace.FactLength | keyspace.FactHead

func always(cmd keyspace.Command) func(keyspace.Type) (keyspace.Command, bool) {
	return func(keyspace.Type) (keyspace.Command, bool) { return cmd, true }
}

func ofStrings(cmd keyspace.Command) func(keyspace.Type) (keyspace.Command, bool) {
	return func(t keyspace.Type) (keyspace.Command, bool) { return cmd, t == keyspace.String }
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

// maxWord is as long as an encoding's name may be.
const maxWord = 32

func readEncoding(k *keyspace.Key, reply *resp.Reader) (bool, error) {
	name, err := reply.Text(maxWord)
	if err == nil {
		k.Encoding = keyspace.ParseEncoding(string(name))
	}
	return !errors.Is(err, resp.ErrNil), err
}

func readIdle(k *keyspace.Key, reply *resp.Reader) (bool, error) {
	seconds, err := reply.Int()
	k.Idle = time.Duration(min(max(seconds, 0), math.MaxInt64/int64(time.Second))) * time.Second
	return !errors.Is(err, resp.ErrNil), err
}

func readFrequency(k *keyspace.Key, reply *resp.Reader) (bool, error) {
	n, err := reply.Int()
	k.Frequency = uint8(min(max(n, 0), math.MaxUint8))
	return !errors.Is(err, resp.ErrNil), err
}

// readLength: no key has a length of 0 but the empty string, of which nobody
// asks it, and a stream: its groups stay when its entries are gone.
func readLength(k *keyspace.Key, reply *resp.Reader) (bool, error) {
	n, err := reply.Int()
	k.Length = n
	return n > 0 || k.Type == keyspace.Stream, err
}

func readHead(k *keyspace.Key, reply *resp.Reader) (bool, error) {
	value, err := reply.Text(1)
	if k.Head = 0; len(value) > 0 {
		k.Head = value[0]
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
	for i := range p.Keys {
		k := &p.Keys[i]
		k.Known = 0
		s.keys = append(s.keys, k)
		problem := fault.NoProblem
		if k.Oversized() {
			problem = fault.OversizedName
		}
		p.Problems = append(p.Problems, problem)
	}
	for from := 0; ; {
		to := from + s.chunk(s.keys[from:], p.Wants[from:], p.Problems[from:])
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

// Inspect fetches the facts that each key lacks.
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
		to := from + s.chunk(keys[from:], s.wants[from:], problems[from:])
		if _, err := s.inspect(keys[from:to], s.wants[from:to], problems[from:to], nil); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// asks tells whether a probe is sent for a key, and by which command.
func (s *session) asks(p *probe, k *keyspace.Key, want keyspace.Facts) (keyspace.Command, bool) {
	if want&^k.Known&p.fact == 0 || p.fact&byType != 0 && !k.Has(keyspace.FactType) {
		return 0, false
	}
	if p.fact == keyspace.FactIdle && k.Has(keyspace.FactTTL) && k.TTL != keyspace.NoTTL {
		return 0, false // how long it lies idle matters of a permanent key alone
	}
	cmd, ok := p.cmd(k.Type)
	return cmd, ok && !s.denied(cmd)
}

// chunk is how many of the keys the next pipeline may hold: it ends before the
// second one that needs a command which was never tried.
func (s *session) chunk(keys []*keyspace.Key, wants []keyspace.Facts, problems []fault.KeyProblem) int {
	keys = keys[:min(len(keys), maxPipelinedKeys)]
	untried := byType // as far as can be told without a key
	for i := range probes {
		if cmd, _ := probes[i].cmd(keyspace.Unknown); probes[i].fact&byType == 0 && s.capabilities[cmd] == snapshot.Untried {
			untried |= probes[i].fact
		}
	}
	var tried uint64 // by this pipeline, bit by command
	for i, k := range keys {
		if wants[i]&untried == 0 || problems[i] != fault.NoProblem {
			continue
		}
		var now uint64
		for j := range probes {
			if cmd, ok := s.asks(&probes[j], k, wants[i]); ok && s.capabilities[cmd] == snapshot.Untried {
				now |= 1 << cmd
			}
		}
		if tried&now != 0 {
			return i
		}
		tried |= now
	}
	return len(keys)
}

// inspect sends one pipeline of probes and, if there is a page to scan, its
// SCAN; false = there was nothing to send. Keys that have a problem are left out.
func (s *session) inspect(keys []*keyspace.Key, wants []keyspace.Facts, problems []fault.KeyProblem, scan *scanner.Page) (sent bool, err error) {
	w := s.wire
	w.writer.Reset()
	s.asked = s.asked[:0]
	for i, k := range keys {
		// What is asked is settled before: a command may be found denied meanwhile.
		var asked keyspace.Facts
		for j := range probes {
			if problems[i] != fault.NoProblem {
				break
			}
			if cmd, ok := s.asks(&probes[j], k, wants[i]); ok {
				asked |= probes[j].fact
				s.askKey(cmd, k.Name)
			}
		}
		s.asked = append(s.asked, asked)
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
		if s.asked[i] == 0 {
			continue
		}
		if problems[i], err = r.key(k, s.asked[i]); err != nil {
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
		cmd, _ := p.cmd(k.Type)
		exists, err := p.read(k, r.s.wire.reader)
		problem, usable, broken := r.take(cmd, err)
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
