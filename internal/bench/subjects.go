package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// tool is a program that walks once and ends.
type tool struct {
	l    *lab
	s    *server
	argv []string
	run  *child // nil = not yet
}

// toolRun makes a subject's start of a command line.
func toolRun(argv func(l *lab, s *server) []string) func(context.Context, *lab, *server) (walker, error) {
	return func(_ context.Context, l *lab, s *server) (walker, error) {
		return &tool{l: l, s: s, argv: argv(l, s)}, nil
	}
}

func (t *tool) walk(ctx context.Context) (err error) {
	if t.run, err = start(ctx, io.Discard, t.argv...); err != nil {
		return err
	}
	return t.run.wait(ctx)
}

func (t *tool) keys(ctx context.Context) (int64, error) {
	if t.run == nil {
		return 0, nil
	}
	return t.s.size(ctx)
}

func (t *tool) cpu() (time.Duration, error) {
	if t.run == nil {
		return 0, nil
	}
	return t.run.cpu()
}

func (t *tool) peak() int64 { return t.run.peak() }

func (t *tool) stop() {
	if t.run != nil {
		t.run.stop()
	}
}

func redisCLI(flag string) func(*lab, *server) []string {
	return func(l *lab, s *server) []string {
		return slices.Concat(l.otherCPUs, []string{"redis-cli", "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port()), flag})
	}
}

// peer is prometheus-redis-exporter. It walks when it is scraped.
type peer struct {
	*daemon
	s      *server
	window time.Duration // it is scraped again and again; 0 = once
	walked int64
}

const peerProgram = "prometheus-redis-exporter"

func peerRun(window time.Duration, flags ...string) func(context.Context, *lab, *server) (walker, error) {
	return func(ctx context.Context, l *lab, s *server) (walker, error) {
		d, err := l.startDaemon(ctx, peerProgram, "/", func(listen string) []string {
			return append([]string{"-redis.addr", "redis://" + s.Addr(), "-web.listen-address", listen}, flags...)
		})
		if err != nil {
			return nil, err
		}
		return &peer{daemon: d, s: s, window: window}, nil
	}
}

func (p *peer) walk(ctx context.Context) error {
	for begin := time.Now(); ; {
		if _, err := p.get(ctx, "/metrics"); err != nil {
			return err
		}
		size, err := p.s.size(ctx)
		if err != nil {
			return err
		}
		if p.walked += size; time.Since(begin) >= p.window {
			return nil
		}
	}
}

func (p *peer) keys(context.Context) (int64, error) { return p.walked, nil }

// ours is the exporter, scanning for as long as it lives: a while of that is
// measured.
type ours struct {
	*exporter
	window time.Duration
}

func (o *ours) walk(ctx context.Context) error { return sleep(ctx, o.window) }

func (o *ours) keys(ctx context.Context) (int64, error) {
	m, err := o.metrics(ctx)
	return int64(m.sum("redis_keyhealth_scan_keys_total")), err
}

// leastWindow is how long is measured at the least.
const leastWindow = 2 * time.Second

// oursUnbraked measures as long as the first cycle took, which warms it up.
func oursUnbraked(flags ...string) func(context.Context, *lab, *server) (walker, error) {
	return func(ctx context.Context, l *lab, s *server) (walker, error) {
		begin := time.Now()
		e, err := l.startExporter(ctx, s.Addr(), unbraked(neverPausing, flags)...)
		if err != nil {
			return nil, err
		}
		if err := e.firstCycle(ctx); err != nil {
			e.stop()
			return nil, e.explain(err)
		}
		return &ours{e, max(time.Since(begin), leastWindow)}, nil
	}
}

// oursAtDefault never pauses between cycles, which at the default interval it
// would if the keys were few.
func oursAtDefault(window time.Duration) func(context.Context, *lab, *server) (walker, error) {
	return func(ctx context.Context, l *lab, s *server) (walker, error) {
		e, err := l.startExporter(ctx, s.Addr(), neverPausing)
		if err != nil {
			return nil, err
		}
		err = e.scanning(ctx)
		if err == nil {
			err = sleep(ctx, settle)
		}
		if err != nil {
			e.stop()
			return nil, e.explain(err)
		}
		return &ours{e, window}, nil
	}
}

// settle is how long the scan may take to find its pace.
const settle = time.Second

// neverPausing is the flag that makes a cycle begin when the last one ends.
const neverPausing = "--scan.interval=0s"

// count is COUNT of SCAN, for all that let one choose: the exporter's default.
const count = 100

// unbraked are the flags of a scan that takes all that the server gives.
func unbraked(interval string, more []string) []string {
	return append([]string{"--scan.max-duty=1", fmt.Sprintf("--scan.count=%d", count), interval}, more...)
}

// What is asked of each key: of every one its bytes, type and TTL; of every one
// its bytes, of 1 in 16 type and TTL; all of it of 1 in 16.
var (
	full = []string{"--scan.sample=1", "--scan.detail=1"}
	lean = []string{"--scan.sample=1", "--scan.detail=16"}
	k16  = []string{"--scan.sample=16", "--scan.detail=16"}
)

// idle is nobody: what the timed client sees of the server alone.
type idle struct{ window time.Duration }

func idleFor(window time.Duration) func(context.Context, *lab, *server) (walker, error) {
	return func(context.Context, *lab, *server) (walker, error) { return idle{window}, nil }
}

func (i idle) walk(ctx context.Context) error    { return sleep(ctx, i.window) }
func (idle) keys(context.Context) (int64, error) { return 0, nil }
func (idle) cpu() (time.Duration, error)         { return 0, nil }
func (idle) peak() int64                         { return 0 }
func (idle) stop()                               {}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
