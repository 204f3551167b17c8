package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/alecthomas/kingpin/v2"
)

var errNotFlat = errors.New("something grows")

func declareSoak(clause *kingpin.CmdClause, l *lab) func(context.Context) error {
	keys := clause.Flag("keys", "Mixed keys.").Default("100000").Int()
	minutes := clause.Flag("minutes", "For how long.").Default("10").Float64()
	return func(ctx context.Context) error {
		return l.soak(ctx, *keys, time.Duration(*minutes*float64(time.Minute)))
	}
}

// soak scans as fast as it can while big keys come and go, connections break and
// the server hangs, and looks whether anything grows.
func (l *lab) soak(ctx context.Context, keys int, d time.Duration) error {
	s, err := l.launch(ctx, mixed(keys))
	if err != nil {
		return err
	}
	defer s.close()
	e, err := l.startExporter(ctx, s.Addr(), unbraked(neverPausing, nil)...)
	if err != nil {
		return err
	}
	defer e.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	trouble := make(chan error, 1)
	go func() { trouble <- s.unrest(ctx, e) }()
	l.say("watching for %v", d)
	all, err := e.watch(ctx, d)
	cancel()
	if broken := <-trouble; err == nil {
		err = broken
	}
	if err != nil {
		return err
	}
	after, err := e.metrics(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	rows, allFlat := all.rows()
	text := fmt.Sprintf("`%s`: %s; %s cycles, %s of them aborted by broken connections and hangs of the server; %s new big keys; a scrape a second.\n%s.\n\n%s",
		l.commandLine(), s.describe(),
		thousands(after.sum("redis_keyhealth_scan_cycles_total")), thousands(after.sum("redis_keyhealth_scan_cycles_total", `result="aborted"`)),
		thousands(after.sum("redis_keyhealth_new_big_keys_total")), l.machine(s.version), markdown(courseHeader, rows))
	if err := l.publish("soak", text); err != nil {
		return err
	}
	if !allFlat {
		return errNotFlat
	}
	return nil
}

const (
	unrestEvery = 500 * time.Millisecond

	// In units of that: how long a big key lives, and how often all connections
	// break and the server hangs.
	bigKeyLives = 20
	breakEvery  = 30
	hangEvery   = 120

	// hangs is longer than the exporter waits for a reply.
	hangs = 7 * time.Second
)

// unrest goes on until ctx ends, which is no error.
func (s *server) unrest(ctx context.Context, e *exporter) error {
	for n := 1; ctx.Err() == nil; n++ {
		err := s.stir(ctx, e, n)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		_ = sleep(ctx, unrestEvery)
	}
	return nil
}

func (s *server) stir(ctx context.Context, e *exporter, n int) error {
	big := func(n int) string { return "soak:" + strconv.Itoa(n) }
	err := errors.Join(
		s.client.SetRange(ctx, big(n), 6<<20, "x").Err(), // critical: over 5 MiB
		s.client.Unlink(ctx, big(n-bigKeyLives)).Err(),
	)
	if err != nil {
		return err
	}
	if _, err := e.get(ctx, "/report"); err != nil {
		return err
	}
	if n%breakEvery == 0 {
		if err := s.client.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			return err
		}
	}
	if n%hangEvery != 0 {
		return nil
	}
	if err := s.Pause(); err != nil {
		return err
	}
	_ = sleep(ctx, hangs)
	return s.Resume()
}
