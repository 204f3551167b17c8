package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"redis_keyhealth_exporter/collector"
	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/topology"
	"redis_keyhealth_exporter/scanner"
)

func declareScrape(clause *kingpin.CmdClause, l *lab) func(context.Context) error {
	keys := clause.Flag("keys", "Mixed keys.").Default("100000").Int()
	times := clause.Flag("times", "Scrapes.").Default("200").Int()
	return func(ctx context.Context) error { return l.scrape(ctx, *keys, *times) }
}

func (l *lab) scrape(ctx context.Context, keys, times int) error {
	s, err := l.launch(ctx, mixed(keys))
	if err != nil {
		return err
	}
	defer s.close()
	var rows, goals [][]string
	for _, c := range []struct {
		what  string
		flags []string
	}{
		{"1 node, scanned at default settings", []string{neverPausing}},
		{"1 node, scanned at full speed", unbraked(neverPausing, nil)},
	} {
		one, bytes, err := l.scrapeOne(ctx, s, c.flags, times)
		if err != nil {
			return err
		}
		rows = append(rows, scrapeRow(c.what, one, bytes))
		if goals == nil { // at full speed the scan takes the CPU of whoever asks
			goals = append(goals, verdict("/metrics of "+c.what+", median", one.P50.Seconds(), 0.010, false, millis))
		}
	}
	state, err := scanned(ctx, s)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what   string
		series int
	}{{"100 nodes, --metrics.max-series at its default", 20_000}, {"100 nodes, all series", 1 << 20}} {
		many, bytes, err := scrapeMany(ctx, copies(state, 100), c.series, max(times/10, 5))
		if err != nil {
			return err
		}
		rows = append(rows, scrapeRow(c.what, many, bytes))
		goals = append(goals, verdict("/metrics of "+c.what+", median", many.P50.Seconds(), 0.5, false, millis))
	}
	text := fmt.Sprintf("`%s`: %s; %d scrapes of one node, %d of 100.\n%s.\n\n%s\n%s", l.commandLine(), s.describe(), times, max(times/10, 5), l.machine(s.version),
		markdown([]string{"/metrics of", "size", "median", "p99"}, rows), markdown(goalHeader(), goals))
	return l.publish("scrape", text)
}

func scrapeRow(what string, l latencies, bytes int) []string {
	return []string{what, fmt.Sprintf("%d KiB", bytes>>10), millis(l.P50.Seconds()), millis(l.P99.Seconds())}
}

// scrapeOne asks the exporter while it scans, once it has findings.
func (l *lab) scrapeOne(ctx context.Context, s *server, flags []string, times int) (latencies, int, error) {
	e, err := l.startExporter(ctx, s.Addr(), flags...)
	if err != nil {
		return latencies{}, 0, err
	}
	defer e.stop()
	if err := e.firstCycle(ctx); err != nil {
		return latencies{}, 0, e.explain(err)
	}
	return timed(ctx, e.url+"/metrics", times)
}

// timed gets a page again and again, compressed and over one connection, as
// Prometheus does.
func timed(ctx context.Context, url string, times int) (latencies, int, error) {
	var waits []time.Duration
	var bytes int64
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range times {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return latencies{}, 0, err
		}
		begin := time.Now()
		response, err := client.Do(request)
		if err != nil {
			return latencies{}, 0, err
		}
		bytes, err = io.Copy(io.Discard, response.Body)
		waits = append(waits, time.Since(begin))
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return latencies{}, 0, fmt.Errorf("%s: %s (%w)", url, response.Status, err)
		}
		if err := sleep(ctx, poll); err != nil {
			return latencies{}, 0, err
		}
	}
	return summarise(waits), int(bytes), nil
}

// scanned is what one cycle finds.
func scanned(ctx context.Context, s *server) (snapshot.NodeState, error) {
	redis, err := config.RedisFlags{Addr: s.Addr()}.Validate()
	if err != nil {
		return snapshot.NodeState{}, err
	}
	rules, err := policy.New(policy.Spec{})
	if err != nil {
		return snapshot.NodeState{}, err
	}
	node := topology.Standalone(redis)
	defer node.Close()
	one := scanner.New(node, scanner.Options{Policy: rules, Interval: time.Hour, Count: count, MaxDuty: 1, Sample: 1, TopKeys: 20, Logger: log.NewNopLogger()})
	if err := one.RunCycle(ctx); err != nil {
		return snapshot.NodeState{}, err
	}
	return one.State(), nil
}

// copies are so many nodes of one target that all look alike.
func copies(state snapshot.NodeState, n int) nodes {
	all := make(nodes, n)
	for i := range all {
		all[i] = state
		all[i].Status.Node = keyspace.NodeID{Target: "bench", Node: fmt.Sprintf("10.0.%d.%d:6379", i/250, i%250+1)}
	}
	return all
}

// nodes are states that are there to be scraped.
type nodes []snapshot.NodeState

func (n nodes) States() []snapshot.NodeState { return n }

// scrapeMany asks this process for the metrics of the nodes: an exporter of its
// own, but for the scanning.
func scrapeMany(ctx context.Context, all nodes, series, times int) (latencies, int, error) {
	registry := prometheus.NewRegistry()
	loaded := collector.Configuration{Loaded: time.Now()}
	registry.MustRegister(collector.New(collector.Options{
		Source: all, MaxSeries: series, Configuration: func() collector.Configuration { return loaded },
	}))
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	defer server.Close()
	return timed(ctx, server.URL, times)
}
