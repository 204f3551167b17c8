package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// walker is a program that looks at all keys, ready to do so.
type walker interface {
	// walk does it once, or for a while.
	walk(ctx context.Context) error
	// keys is how many it has looked at since it was started.
	keys(ctx context.Context) (int64, error)
	// cpu is what it has used since then.
	cpu() (time.Duration, error)
	// peak is the largest RSS since then, in bytes; 0 = it has none of its own.
	peak() int64
	stop()
}

// subject is one thing to measure: a row of a table.
type subject struct {
	name    string
	program string // that must be on PATH; "" = none
	fewKeys bool   // it is too slow for all of them
	start   func(ctx context.Context, l *lab, s *server) (walker, error)
}

// frontline is a client of the server whose requests are timed meanwhile.
type frontline interface {
	// finish ends it and tells.
	finish(ctx context.Context) (latencies, error)
	stop()
}

// front starts a frontline.
type front interface {
	start(ctx context.Context, l *lab, s *server) (frontline, error)
}

// sample is the result of one measurement; NaN = does not apply.
type sample struct {
	keysPerSecond  float64
	server, client float64 // CPU seconds a key
	serverShare    float64 // CPU seconds a second, everybody's
	wire           float64 // bytes a key
	rss            float64 // largest, bytes
	block          float64 // longest, seconds
	p50, p90, p99  float64 // seconds
}

// mark is the state of all accounts at a moment.
type mark struct {
	at             time.Time
	keys           int64
	client, server time.Duration
	wire           int64
	block          time.Duration
}

func take(ctx context.Context, w walker, s *server) (mark, error) {
	keys, err := w.keys(ctx)
	client, err2 := w.cpu()
	info, err3 := s.info(ctx)
	if err := errors.Join(err, err2, err3); err != nil {
		return mark{}, err
	}
	server, err := info.cpu()
	wire, err2 := info.wire()
	return mark{time.Now(), keys, client, server, wire, info.longestBlock()}, errors.Join(err, err2)
}

// measure runs one subject.
func (l *lab) measure(ctx context.Context, what subject, s *server, f front) (sample, error) {
	if err := s.forgetBlocks(ctx); err != nil {
		return sample{}, err
	}
	w, err := what.start(ctx, l, s)
	if err != nil {
		return sample{}, err
	}
	defer w.stop()
	clients, err := f.start(ctx, l, s)
	if err != nil {
		return sample{}, err
	}
	defer clients.stop()
	before, err := take(ctx, w, s)
	if err != nil {
		return sample{}, err
	}
	if err := w.walk(ctx); err != nil {
		return sample{}, err
	}
	after, err := take(ctx, w, s)
	if err != nil {
		return sample{}, err
	}
	waits, err := clients.finish(ctx)
	if err != nil {
		return sample{}, err
	}
	got := difference(before, after)
	got.p50, got.p90, got.p99 = waits.P50.Seconds(), waits.P90.Seconds(), waits.P99.Seconds()
	if peak := w.peak(); peak > 0 {
		got.rss = float64(peak)
	}
	return got, nil
}

// difference is what was spent between two marks.
func difference(before, after mark) sample {
	nan := math.NaN()
	seconds := after.at.Sub(before.at).Seconds()
	got := sample{
		keysPerSecond: nan, server: nan, client: nan, wire: nan, rss: nan, block: nan,
		serverShare: (after.server - before.server).Seconds() / seconds,
	}
	if keys := float64(after.keys - before.keys); keys > 0 {
		got.keysPerSecond = keys / seconds
		got.server = (after.server - before.server).Seconds() / keys
		got.client = (after.client - before.client).Seconds() / keys
		got.wire = float64(after.wire-before.wire) / keys
		if after.block > 0 {
			got.block = after.block.Seconds()
		}
	}
	return got
}

// interleave measures every subject in each round, in an order that changes, so
// that what else the machine does hits all alike.
func (l *lab) interleave(ctx context.Context, rounds int, subjects []subject, f front, on func(subject) *server) (results, error) {
	got := results{}
	for round := range rounds {
		for _, i := range rand.New(rand.NewPCG(1, uint64(round))).Perm(len(subjects)) {
			what := subjects[i]
			l.say("round %d of %d: %s", round+1, rounds, what.name)
			one, err := l.measure(ctx, what, on(what), f)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what.name, err)
			}
			got[what.name] = append(got[what.name], one)
		}
	}
	return got, nil
}
