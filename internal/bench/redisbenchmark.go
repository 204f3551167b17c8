package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	benchmarkProgram = "redis-benchmark"

	// benchmarkKeys are what redis-benchmark reads and has written before.
	benchmarkKeys = 100_000
)

// benchmarking is redis-benchmark as the timed client: each of its connections
// sends the next request when the last one is answered.
type benchmarking struct {
	clients             int
	perSecond, capacity float64 // requests, of this many clients and of 50
	window              time.Duration
}

type benchmark struct {
	*child
	stdout *bytes.Buffer
}

func (b benchmarking) start(ctx context.Context, l *lab, s *server) (frontline, error) {
	return l.startBenchmark(ctx, s, "get", b.clients, int(b.perSecond*b.window.Seconds()))
}

func (l *lab) startBenchmark(ctx context.Context, s *server, command string, clients, requests int) (*benchmark, error) {
	out := &bytes.Buffer{}
	c, err := start(ctx, out, slices.Concat(l.otherCPUs, []string{
		benchmarkProgram, "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port()), "--csv", "-d", "100", "-r", strconv.Itoa(benchmarkKeys),
		"-t", command, "-c", strconv.Itoa(clients), "-n", strconv.Itoa(requests),
	})...)
	if err != nil {
		return nil, err
	}
	return &benchmark{c, out}, nil
}

func (b *benchmark) result(ctx context.Context) (benchmarkResult, error) {
	if err := b.wait(ctx); err != nil {
		return benchmarkResult{}, err
	}
	return parseBenchmark(b.stdout.String())
}

func (b *benchmark) finish(ctx context.Context) (latencies, error) {
	got, err := b.result(ctx)
	return got.latencies, err
}

// halfOfCapacity finds out how many clients make about half of the requests
// that the server can bear.
func (l *lab) halfOfCapacity(ctx context.Context, s *server) (benchmarking, error) {
	try := func(command string, clients int) (float64, error) {
		b, err := l.startBenchmark(ctx, s, command, clients, benchmarkKeys)
		if err != nil {
			return 0, err
		}
		defer b.stop()
		got, err := b.result(ctx)
		return got.perSecond, err
	}
	if _, err := try("set", 50); err != nil {
		return benchmarking{}, err
	}
	capacity, err := try("get", 50)
	if err != nil {
		return benchmarking{}, err
	}
	best := benchmarking{capacity: capacity}
	for clients := 1; clients <= 10; clients++ {
		perSecond, err := try("get", clients)
		if err != nil {
			return benchmarking{}, err
		}
		if math.Abs(perSecond-capacity/2) < math.Abs(best.perSecond-capacity/2) {
			best.clients, best.perSecond = clients, perSecond
		}
		if perSecond > capacity/2 {
			break
		}
	}
	return best, nil
}

type benchmarkResult struct {
	latencies
	perSecond float64
}

var errBenchmark = errors.New("redis-benchmark printed no line of results")

// parseBenchmark reads what --csv prints: names, then the values of one test.
func parseBenchmark(text string) (benchmarkResult, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 2 {
		return benchmarkResult{}, fmt.Errorf("%w: %q", errBenchmark, text)
	}
	value := func(name string) float64 {
		var v float64
		i := slices.Index(rows[0], name)
		if i < 0 {
			err = fmt.Errorf("%w: no %s in %q", errBenchmark, name, text)
		} else if n, wrong := strconv.ParseFloat(rows[1][i], 64); wrong != nil {
			err = fmt.Errorf("%w: %w", errBenchmark, wrong)
		} else {
			v = n
		}
		return v
	}
	in := func(name string) time.Duration { return time.Duration(value(name) * float64(time.Millisecond)) }
	got := benchmarkResult{latencies{P50: in("p50_latency_ms"), P90: in("p95_latency_ms"), P99: in("p99_latency_ms")}, value("rps")}
	return got, err
}
