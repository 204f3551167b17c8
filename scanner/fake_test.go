package scanner

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// fakeNode is a server in memory. Its hooks make trouble; nil = none.
type fakeNode struct {
	mu sync.Mutex // of what change may change while a scanner runs

	name                        string // "" = fake:6379
	shard                       Shard
	primary                     *fakeNode                // of a replica
	dbs                         map[int][][]keyspace.Key // by db the pages of its SCAN; cursor n is page n
	slowKeys                    []string
	info                        Info          // DBs are derived from dbs
	pageTime, infoTime, lenTime time.Duration // how long a page, INFO and the lengths take
	lookTime                    time.Duration // how long an Inspect takes
	rtt                         time.Duration
	known                       map[string]bool      // see Session.KnownCommands
	config                      *policy.ServerConfig // nil = denied
	capabilities                [keyspace.NumCommands]snapshot.Capability

	onOpen func(ctx context.Context, n int) error // n counts from 1
	onPage func(ctx context.Context, n int, p *Page) error
	onInfo func(n int, info *Info) error
	onPing func(ctx context.Context) error
	onLens func(problems []fault.KeyProblem)
	onLook func(problems []fault.KeyProblem) error // of Inspect

	opens, pages, infos, pings, looks int
	open                              int      // sessions
	cursors                           []uint64 // of the SCANs
	closed                            chan struct{}
	closeOnce                         sync.Once
}

func newFake(keys ...keyspace.Key) *fakeNode {
	n := &fakeNode{dbs: map[int][][]keyspace.Key{}, closed: make(chan struct{})}
	n.info.RunID = "run-1"
	n.info.Role = "primary"
	for page := range slices.Chunk(keys, 100) {
		n.dbs[0] = append(n.dbs[0], page)
	}
	return n
}

