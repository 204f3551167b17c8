package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
)

// Names of the rows.
const (
	rowIdle     = "nobody"
	rowBare     = "bare SCAN"
	rowFull     = "full"
	rowLean     = "lean"
	rowK16      = "k = 16"
	rowBigKeys  = "redis-cli --bigkeys"
	rowMemKeys  = "redis-cli --memkeys"
	rowGroups   = "redis_exporter check-key-groups"
	rowKeys     = "redis_exporter check-keys"
	idleWindow  = 3 * time.Second
	groupsOfKey = `^([^:]+:[^:]+):`
)

// besideWalks is the timed client of the comparison: few requests, as their cost
// is in every row's figures.
var besideWalks = probing{rate: 250, connections: 5}

func compared() []subject {
	own := func(args func(addr string) []string) func(*lab, *server) []string {
		return func(l *lab, s *server) []string { return l.own(args(s.Addr())) }
	}
	return []subject{
		{rowIdle, "", false, idleFor(idleWindow)},
		{rowBare, "", false, toolRun(own(func(addr string) []string { return bareScan(addr, count) }))},
		{rowFull, "", false, oursUnbraked(full...)},
		{rowLean, "", false, oursUnbraked(lean...)},
		{rowK16, "", false, oursUnbraked(k16...)},
		{rowBigKeys, "redis-cli", false, toolRun(redisCLI("--bigkeys"))},
		{rowMemKeys, "redis-cli", false, toolRun(redisCLI("--memkeys"))},
		{rowGroups, peerProgram, false, peerRun(0, "-check-key-groups", groupsOfKey)},
		{rowKeys, peerProgram, true, peerRun(0, "-check-keys", "*")},
	}
}

var comparison = []column{
	show("keys/s", keysPerSecond, thousands),
	show("server CPU a key", serverCPU, micros),
	times("of it, bare SCAN", rowBare, serverCPU),
	show("client CPU a key", clientCPU, micros),
	show("wire a key", wire, plainBytes),
	show("RSS", rss, mebibytes),
	show("longest block", block, millis),
	show("others' p50", p50, micros),
	show("others' p99", p99, micros),
}

var comparisonGoals = []goal{
	{"server CPU, full : bare SCAN", rowFull, rowBare, serverCPU, 3.2, false, factor},
	{"server CPU, lean : bare SCAN", rowLean, rowBare, serverCPU, 2.5, false, factor},
	{"server CPU, k = 16 : bare SCAN", rowK16, rowBare, serverCPU, 1.4, false, factor},
	{"server CPU, full : --bigkeys", rowFull, rowBigKeys, serverCPU, 0.33, false, factor},
	{"keys/s, full : --bigkeys", rowFull, rowBigKeys, keysPerSecond, 5, true, factor},
	{"server CPU, full : --memkeys", rowFull, rowMemKeys, serverCPU, 0.33, false, factor},
	{"keys/s, full : --memkeys", rowFull, rowMemKeys, keysPerSecond, 5, true, factor},
	{"server CPU, full : check-keys", rowFull, rowKeys, serverCPU, 1.0 / 30, false, factor},
	{"keys/s, full : check-keys", rowFull, rowKeys, keysPerSecond, 60, true, factor},
	{"server CPU, full : check-key-groups", rowFull, rowGroups, serverCPU, 1, false, factor},
	{"client CPU a key, full", rowFull, "", clientCPU, 1e-6, false, micros},
	{"RSS, full", rowFull, "", rss, 40 << 20, false, mebibytes},
}

func declareCompare(clause *kingpin.CmdClause, l *lab) func(context.Context) error {
	keys := clause.Flag("keys", "Mixed keys.").Default("1000000").Int()
	few := clause.Flag("few-keys", "Keys for check-keys, which takes a thousandth of a second for each.").Default("20000").Int()
	rounds := clause.Flag("rounds", "Measurements of each.").Default("5").Int()
	return func(ctx context.Context) error { return l.compare(ctx, *keys, *few, *rounds) }
}

func (l *lab) compare(ctx context.Context, keys, few, rounds int) error {
	subjects := slices.DeleteFunc(compared(), func(s subject) bool { return l.missing(s.program) })
	big, err := l.launch(ctx, mixed(keys))
	if err != nil {
		return err
	}
	defer big.close()
	little, err := l.launch(ctx, mixed(min(few, keys)))
	if err != nil {
		return err
	}
	defer little.close()
	got, err := l.interleave(ctx, rounds, subjects, besideWalks, func(s subject) *server {
		if s.fewKeys {
			return little
		}
		return big
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`: %s; medians of %d interleaved rounds.\n%s.\n\n", l.commandLine(), big.describe(), rounds, l.machine(big.version))
	b.WriteString(got.table(subjects, comparison))
	fmt.Fprintf(&b, "\ncheck-keys walks %s keys of the same kinds only.\n\n", thousands(float64(little.data.keys)))
	b.WriteString(got.goals(comparisonGoals))
	return l.publish("compare", b.String())
}
