package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
)

func declareLarge(clause *kingpin.CmdClause, l *lab) func(context.Context) error {
	keys := clause.Flag("keys", "Small keys.").Default("20000000").Int()
	window := clause.Flag("window", "How long the scan at default settings is measured.").Default("1m").Duration()
	return func(ctx context.Context) error { return l.large(ctx, *keys, *window) }
}

const (
	rowFew  = "few keys, unbraked"
	rowMany = "many keys, unbraked"
)

var largeColumns = []column{
	show("keys/s", keysPerSecond, thousands),
	show("server CPU a key", serverCPU, micros),
	show("server CPU", serverShare, percent),
	show("client CPU a key", clientCPU, micros),
	show("wire a key", wire, plainBytes),
	show("largest RSS", rss, mebibytes),
}

// large looks at the memory of a scan of very many keys, beside one of a
// hundredth of them, and at its speed, from which follows what 1 G keys take.
func (l *lab) large(ctx context.Context, keys int, window time.Duration) error {
	got := results{}
	few, err := l.launch(ctx, small(keys/100))
	if err != nil {
		return err
	}
	_, one, err := l.follow(ctx, few, 0, 10*time.Second)
	few.close()
	if err != nil {
		return err
	}
	got[rowFew] = []sample{one}

	s, err := l.launch(ctx, small(keys))
	if err != nil {
		return err
	}
	defer s.close()
	l.say("two cycles of %s keys, unbraked", thousands(float64(keys)))
	held, many, err := l.follow(ctx, s, 2, 0)
	if err != nil {
		return err
	}
	got[rowMany] = []sample{many}
	l.say("at default settings for %v", window)
	gentle := subject{rowDefault, "", false, oursAtDefault(window)}
	// One request a second is for the measurement's sake.
	slow, err := l.measure(ctx, gentle, s, probing{1, 1})
	if err != nil {
		return err
	}
	got[rowDefault] = []sample{slow}

	rows, _ := held.rows()
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`: %s, beside %s.\n%s.\n\n", l.commandLine(), s.describe(), few.describe(), l.machine(s.version))
	b.WriteString(got.table([]subject{{name: rowFew}, {name: rowMany}, {name: rowDefault}}, largeColumns))
	b.WriteString("\nMany keys, unbraked, in the course of two cycles:\n\n" + markdown(courseHeader, rows) + "\n")
	b.WriteString(markdown(goalHeader(), [][]string{
		verdict("largest RSS, many keys", many.rss, 64<<20, false, mebibytes),
		verdict("largest RSS, many : few keys", many.rss/one.rss, 1.2, false, factor),
	}))
	if err := l.publish("large", b.String()); err != nil {
		return err
	}
	return l.publish("extrapolation", extrapolate(many, slow))
}

// follow scans without a brake for so many cycles and so long at the least, and
// tells what the exporter held meanwhile and what it cost.
func (l *lab) follow(ctx context.Context, s *server, cycles float64, least time.Duration) (course, sample, error) {
	e, err := l.startExporter(ctx, s.Addr(), unbraked(neverPausing, nil)...)
	if err != nil {
		return nil, sample{}, err
	}
	defer e.stop()
	w := &ours{exporter: e}
	before, err := take(ctx, w, s)
	if err != nil {
		return nil, sample{}, err
	}
	var held course
	for {
		some, err := e.watch(ctx, time.Second)
		if err != nil {
			return nil, sample{}, err
		}
		held = append(held, some...)
		m, err := e.metrics(ctx)
		if err != nil {
			return nil, sample{}, err
		}
		if m.sum("redis_keyhealth_scan_cycles_total") >= cycles && time.Since(before.at) >= least {
			break
		}
	}
	after, err := take(ctx, w, s)
	cost := difference(before, after)
	cost.rss = float64(e.peak())
	return held, cost, err
}

// extrapolate tells what 1 G keys on 100 nodes take, given the cost of a key on
// one node. Nodes are scanned side by side, each at its own pace.
func extrapolate(unbraked, gentle sample) string {
	const nodes, keys = 100, 1e9 / 100
	row := func(what string, write func(float64) string, f figure) []string {
		return []string{what, write(f(gentle)), write(f(unbraked))}
	}
	return markdown([]string{"1 G keys on 100 nodes = 10 M keys a node", "default settings", "unbraked"}, [][]string{
		row("keys/s of a node (measured)", thousands, keysPerSecond),
		row("a cycle: 10 M ÷ keys/s", duration, func(s sample) float64 { return keys / s.keysPerSecond }),
		row("server CPU of a node: keys/s × server CPU a key", percent, func(s sample) float64 { return s.keysPerSecond * s.server }),
		row("names a second: 100 × keys/s", thousands, func(s sample) float64 { return nodes * s.keysPerSecond }),
		row("exporter's CPU: that × client CPU a key", cores, func(s sample) float64 { return nodes * s.keysPerSecond * s.client }),
		row("network: that × wire a key", megabytes, func(s sample) float64 { return nodes * s.keysPerSecond * s.wire }),
		row("memory, with an exporter for each node: 100 × largest RSS", mebibytes, func(s sample) float64 { return nodes * s.rss }),
	})
}
