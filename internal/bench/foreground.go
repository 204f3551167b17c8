package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
)

const rowDefault = "default settings"

var foreground = []column{
	show("keys/s", keysPerSecond, thousands),
	show("server CPU, all in all", serverShare, percent),
	show("p50", p50, micros),
	show("p90", p90, micros),
	show("p99", p99, micros),
	times("p50 : nobody", rowIdle, p50),
	times("p99 : nobody", rowIdle, p99),
}

var foregroundGoals = []goal{
	{"p50, default settings : nobody", rowDefault, rowIdle, p50, 1.1, false, factor},
	{"p99, default settings : nobody", rowDefault, rowIdle, p99, 1.6, false, factor},
	{"p99, default settings : check-key-groups", rowDefault, rowGroups, p99, 1.0 / 6, false, factor},
}

var halfLoad = []column{
	show("keys/s", keysPerSecond, thousands),
	show("server CPU, all in all", serverShare, percent),
	show("p50", p50, micros),
	show("p99", p99, micros),
	times("p99 : nobody", rowIdle, p99),
}

var halfLoadGoals = []goal{
	{"p99 of redis-benchmark, default settings : nobody", rowDefault, rowIdle, p99, 1.05, false, factor},
}

func declareForeground(clause *kingpin.CmdClause, l *lab) func(context.Context) error {
	keys := clause.Flag("keys", "Mixed keys.").Default("1000000").Int()
	rounds := clause.Flag("rounds", "Measurements of each.").Default("7").Int()
	window := clause.Flag("window", "Length of a measurement.").Default("5s").Duration()
	rate := clause.Flag("rate", "Requests a second of the timed client.").Default("5000").Int()
	return func(ctx context.Context) error { return l.foreground(ctx, *keys, *rounds, *window, *rate) }
}

func (l *lab) foreground(ctx context.Context, keys, rounds int, window time.Duration, rate int) error {
	s, err := l.launch(ctx, mixed(keys))
	if err != nil {
		return err
	}
	defer s.close()
	pair := []subject{
		{rowIdle, "", false, idleFor(window)},
		{rowDefault, "", false, oursAtDefault(window)},
	}
	all := slices.Clone(pair)
	if !l.missing(peerProgram) {
		all = append(all, subject{rowGroups, peerProgram, false, peerRun(window, "-check-key-groups", groupsOfKey)})
	}
	onIt := func(subject) *server { return s }
	got, err := l.interleave(ctx, rounds, all, probing{rate, 20}, onIt)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`: %s; medians of %d interleaved rounds of %v.\n%s.\n\n", l.commandLine(), s.describe(), rounds, window, l.machine(s.version))
	fmt.Fprintf(&b, "A client of %s GETs a second on 20 connections, at fixed times; check-key-groups is scraped again and again:\n\n", thousands(float64(rate)))
	b.WriteString(got.table(all, foreground) + "\n")
	b.WriteString(got.goals(foregroundGoals) + "\n")
	if !l.missing(benchmarkProgram) {
		load, err := l.halfOfCapacity(ctx, s)
		if err != nil {
			return err
		}
		load.window = window
		if got, err = l.interleave(ctx, rounds, pair, load, onIt); err != nil {
			return err
		}
		fmt.Fprintf(&b, "redis-benchmark with %d clients, which is %s of the %s GETs a second that 50 clients reach:\n\n",
			load.clients, percent(load.perSecond/load.capacity), thousands(load.capacity))
		b.WriteString(got.table(pair, halfLoad) + "\n")
		b.WriteString(got.goals(halfLoadGoals))
	}
	return l.publish("foreground", b.String())
}
