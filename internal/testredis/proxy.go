package testredis

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Proxy forwards TCP connections and disturbs them on demand. It is safe for
// concurrent use.
type Proxy struct {
	listener net.Listener
	tasks    sync.WaitGroup // of the listener and of every link

	mu       sync.Mutex
	upstream string
	links    map[*link]struct{}
	open     chan struct{} // closed while bytes may flow
	garble   func([]byte) []byte
	closed   bool

	garbling sync.Mutex // held during a call of garble
}

// StartProxy starts a proxy to upstream, a host:port, that lives until the end
// of the test.
func StartProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", loopback(0))
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		listener: listener,
		upstream: upstream,
		links:    make(map[*link]struct{}),
		open:     make(chan struct{}),
	}
	close(p.open)
	p.tasks.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// Addr is the host:port to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// SetUpstream makes new connections go to another host:port.
func (p *Proxy) SetUpstream(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = addr
}

// Pause stops the flow of bytes. Connections stay open and new ones are
// accepted; that one end hung up is kept from the other.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.open) {
		p.open = make(chan struct{})
	}
}

// Resume ends a Pause. What was held back is delivered.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isClosed(p.open) {
		close(p.open)
	}
}

// Garble makes f rewrite what servers send, in pieces of whatever size they come
// in; nil ends that. Calls of f never overlap. It may change its argument in
// place, but not keep it.
func (p *Proxy) Garble(f func(fromServer []byte) []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.garble = f
}

// CutAll closes the connections that there are.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Close refuses new connections, closes those that there are and returns once
// all is quiet. The test's end calls it too.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.CutAll()
	p.tasks.Wait()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.serve(conn)
	}
}

// serve forwards a client's connection in the background.
func (p *Proxy) serve(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return
	}
	l := newLink(conn)
	p.links[l] = struct{}{}
	upstream := p.upstream
	p.tasks.Go(func() {
		p.forward(l, upstream)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
}

// forward returns once either end hung up or the link was cut.
func (p *Proxy) forward(l *link, upstream string) {
	var up sync.WaitGroup
	defer up.Wait()
	defer l.cut()
	if l.dial(upstream) != nil {
		return
	}
	up.Go(func() {
		defer l.cut()
		p.copy(l, l.server, l.client, nil)
	})
	p.copy(l, l.client, l.server, p.garbled)
}

// copy forwards bytes, through rewrite if there is one, until that fails.
func (p *Proxy) copy(l *link, to, from net.Conn, rewrite func([]byte) []byte) {
	buf := make([]byte, 32<<10)
	for {
		n, readErr := from.Read(buf)
		if !p.pass(l) {
			return
		}
		data := buf[:n]
		if rewrite != nil && n > 0 {
			data = rewrite(data)
		}
		if _, err := to.Write(data); err != nil || readErr != nil {
			return
		}
	}
}

// pass waits for the end of a pause. It returns false if the link was cut.
func (p *Proxy) pass(l *link) bool {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	select {
	case <-open:
		return true
	case <-l.ctx.Done():
		return false
	}
}

func (p *Proxy) garbled(data []byte) []byte {
	p.mu.Lock()
	garble := p.garble
	p.mu.Unlock()
	if garble == nil {
		return data
	}
	p.garbling.Lock()
	defer p.garbling.Unlock()
	return garble(data)
}

// link is a client's connection and the one to the server that goes with it.
type link struct {
	ctx    context.Context // ends with the link
	cancel context.CancelFunc
	client net.Conn
	server net.Conn // set by dial

	mu sync.Mutex // orders dial and cut
}

func newLink(client net.Conn) *link {
	l := &link{client: client}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *link) dial(upstream string) error {
	var dialer net.Dialer
	server, err := dialer.DialContext(l.ctx, "tcp", upstream)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = server
	if err := l.ctx.Err(); err != nil { // cut while dialling
		server.Close()
		return err
	}
	return nil
}

// cut closes both ends. It may be called more than once.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
	l.client.Close()
	if l.server != nil {
		l.server.Close()
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
