package topology

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/resp"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/scanner"
)

// clientName is how CLIENT LIST shows us.
const clientName = "redis_keyhealth_exporter"

// session is one connection. go-redis' Conn never dials a second time: once
// broken, it stays broken.
type session struct {
	node   *node
	client *redis.Client
	conn   *redis.Conn
	wire   *wire     // of the same connection
	slow   *slowSeen // of the node

	sent         [keyspace.NumCommands]uint64
	capabilities [keyspace.NumCommands]snapshot.Capability
	db           int  // that the connection is in
	home         int  // that the walk is in: Info may have to look into others
	readOnly     bool // READONLY was tried

	keys  []*keyspace.Key  // reused by Page
	wants []keyspace.Facts // reused by Inspect
	asked []keyspace.Facts // of each key of a pipeline
}

var _ scanner.Session = (*session)(nil)

func (s *session) Sent() [keyspace.NumCommands]uint64 { return s.sent }

func (s *session) Capabilities() [keyspace.NumCommands]snapshot.Capability { return s.capabilities }

// Close drops the connection.
func (s *session) Close() {
	s.conn.Close()
	s.client.Close()
}

// batch is a pipeline whose replies are judged one by one: Exec's own error is
// that of the first command that failed, be it the harmless "no such key".
type batch struct {
	s    *session
	pipe redis.Pipeliner
}

func (s *session) batch() *batch { return &batch{s: s, pipe: s.conn.Pipeline()} }

// add queues a command.
func (b *batch) add(ctx context.Context, cmd keyspace.Command, args ...any) *redis.Cmd {
	b.s.sent[cmd]++
	name, sub, two := strings.Cut(cmd.String(), "|")
	words := make([]any, 0, 2+len(args))
	words = append(words, name)
	if two {
		words = append(words, sub)
	}
	c := redis.NewCmd(ctx, append(words, args...)...)
	_ = b.pipe.Process(ctx, c) // queues
	return c
}

// exec sends the pipeline. Its error is one of the connection, or a reply that
// speaks of the whole server; error replies about one command stay on it.
//
// A length header within the limits can still take go-redis by surprise: a
// panic there is the peer's fault and ends this connection only.
func (b *batch) exec(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Newf(fault.Protocol, "reply broke the client: %v", p)
		}
	}()
	cmds, err := b.pipe.Exec(ctx)
	if err != nil && !isReply(err) && !errors.Is(err, redis.Nil) {
		return classify(err)
	}
	answered := false // by an error of its own
	for _, cmd := range cmds {
		err := cmd.Err()
		answered = answered || err != nil
		if err == nil || errors.Is(err, redis.Nil) {
			continue
		}
		if !isReply(err) {
			return classify(err)
		}
		if reason, ok := replyReason(err); ok && endsCycle(reason) {
			return fault.New(reason, err)
		}
	}
	if !answered {
		return classify(err) // the handshake was refused: no command was sent
	}
	return nil
}

// greet makes the connection and what is nice to have on it.
func (s *session) greet(ctx context.Context) error {
	b := s.batch()
	name := b.add(ctx, keyspace.CmdSetName, clientName)
	touch := b.add(ctx, keyspace.CmdNoTouch, "on")
	if err := b.exec(ctx); err != nil {
		if reason := fault.ReasonOf(err); reason != fault.NotReady && reason != fault.Busy {
			return err
		}
		return nil // of these INFO, the next thing asked, tells more
	}
	_, _ = s.learn(keyspace.CmdSetName, name.Err())
	_, _ = s.learn(keyspace.CmdNoTouch, touch.Err())
	return nil
}

// learn notes whether a command may be used, and tells whether its reply may.
// A right that goes away within a cycle ends it: half of its keys would be
// measured.
func (s *session) learn(cmd keyspace.Command, err error) (problem fault.KeyProblem, broken error) {
	switch {
	case err == nil, errors.Is(err, redis.Nil), errors.Is(err, resp.ErrNil):
		s.capabilities[cmd] = snapshot.Allowed
		return fault.NoProblem, nil
	case deniesKeys(err):
		return fault.KeyPermission, nil
	}
	switch reason, _ := replyReason(err); reason {
	case fault.Permission, fault.Unsupported:
		if s.capabilities[cmd] == snapshot.Allowed {
			return 0, fault.Newf(reason, "%s was allowed a moment ago: %w", cmd, err)
		}
		s.capabilities[cmd] = snapshot.Denied
		return fault.NoProblem, nil
	}
	for _, about := range []struct {
		prefix  string
		problem fault.KeyProblem
	}{
		{"WRONGTYPE", fault.WrongType},
		{"MOVED", fault.Moved},
		{"ASK", fault.Moved},
		{"TRYAGAIN", fault.Moved},
	} {
		if strings.HasPrefix(err.Error(), about.prefix) {
			return about.problem, nil
		}
	}
	if s.capabilities[cmd] == snapshot.Untried {
		// Whatever it means, this command has never worked here: some services
		// have words of their own for "denied".
		s.capabilities[cmd] = snapshot.Denied
		return fault.NoProblem, nil
	}
	return fault.OddReply, nil
}

