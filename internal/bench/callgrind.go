package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// callgrindGoals are limits of the instructions that the server executes. They
// are the same whatever else the machine does. Their ratios are larger than
// those of the time, as a bare SCAN waits for memory most of its time.
var callgrindGoals = []struct {
	row   string
	most  float64 // times those of a bare SCAN
	flags []string
}{
	{rowFull, 7.5, full},
	{rowLean, 3.6, lean},
	{rowK16, 0, k16},
}

var errGoals = errors.New("a limit is exceeded")

func declareCallgrind(clause *kingpin.CmdClause, l *lab) func(context.Context) error {
	keys := clause.Flag("keys", "Mixed keys.").Default("20000").Int()
	return func(ctx context.Context) error { return l.callgrind(ctx, *keys) }
}

func (l *lab) callgrind(ctx context.Context, keys int) error {
	if l.missing("valgrind") {
		return errors.New("needs valgrind")
	}
	dir, err := os.MkdirTemp("", "callgrind-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out, failed := filepath.Join(dir, "out"), false
	s, err := l.launch(ctx, mixed(keys), "valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file="+out)
	if err != nil {
		return err
	}
	defer s.close()
	// The server's own housekeeping is a matter of time, not of keys.
	if err := s.client.ConfigSet(ctx, "hz", "1").Err(); err != nil {
		return err
	}
	info, err := s.info(ctx)
	if err != nil {
		return err
	}
	g := &counter{server: info["process_id"], out: out}
	bare, err := g.count(ctx, func() error {
		c, err := start(ctx, io.Discard, l.own(bareScan(s.Addr(), count))...)
		if err != nil {
			return err
		}
		return c.wait(ctx)
	})
	if err != nil {
		return err
	}
	perKey := func(instructions float64) string { return thousands(instructions / float64(keys)) }
	rows, goals := [][]string{{rowBare, perKey(bare), factor(1)}}, [][]string{}
	for _, goal := range callgrindGoals {
		instructions, err := g.count(ctx, func() error { return l.oneCycle(ctx, s, goal.flags) })
		if err != nil {
			return fmt.Errorf("%s: %w", goal.row, err)
		}
		ratio := instructions / bare
		rows = append(rows, []string{goal.row, perKey(instructions), factor(ratio)})
		if goal.most > 0 {
			goals = append(goals, verdict("instructions, "+goal.row+" : bare SCAN", ratio, goal.most, false, factor))
			failed = failed || ratio > goal.most
		}
	}
	text := fmt.Sprintf("`%s`: %s under valgrind's callgrind, Redis %s.\n\n%s\n%s", l.commandLine(), s.describe(), s.version,
		markdown([]string{"", "instructions a key", "of it, bare SCAN"}, rows),
		markdown(goalHeader(), goals))
	if err := l.publish("callgrind", text); err != nil {
		return err
	}
	if failed {
		return errGoals
	}
	return nil
}

// oneCycle lets the exporter scan everything once. What a server under valgrind
// takes for it says nothing of its load.
func (l *lab) oneCycle(ctx context.Context, s *server, flags []string) error {
	e, err := l.startExporter(ctx, s.Addr(), slices.Concat(unbraked, flags, []string{"--scan.interval=24h"})...)
	if err != nil {
		return err
	}
	defer e.stop()
	return e.explain(e.firstCycle(ctx))
}

// counter counts the instructions of a process under callgrind.
type counter struct {
	server string // its PID
	out    string // where callgrind writes, with .1, .2 and so on behind it
	dumps  int
}

// count tells how many instructions the server executes meanwhile.
func (c *counter) count(ctx context.Context, meanwhile func() error) (float64, error) {
	if err := c.control(ctx, "-i", "on"); err != nil {
		return 0, err
	}
	if err := meanwhile(); err != nil {
		return 0, err
	}
	if err := errors.Join(c.control(ctx, "-i", "off"), c.control(ctx, "-d")); err != nil {
		return 0, err
	}
	c.dumps++
	dump, err := os.ReadFile(fmt.Sprintf("%s.%d", c.out, c.dumps))
	if err != nil {
		return 0, err
	}
	return parseTotals(string(dump))
}

func (c *counter) control(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "callgrind_control", append(args, c.server)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("callgrind_control %v: %w: %s", args, err, out)
	}
	return nil
}

// parseTotals reads the sum at the end of what callgrind writes.
func parseTotals(dump string) (float64, error) {
	_, rest, found := strings.Cut(dump, "\ntotals: ")
	number, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(number, 64)
	if !found || err != nil || n == 0 {
		return 0, fmt.Errorf("callgrind has counted nothing: totals %q", number)
	}
	return n, nil
}
