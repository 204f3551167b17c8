// Package testredis runs real redis-servers for tests and demonstrations, each
// with a port and a directory of its own, and a proxy that disturbs the traffic
// to them.
package testredis

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 20 * time.Second
	pollInterval = 5 * time.Millisecond
	portAttempts = 5
	logTailLines = 15

	SocketName = "redis.sock"
	configFile = "redis.conf"
	logFile    = "redis.log"
)

var (
	errPortTaken = errors.New("the port is taken")
	errNoServer  = errors.New("redis-server is not on PATH; install it with " +
		"`apt-get install redis-server` (Debian, Ubuntu) or `brew install redis` (macOS)")
)

// Options of a server. The zero value gives an empty one without persistence.
type Options struct {
	// Args are further arguments, such as "--requirepass", "secret". They
	// override Launch's own, of which only --unixsocket must stay as it is.
	// "{port}" in them stands for the server's port: "--port", "0",
	// "--tls-port", "{port}" makes one that speaks nothing but TLS.
	Args []string
	// Config, unless empty, is written to a configuration file that the server
	// may rewrite. Sentinels ("--sentinel" in Args) cannot do without.
	Config string
	// Under is a command line that runs the server's, such as valgrind's with its
	// options. It must become the server, rather than start it.
	Under []string
}

// Server is a redis-server of this machine that listens on 127.0.0.1. It is safe
// for concurrent use.
type Server struct {
	command []string // that runs the server, without its arguments
	args    []string
	dir     string
	port    int

	mu     sync.Mutex
	proc   *process
	closed bool
}

// Start launches a server that lives until the end of the test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := Launch(Options{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Launch starts a server and returns once it answers, be it with an error such
// as NOAUTH or LOADING. The caller must Close it.
func Launch(opts Options) (*Server, error) {
	return launch(opts, FreePort)
}

func launch(opts Options, pickPort func() (int, error)) (*Server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errNoServer
	}
	for range portAttempts {
		var port int
		if port, err = pickPort(); err != nil {
			return nil, err
		}
		var s *Server
		if s, err = launchOn(port, binary, opts); err == nil {
			return s, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, err
}

func launchOn(port int, binary string, opts Options) (*Server, error) {
	// The system's own folder for such things, not the test's: the path of a
	// Unix socket may have no more than about 100 bytes.
	dir, err := os.MkdirTemp("", "testredis-")
	if err != nil {
		return nil, err
	}
	s := &Server{command: append(slices.Clone(opts.Under), binary), dir: dir, port: port}
	if opts.Config != "" {
		file := filepath.Join(dir, configFile)
		if err := os.WriteFile(file, []byte(opts.Config), 0o600); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.args = append(s.args, file)
	}
	s.args = append(s.args,
		"--port", strconv.Itoa(port),
		"--bind", "127.0.0.1",
		"--unixsocket", filepath.Join(dir, SocketName),
		"--dir", dir,
		"--save", "",
		"--appendonly", "no",
		"--databases", "16",
		// A primary would otherwise wait 5 s for more replicas to come.
		"--repl-diskless-sync-delay", "0",
	)
	s.args = append(s.args, opts.Args...)
	if err := s.start(nil); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start runs the server and waits until it answers.
func (s *Server) start(extra []string) error {
	log, err := os.Create(filepath.Join(s.dir, logFile))
	if err != nil {
		return err
	}
	defer log.Close()

	args := slices.Clone(s.command[1:])
	for _, list := range [][]string{s.args, extra} {
		for _, arg := range list {
			args = append(args, strings.ReplaceAll(arg, "{port}", strconv.Itoa(s.port)))
		}
	}
	proc, err := startProcess(log, s.command[0], args...)
	if err != nil {
		return err
	}
	if err := s.await(proc); err != nil {
		err = s.explain(err)
		return errors.Join(err, proc.kill())
	}
	s.proc = proc
	return nil
}

// await returns once the server answers. It asks at the Unix socket, since on
// the port a stranger may answer who was faster to take it; and a server opens
// its port first, or ends.
func (s *Server) await(proc *process) error {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	socket := filepath.Join(s.dir, SocketName)
	for !answers(socket) {
		select {
		case <-poll.C:
		case <-proc.done:
			return errors.New("it ended right away")
		case <-deadline.C:
			return fmt.Errorf("it does not answer after %v", startTimeout)
		}
	}
	return nil
}

// answers tells whether a PING is answered, by whatever.
func answers(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	n, _ := conn.Read(make([]byte, 1))
	return n > 0
}

// explain adds to the reason why a server did not start what it said itself.
func (s *Server) explain(reason error) error {
	log, err := os.ReadFile(filepath.Join(s.dir, logFile))
	if err != nil {
		log = []byte(err.Error())
	}
	if bytes.Contains(log, []byte("Address already in use")) {
		reason = errPortTaken
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	lines = lines[max(0, len(lines)-logTailLines):]
	return fmt.Errorf("redis-server on %s: %w; its log ends with:\n\t%s", s.Addr(), reason, strings.Join(lines, "\n\t"))
}

// Addr is the server's host:port.
func (s *Server) Addr() string { return loopback(s.port) }

// Port is the server's port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Dir is the server's working directory, removed by Close.
func (s *Server) Dir() string { return s.dir }

// Pause makes the server hang: it keeps its connections, accepts new ones, and
// answers nothing.
func (s *Server) Pause() error { return s.signal("pause", syscall.SIGSTOP) }

// Resume ends a Pause. Commands sent meanwhile are executed.
func (s *Server) Resume() error { return s.signal("resume", syscall.SIGCONT) }

func (s *Server) signal(verb string, sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.errClosed(verb)
	}
	if err := s.proc.signal(sig); err != nil {
		return fmt.Errorf("%s redis-server on %s: %w", verb, s.Addr(), err)
	}
	return nil
}

// Kill makes the server crash. Killing one that is down is no error.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return s.proc.kill()
}

// Restart starts the server again on its port and in its directory, with its
// arguments and, this time, these. One that runs is first shut down in order, so
// that it saves its data if "--save" or "--appendonly" tell it to; to see it come
// back from a crash, Kill it before.
func (s *Server) Restart(args ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.errClosed("restart")
	}
	if s.proc.running() {
		if err := s.proc.terminate(stopTimeout); err != nil {
			return s.explain(err)
		}
	}
	return s.start(args)
}

// Close kills the server and removes its directory. Further calls do nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.proc != nil {
		err = s.proc.kill()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Server) errClosed(verb string) error {
	return fmt.Errorf("%s redis-server on %s: it was closed", verb, s.Addr())
}

// Client connects to the server until the end of the test.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	return client(t, s.Addr())
}

func client(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := NewClient(addr)
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Error(err)
		}
	})
	return c
}

// NewClient makes a client that fails at once rather than hide a fault by
// retrying. The caller must Close it.
func NewClient(addr string) *redis.Client { return redis.NewClient(options(addr)) }

func options(addr string) *redis.Options {
	return &redis.Options{
		Addr:                     addr,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              3 * time.Second,
		ReadTimeout:              5 * time.Second,
		WriteTimeout:             3 * time.Second,
		ContextTimeoutEnabled:    true,
		PoolSize:                 2,
		MaxActiveConns:           2,
		PipelinePoolSize:         -1,
	}
}
