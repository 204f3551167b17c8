package topology

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/resp"
)

// wire is the hot path: what is sent for each key goes over the connection that
// go-redis dialled and greeted, but past go-redis, whose pipelines allocate for
// each command. The two take turns: between two calls of a session nothing is
// in flight, so neither finds a byte of the other's.
type wire struct {
	conn   net.Conn
	writer resp.Writer
	reader *resp.Reader
	page   resp.Page
}

func newWire(conn net.Conn) *wire {
	return &wire{conn: conn, reader: resp.NewReader(conn)}
}

// keyCommands are the commands of the read-only list as bytes that lack a key:
// nothing else can be written past go-redis and its hook.
var keyCommands = func() (all [keyspace.NumCommands]resp.KeyCommand) {
	for _, cmd := range keyspace.Commands() {
		all[cmd] = resp.NewKeyCommand(strings.Split(cmd.String(), "|"))
	}
	all[keyspace.CmdGetRange] = resp.NewKeyCommand([]string{"getrange"}, "0", "0")
	return all
}()

// askKey appends a command about a key to the pipeline.
func (s *session) askKey(cmd keyspace.Command, name string) {
	s.wire.writer.Key(keyCommands[cmd], name)
	s.sent[cmd]++
}

// askScan appends a SCAN to the pipeline.
func (s *session) askScan(cursor uint64, count int) {
	s.wire.writer.Command(keyspace.CmdScan.String(), strconv.FormatUint(cursor, 10), "count", strconv.Itoa(count))
	s.sent[keyspace.CmdScan]++
}

// send writes the pipeline; its replies have one deadline for all.
func (w *wire) send() error {
	now := time.Now()
	if err := errors.Join(w.conn.SetWriteDeadline(now.Add(writeTimeout)), w.conn.SetReadDeadline(now.Add(readTimeout))); err != nil {
		return classify(err)
	}
	_, err := w.conn.Write(w.writer.Bytes())
	return classify(err)
}

// replies judges the replies of a pipeline one by one. A fault that a reply
// speaks of is kept while the rest is read: after BUSY the connection goes on,
// and must be in step.
type replies struct {
	s     *session
	fault error
}

// take judges the error of one reply. usable: it has a value. broken: the
// stream is out of step or gone.
func (r *replies) take(cmd keyspace.Command, err error) (problem fault.KeyProblem, usable bool, broken error) {
	if err != nil && !isReply(err) && !errors.Is(err, resp.ErrNil) {
		return 0, false, classify(err)
	}
	if reason, ok := replyReason(err); ok && endsCycle(reason) {
		r.keep(fault.New(reason, err))
		return fault.NoProblem, false, nil
	}
	problem, changed := r.s.learn(cmd, err)
	if changed != nil {
		r.keep(changed)
	}
	return problem, problem == fault.NoProblem && !r.s.denied(cmd), nil
}

func (r *replies) keep(err error) {
	if r.fault == nil {
		r.fault = err
	}
}

// end is the pipeline's result. What comes behind the last reply belongs to
// nobody.
func (r *replies) end() error {
	if r.s.wire.reader.Buffered() {
		return fault.Newf(fault.Protocol, "more replies than commands")
	}
	return r.fault
}

// endsCycle tells a reply that is about the whole server from one about a
// command or a key.
func endsCycle(reason fault.Reason) bool {
	switch reason {
	case fault.NotReady, fault.Busy, fault.Auth, fault.ConnLost:
		return true
	}
	return false
}
