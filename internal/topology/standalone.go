// Package topology finds the nodes to scan and speaks to them. No other package
// of the exporter knows go-redis.
package topology

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/resp"
	"redis_keyhealth_exporter/scanner"
)

const (
	dialTimeout  = 3 * time.Second
	readTimeout  = 5 * time.Second // for the whole reply of a pipeline
	writeTimeout = 3 * time.Second
)

// Standalone is the one node of a deployment that is neither a cluster nor
// watched by sentinels.
func Standalone(cfg config.Deployment) scanner.Node {
	return newNode(cfg.Redis, keyspace.NodeID{Target: cfg.Target, Node: cfg.Address})
}

func newNode(cfg config.Redis, id keyspace.NodeID) *node {
	ctx, cancel := context.WithCancel(context.Background())
	n := &node{id: id, cfg: cfg, ctx: ctx, cancel: cancel, conns: map[net.Conn]struct{}{}}
	n.place.Store(&place{})
	return n
}

// node is one Redis process.
type node struct {
	id     keyspace.NodeID
	cfg    config.Redis
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	guard *guard // of addresses that others announced; nil = the address is configured
	place atomic.Pointer[place]
	auto  *auto // nil = what kind of deployment the node is of, is known

	slow slowSeen

	mu    sync.Mutex
	conns map[net.Conn]struct{} // open ones
}

// place is what the topology knows of a node.
type place struct {
	scanner.Shard
	self    string       // its name in the cluster
	primary func() *node // of a replica
}

var _ scanner.Node = (*node)(nil)

func (n *node) Primary() scanner.Node {
	if primary := n.place.Load().primary; primary != nil {
		return primary()
	}
	return nil
}

func (n *node) Shard() scanner.Shard { return n.place.Load().Shard }

func (n *node) ID() keyspace.NodeID { return n.id }

func (n *node) Address() string { return n.cfg.Address }

// Close ends every dial and connection; a later Open fails.
func (n *node) Close() {
	n.cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	for conn := range n.conns {
		conn.Close()
	}
}

// Open dials, authenticates and greets the server.
func (n *node) Open(ctx context.Context) (scanner.Session, error) {
	s := &session{node: n, slow: &n.slow}
	s.client = n.client(func(conn net.Conn) { s.wire = newWire(conn) })
	s.conn = s.client.Conn()
	if err := s.greet(ctx); err != nil {
		s.Close()
		if n.cfg.TLS != nil && fault.ReasonOf(err) == fault.ConnLost {
			// Since TLS 1.3 a server refuses a client behind the handshake, and may
			// have hung up before its alert is read.
			err = fault.Newf(fault.TLS, "the server hung up behind the TLS handshake, does it ask for a client certificate? %w", err)
		}
		return nil, err
	}
	return s, nil
}

// ask makes a connection for a few questions about the topology; dialled is told
// of it. The node is of no use afterwards.
func (n *node) ask(ctx context.Context, dialled func(net.Conn), questions func(*redis.Conn) error) (err error) {
	defer n.Close()
	defer context.AfterFunc(ctx, n.Close)()
	client := n.client(dialled)
	defer client.Close()
	conn := client.Conn()
	defer conn.Close()
	defer func() {
		if p := recover(); p != nil { // see batch.exec
			err = fault.Newf(fault.Protocol, "reply broke the client: %v", p)
		}
	}()
	return classify(questions(conn))
}

// client makes go-redis' client; dialled is told of each connection.
func (n *node) client(dialled func(net.Conn)) *redis.Client {
	opts := n.options()
	opts.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := n.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		dialled(conn)
		return resp.Guard(conn), nil
	}
	client := redis.NewClient(opts)
	client.AddHook(readOnly{})
	return client
}

// options are go-redis' for a monitor: no retry that would hide a lost
// connection behind a new one, one connection, no chatter, short deadlines.
func (n *node) options() *redis.Options {
	return &redis.Options{
		Network: n.cfg.Network,
		Addr:    n.cfg.Address,
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			password, err := n.cfg.Password()
			if err != nil {
				return "", "", fault.New(fault.Auth, err)
			}
			return n.cfg.User, string(password), nil
		},
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: maintNotificationsOff(),
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              dialTimeout,
		ReadTimeout:              readTimeout,
		WriteTimeout:             writeTimeout,
		ContextTimeoutEnabled:    true,
		PoolSize:                 2, // with 1, go-redis dials once more behind our back after a failure
		MaxActiveConns:           2,
		PipelinePoolSize:         -1,
	}
}

// dial connects and lets Close end what it made: neither cancelling a context
// nor closing go-redis' client is sure to.
func (n *node) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	dialer := &net.Dialer{}
	if n.guard != nil {
		dialer.ControlContext = n.guard.control
	}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := &trackedConn{Conn: raw, node: n}
	n.mu.Lock()
	n.conns[raw] = struct{}{}
	n.mu.Unlock()
	if n.ctx.Err() != nil {
		conn.Close()
		return nil, net.ErrClosed
	}
	if n.cfg.TLS == nil {
		return conn, nil
	}
	secure := tls.Client(conn, n.cfg.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fault.Newf(fault.TLS, "TLS handshake: %w", err)
	}
	return secure, nil
}

// trackedConn leaves its node's list when it is closed.
type trackedConn struct {
	net.Conn
	node *node
}

func (c *trackedConn) Close() error {
	c.node.mu.Lock()
	delete(c.node.conns, c.Conn)
	c.node.mu.Unlock()
	return c.Conn.Close()
}