// change changes the server while a scanner runs.
func (n *fakeNode) change(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// takes sleeps for as long as the server takes.
func (n *fakeNode) takes(d *time.Duration) {
	n.mu.Lock()
	took := *d
	n.mu.Unlock()
	time.Sleep(took)
}

// small makes n healthy keys of db 0.
func small(n int) []keyspace.Key {
	keys := make([]keyspace.Key, n)
	for i := range keys {
		keys[i] = stringKey(0, fmt.Sprintf("user:%d", i), 100)
	}
	return keys
}

func stringKey(db int, name string, bytes int64) keyspace.Key {
	return keyspace.Key{
		DB: db, Name: name, NameBytes: int64(len(name)), Hash: keyspace.HashName(name),
		Type: keyspace.String, Bytes: bytes, Length: bytes - 60, TTL: time.Hour,
	}
}

func (n *fakeNode) ID() keyspace.NodeID {
	return keyspace.NodeID{Target: "fake", Node: cmp.Or(n.name, "fake:6379")}
}
func (n *fakeNode) Address() string { return cmp.Or(n.name, "fake:6379") }
func (n *fakeNode) Shard() Shard {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shard
}

// become gives the node other slots.
func (n *fakeNode) become(slots *keyspace.Slots) {
	n.change(func() { n.shard.Slots, n.info.Slots = slots, slots })
}

func (n *fakeNode) Primary() Node {
	if n.primary == nil {
		return nil
	}
	return n.primary
}
func (n *fakeNode) Close() { n.closeOnce.Do(func() { close(n.closed) }) }

func (n *fakeNode) Open(ctx context.Context) (Session, error) {
	n.opens++
	if n.onOpen != nil {
		if err := n.onOpen(ctx, n.opens); err != nil {
			return nil, err
		}
	}
	n.open++
	return &fakeSession{fakeNode: n}, nil
}

// hang is a read that only Close ends, as with a stopped server.
func (n *fakeNode) hang() error {
	<-n.closed
	return fault.Newf(fault.ConnLost, "use of closed network connection")
}

type fakeSession struct {
	*fakeNode
	sent   [keyspace.NumCommands]uint64
	db     int
	closed bool
}

func (s *fakeSession) Ping(ctx context.Context) (time.Duration, error) {
	s.pings++
	s.sent[keyspace.CmdPing]++
	time.Sleep(s.rtt)
	if s.onPing != nil {
		return s.rtt, s.onPing(ctx)
	}
	return s.rtt, nil
}

func (s *fakeSession) Info(context.Context) (Info, error) {
	s.infos++
	s.sent[keyspace.CmdInfo]++
	time.Sleep(s.infoTime)
	s.mu.Lock()
	info := s.info
	for db := range 16 {
		n := 0
		for _, page := range s.dbs[db] {
			n += len(page)
		}
		if n > 0 {
			info.DBs = append(info.DBs, snapshot.DBInfo{DB: db, Keys: int64(n), Expires: int64(n)})
		}
	}
	s.mu.Unlock()
	if s.onInfo != nil {
		if err := s.onInfo(s.infos, &info); err != nil {
			return Info{}, err
		}
	}
	return info, nil
}

func (s *fakeSession) Select(_ context.Context, db int) error {
	s.db = db
	return nil
}

func (s *fakeSession) Page(ctx context.Context, p *Page) error {
	s.pages++
	p.RoundTrips = 1
	p.Problems = p.Problems[:0]
	time.Sleep(s.rtt)
	if len(p.Keys) > 0 || p.Scan {
		s.takes(&s.pageTime)
	}
	for i := range p.Keys {
		p.Keys[i].Known = s.answer(p.Wants[i])
		p.Problems = append(p.Problems, fault.NoProblem)
	}
	p.Next, p.NextCursor = p.Next[:0], 0
	if p.Scan {
		s.sent[keyspace.CmdScan]++
		s.cursors = append(s.cursors, p.Cursor)
		s.mu.Lock()
		all := s.dbs[p.DB]
		p.Next = append(p.Next, all[p.Cursor]...)
		s.mu.Unlock()
		if next := p.Cursor + 1; next < uint64(len(all)) {
			p.NextCursor = next
		}
	}
	if s.onPage != nil {
		return s.onPage(ctx, s.pages, p)
	}
	return nil
}

func (s *fakeSession) Inspect(_ context.Context, keys []*keyspace.Key, facts keyspace.Facts, problems []fault.KeyProblem) error {
	if facts&keyspace.FactLength != 0 {
		time.Sleep(s.lenTime)
		if s.onLens != nil {
			s.onLens(problems)
		}
	} else {
		s.change(func() { s.looks++ })
		s.takes(&s.lookTime)
		if s.onLook != nil {
			if err := s.onLook(problems); err != nil {
				return err
			}
		}
	}
	for i, k := range keys {
		if problems[i] != fault.NoProblem {
			continue
		}
		now := s.find(k)
		if now == nil {
			problems[i] = fault.Gone
			continue
		}
		known := k.Known
		*k = *now
		k.Known = known | s.answer(facts&^known)
	}
	return nil
}

// answer counts the commands that tell the facts, all of them STRLEN if a length.
func (s *fakeSession) answer(facts keyspace.Facts) keyspace.Facts {
	for fact, cmd := range map[keyspace.Facts]keyspace.Command{
		keyspace.FactBytes: keyspace.CmdMemoryUsage, keyspace.FactType: keyspace.CmdType, keyspace.FactTTL: keyspace.CmdPTTL, keyspace.FactLength: keyspace.CmdStrlen,
		keyspace.FactEncoding: keyspace.CmdObjectEncoding, keyspace.FactIdle: keyspace.CmdObjectIdletime, keyspace.FactFrequency: keyspace.CmdObjectFreq, keyspace.FactHead: keyspace.CmdGetRange,
	} {
		if facts&fact != 0 {
			s.sent[cmd]++
		}
	}
	return facts
}

// find is what a server would tell of a key now; nil = there is none.
func (n *fakeNode) find(k *keyspace.Key) *keyspace.Key {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, page := range n.dbs[k.DB] {
		for i := range page {
			if page[i].Name == k.Name {
				found := page[i]
				return &found
			}
		}
	}
	return nil
}

func (s *fakeSession) KnownCommands(_ context.Context, names []string) (map[string]bool, error) {
	s.sent[keyspace.CmdCommandInfo]++
	known := map[string]bool{}
	for _, name := range names {
		known[name] = s.known[name]
	}
	return known, nil
}

func (s *fakeSession) Config(context.Context) (*policy.ServerConfig, error) {
	s.sent[keyspace.CmdConfigGet]++
	return s.config, nil
}

func (s *fakeSession) SlowKeys(context.Context) ([]string, error) {
	s.sent[keyspace.CmdSlowlogGet]++
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slowKeys, nil
}

func (s *fakeSession) Sent() [keyspace.NumCommands]uint64 { return s.sent }

func (s *fakeSession) Capabilities() [keyspace.NumCommands]snapshot.Capability {
	return s.capabilities
}

func (s *fakeSession) Close() {
	if !s.closed {
		s.closed = true
		s.open--
	}
}

// testOptions never sleep for the load budget.
func testOptions(t *testing.T) (Options, *logBuffer) {
	t.Helper()
	rules, err := policy.New(policy.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	buf := &logBuffer{}
	return Options{
		Policy: rules, Interval: time.Minute, Count: 100, MaxDuty: 1, TopKeys: 5,
		Logger: level.NewFilter(log.NewLogfmtLogger(buf), level.AllowInfo()),
	}, buf
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// fixed is a topology of one node that never changes.
type fixed struct{ *fakeNode }

func (f fixed) Nodes(context.Context) ([]Node, error) { return []Node{f.fakeNode}, nil }

// run starts a scanner as the supervisor does and returns what ends it.
func run(opts Options, node *fakeNode) (*Supervisor, func()) {
	sup := NewSupervisor(fixed{node}, opts)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		sup.Run(ctx)
	}()
	return sup, func() { cancel(); <-done }
}