func (s *session) denied(cmd keyspace.Command) bool { return s.capabilities[cmd] == snapshot.Denied }

// Ping measures a round trip. Any reply will do.
func (s *session) Ping(ctx context.Context) (time.Duration, error) {
	b := s.batch()
	ping := b.add(ctx, keyspace.CmdPing)
	start := time.Now()
	err := b.exec(ctx)
	took := time.Since(start)
	if err != nil && !isReply(err) {
		return 0, err
	}
	if err == nil {
		_, _ = s.learn(keyspace.CmdPing, ping.Err())
	}
	return took, nil
}

// Info asks for the default sections and the calls of commands. They are
// two commands, as only Redis 7 takes several sections at once.
func (s *session) Info(ctx context.Context) (scanner.Info, error) {
	if s.denied(keyspace.CmdInfo) {
		return s.keyspaceByHand(ctx)
	}
	b := s.batch()
	sections := b.add(ctx, keyspace.CmdInfo)
	stats := b.add(ctx, keyspace.CmdInfo, "commandstats")
	place, slots := s.node.place.Load(), (*redis.Cmd)(nil)
	if place.Slots != nil {
		slots = b.add(ctx, keyspace.CmdClusterSlots)
	}
	if err := b.exec(ctx); err != nil {
		return scanner.Info{}, err
	}
	if _, err := s.learn(keyspace.CmdInfo, sections.Err()); err != nil {
		return scanner.Info{}, err
	}
	if s.denied(keyspace.CmdInfo) {
		return s.keyspaceByHand(ctx)
	}
	text, err := sections.Text()
	if err != nil {
		return scanner.Info{}, classify(err)
	}
	more, _ := stats.Text() // some forks have no such section
	info := parseInfo(text + "\n" + more)
	info.Address = s.client.Options().Addr
	if err := s.node.fits(&info, place); err != nil {
		return scanner.Info{}, err
	}
	if slots != nil {
		if _, err := s.learn(keyspace.CmdClusterSlots, slots.Err()); err != nil {
			return scanner.Info{}, err
		}
		if info.Slots, err = slotsOf(slots, place.self); err != nil {
			return scanner.Info{}, err
		}
	}
	if info.Cluster && info.Role == "replica" && !s.readOnly {
		s.readOnly = true
		if _, err := s.simple(ctx, keyspace.CmdReadOnly); err != nil {
			return scanner.Info{}, err
		}
	}
	return info, nil
}

// keyspaceByHand finds the databases that hold keys where INFO is denied:
// SELECT and DBSIZE, until the server says that there are no more.
func (s *session) keyspaceByHand(ctx context.Context) (scanner.Info, error) {
	info := scanner.Info{Denied: true}
	info.Address = s.client.Options().Addr
	for db := range maxDBs {
		err := s.use(ctx, db)
		if reason := fault.ReasonOf(err); err != nil && db > 0 && (reason == fault.Config || reason == fault.Permission) {
			break
		} else if err != nil {
			return info, err
		}
		size, err := s.simple(ctx, keyspace.CmdDBSize)
		if err != nil {
			return info, err
		}
		if reason, denied := replyReason(size.Err()); denied {
			return info, fault.Newf(reason, "neither INFO nor DBSIZE may be called: %w", size.Err())
		}
		n, err := size.Int64()
		if err != nil {
			return info, fault.Newf(fault.Protocol, "reply of dbsize: %w", err)
		}
		if n > 0 {
			info.DBs = append(info.DBs, snapshot.DBInfo{DB: db, Keys: n, Expires: -1})
		}
	}
	return info, s.use(ctx, s.home)
}

// Select changes the database.
func (s *session) Select(ctx context.Context, db int) error {
	s.home = db
	return s.use(ctx, db)
}

func (s *session) use(ctx context.Context, db int) error {
	if db == s.db {
		return nil
	}
	cmd, err := s.simple(ctx, keyspace.CmdSelect, db)
	if err != nil {
		return err
	}
	if err := cmd.Err(); err != nil {
		if reason, _ := replyReason(err); reason == fault.Permission || reason == fault.Unsupported {
			return fault.Newf(fault.Config, "db%d holds keys: %w", db, err)
		}
		return classify(err)
	}
	s.db = db
	return nil
}

// simple sends one command and learns from its reply.
func (s *session) simple(ctx context.Context, cmd keyspace.Command, args ...any) (*redis.Cmd, error) {
	b := s.batch()
	c := b.add(ctx, cmd, args...)
	if err := b.exec(ctx); err != nil {
		return nil, err
	}
	_, err := s.learn(cmd, c.Err())
	return c, err
}
