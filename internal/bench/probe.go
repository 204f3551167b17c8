package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"redis_keyhealth_exporter/internal/resp"
)

// latencies are what a client waits for its replies.
type latencies struct {
	Requests      int
	P50, P90, P99 time.Duration
}

// summarise sorts what was waited.
func summarise(waits []time.Duration) latencies {
	slices.Sort(waits)
	at := func(share float64) time.Duration {
		if len(waits) == 0 {
			return 0
		}
		return waits[min(int(share*float64(len(waits))), len(waits)-1)]
	}
	return latencies{len(waits), at(0.5), at(0.9), at(0.99)}
}

// probe is a program that sends GETs at a fixed rate, whether or not the last
// one is answered: what waits behind a slow one counts as slow, as it is for
// the many clients of a server. It is a process of its own, so that nothing
// else of the bench delays it.
type probe struct {
	*child
	stdout *bytes.Buffer
}

// probing is how the probe is run.
type probing struct{ rate, connections int }

func (p probing) start(ctx context.Context, l *lab, s *server) (frontline, error) {
	out := &bytes.Buffer{}
	argv := slices.Concat(l.urgent, l.otherCPUs, []string{
		l.self, "probe", "--addr", s.Addr(), "--keys", strconv.Itoa(s.data.keys),
		"--rate", strconv.Itoa(p.rate), "--connections", strconv.Itoa(p.connections),
	})
	c, err := start(ctx, out, argv...)
	if err != nil {
		return nil, err
	}
	return &probe{c, out}, nil
}

func (p *probe) finish(ctx context.Context) (latencies, error) {
	p.stop()
	if err := p.wait(ctx); err != nil {
		return latencies{}, err
	}
	var got latencies
	err := json.Unmarshal(p.stdout.Bytes(), &got)
	if err == nil && got.Requests == 0 {
		err = errors.New("the probe sent nothing")
	}
	return got, err
}

func declareProbe(clause *kingpin.CmdClause, l *lab) func(context.Context) error {
	addr := clause.Flag("addr", "host:port").Required().String()
	keys := clause.Flag("keys", "Keys of the mixed dataset there.").Required().Int()
	rate := clause.Flag("rate", "Requests a second.").Required().Int()
	connections := clause.Flag("connections", "Connections.").Required().Int()
	return func(context.Context) error {
		// SIGTERM is how the measurement ends, not this program.
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		waits, err := probeFor(stop, *addr, mixed(*keys), *rate, *connections)
		if err != nil {
			return err
		}
		return json.NewEncoder(l.stdout).Encode(summarise(waits))
	}
}

func probeFor(stop <-chan os.Signal, addr string, data dataset, rate, connections int) ([]time.Duration, error) {
	var (
		ended atomic.Bool
		done  sync.WaitGroup
		begin = time.Now().Add(10 * time.Millisecond)
		every = time.Duration(connections) * time.Second / time.Duration(rate)
		waits = make([][]time.Duration, connections)
		errs  = make([]error, connections)
	)
	// Each goroutine keeps a thread, and all may run: none waits for another, nor
	// for the garbage, of which there is little.
	runtime.GOMAXPROCS(connections + 2)
	debug.SetGCPercent(-1)
	for i := range connections {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			first := begin.Add(every * time.Duration(i) / time.Duration(connections))
			waits[i], errs[i] = probeOne(&ended, addr, data, first, every, uint64(i))
		})
	}
	<-stop
	ended.Store(true)
	done.Wait()
	return slices.Concat(waits...), errors.Join(errs...)
}

// probeOne sends on one connection, the next request when it is due. What is
// waited is counted from when it was due.
func probeOne(ended *atomic.Bool, addr string, data dataset, due time.Time, every time.Duration, seed uint64) ([]time.Duration, error) {
	fd, err := dialBlocking(addr)
	if err != nil {
		return nil, err
	}
	defer fd.Close()
	socket := int(fd.Fd())
	var w resp.Writer
	reply := make([]byte, 4096) // longer than any value that is asked for
	waits := make([]time.Duration, 0, 1<<16)
	for n := uint64(0); !ended.Load(); n++ {
		w.Reset()
		w.Command("GET", data.someString(mix(seed<<32|n)))
		sleepUntil(due)
		if _, err := syscall.Write(socket, w.Bytes()); err != nil {
			return nil, err
		}
		got, err := syscall.Read(socket, reply)
		switch {
		case err != nil:
			return nil, err
		case got == 0:
			return nil, io.ErrUnexpectedEOF
		case reply[0] != '$':
			return nil, fmt.Errorf("GET is answered by %q", reply[:got])
		}
		waits = append(waits, time.Since(due))
		due = due.Add(every)
	}
	return waits, nil
}

// dialBlocking makes a connection on which a read holds its thread: the kernel
// wakes it at once, where Go's poller would come between.
func dialBlocking(addr string) (*os.File, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	fd, err := conn.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(int(fd.Fd()), false); err != nil {
		fd.Close()
		return nil, err
	}
	return fd, nil
}
