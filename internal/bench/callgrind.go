package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// countedWalk is one whose instructions are counted.
type countedWalk struct {
	row   string
	flags []string // of the exporter; nil = a bare SCAN
	most  float64  // times the bare SCAN's; 0 = no limit
}

// counted have limits that are not those of the time: a bare SCAN waits for
// memory most of its time.
var counted = []countedWalk{
	{rowBare, nil, 0},
	{rowFull, full, 7.5},
	{rowLean, lean, 3.6},
	{rowK16, k16, 0},
}

// tolerance is by how much a limit may be exceeded before the gate fails: builds
// of a server differ by as much, and lean is close to its limit.
const tolerance = 1.03

var errGoals = errors.New("a limit is exceeded")

func declareCallgrind(clause *kingpin.CmdClause, l *lab) func(context.Context) error {
	keys := clause.Flag("keys", "Mixed keys.").Default("20000").Int()
	servers := clause.Flag("servers", "Servers to start, one after another.").Default("3").Int()
	more := clause.Flag("more-servers", "And then, until no limit is exceeded.").Default("5").Int()
	return func(ctx context.Context) error { return l.callgrind(ctx, *keys, *servers, *more) }
}

// callgrind counts on several servers and takes the least. Each has hash tables
// of its own, by a random seed: where the names of our commands collide in them,
// that adds some percent, as does another load of the machine, since pages
// that seem slow are made smaller.
func (l *lab) callgrind(ctx context.Context, keys, servers, more int) error {
	if l.missing("valgrind") {
		return errors.New("needs valgrind")
	}
	least := map[string]float64{}
	var version string
	started := 0
	for started < servers || exceeds(least) && started < servers+more {
		counts, on, err := l.count(ctx, keys)
		if err != nil {
			return err
		}
		version = on
		started++
		for row, n := range counts {
			if had, ok := least[row]; !ok || n < had {
				least[row] = n
			}
		}
	}
	var rows, goals [][]string
	for _, c := range counted {
		ratio := least[c.row] / least[rowBare]
		rows = append(rows, []string{c.row, thousands(least[c.row] / float64(keys)), factor(ratio)})
		if c.most > 0 {
			goals = append(goals, verdict("instructions, "+c.row+" : bare SCAN", ratio, c.most, false, factor))
		}
	}
	text := fmt.Sprintf("`%s`: %s keys, redis-server %s under valgrind's callgrind; the least of %d servers.\n\n%s\n%s",
		l.commandLine(), thousands(float64(keys)), version, started,
		markdown([]string{"", "instructions a key", "of it, bare SCAN"}, rows),
		markdown(goalHeader(), goals))
	if err := l.publish("callgrind", text); err != nil {
		return err
	}
	if exceeds(least) {
		return errGoals
	}
	return nil
}

// exceeds tells whether any limit is, by more than the tolerance.
func exceeds(instructions map[string]float64) bool {
	return slices.ContainsFunc(counted, func(c countedWalk) bool {
		return c.most > 0 && instructions[c.row] > tolerance*c.most*instructions[rowBare]
	})
}

// count starts a server and counts the instructions of each walk.
func (l *lab) count(ctx context.Context, keys int) (counts map[string]float64, version string, err error) {
	dir, err := os.MkdirTemp("", "callgrind-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "out")
	valgrind := []string{"valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=" + out}
	s, err := l.launch(ctx, mixed(keys), slices.Concat(l.urgent, valgrind)...)
	if err != nil {
		return nil, "", err
	}
	defer s.close()
	// The server's own housekeeping is a matter of time, not of keys.
	if err := s.client.ConfigSet(ctx, "hz", "1").Err(); err != nil {
		return nil, "", err
	}
	// Every access moves a table's growth on by a step: it must be over before a
	// scan is counted.
	if err := l.oneCycle(ctx, s, full); err != nil {
		return nil, "", err
	}
	info, err := s.info(ctx)
	if err != nil {
		return nil, "", err
	}
	instructions := &counter{server: info["process_id"], out: out}
	counts = map[string]float64{}
	for _, c := range counted {
		counts[c.row], err = l.undisturbed(ctx, s, instructions, c)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", c.row, err)
		}
	}
	return counts, s.version, nil
}

// undisturbed counts a walk again if it took more pages than it should, and
// returns the least.
func (l *lab) undisturbed(ctx context.Context, s *server, instructions *counter, walk countedWalk) (float64, error) {
	const attempts = 4
	least := math.Inf(1)
	for range attempts {
		if err := s.client.ConfigResetStat(ctx).Err(); err != nil {
			return 0, err
		}
		n, err := instructions.count(ctx, func() error {
			if walk.flags == nil {
				return l.oneScan(ctx, s)
			}
			return l.oneCycle(ctx, s, walk.flags)
		})
		if err != nil {
			return 0, err
		}
		least = min(least, n)
		info, err := s.info(ctx)
		if err != nil {
			return 0, err
		}
		if info.calls("scan") <= s.data.keys/count+1 {
			break
		}
	}
	return least, nil
}

func (l *lab) oneScan(ctx context.Context, s *server) error {
	c, err := start(ctx, io.Discard, l.own(bareScan(s.Addr(), count))...)
	if err != nil {
		return err
	}
	return c.wait(ctx)
}

// oneCycle lets the exporter scan everything once. What a server under valgrind
// takes for it says nothing of its load.
func (l *lab) oneCycle(ctx context.Context, s *server, flags []string) error {
	e, err := l.startExporter(ctx, s.Addr(), unbraked("--scan.interval=24h", flags)...)
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
