// Command bench measures what a scan costs the server, the network and itself,
// beside other ways to look at all keys, on redis-servers of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// command declares the flags of a subcommand and returns what runs it.
type command func(*kingpin.CmdClause, *lab) func(context.Context) error

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if runtime.GOOS != "linux" {
		return errors.New("only Linux tells what a process takes, in /proc")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	l := &lab{self: self, args: args, stdout: stdout, stderr: os.Stderr}
	l.place()
	app := kingpin.New("bench", "Measures what a scan costs, on redis-servers of its own.")
	app.Flag("exporter", "The program to measure.").Default("bin/redis_keyhealth_exporter").StringVar(&l.exporter)
	app.Flag("write", "Markdown file to put the tables into, between the markers <!-- name --> and <!-- /name -->.").StringVar(&l.write)

	runs := map[string]func(context.Context) error{}
	for _, c := range []struct {
		name, help string
		declare    command
		hidden     bool
	}{
		{"compare", "The cost of a walk over all keys: ours, a bare SCAN, redis-cli and redis_exporter, in turns.", declareCompare, false},
		{"foreground", "What others feel of a scan at default settings.", declareForeground, false},
		{"scrape", "How long /metrics takes.", declareScrape, false},
		{"callgrind", "The server's instructions per key. Fails beyond the limits: no noise excuses that.", declareCallgrind, false},
		{"large", "Memory and speed on many keys, and what follows for 1 G keys.", declareLarge, false},
		{"soak", "Whether memory, file descriptors and goroutines stay flat.", declareSoak, false},
		{"scan", "A bare SCAN of everything.", declareScan, true},
		{"probe", "A client whose requests are timed.", declareProbe, true},
	} {
		clause := app.Command(c.name, c.help)
		if c.hidden {
			clause.Hidden()
		}
		runs[c.name] = c.declare(clause, l)
	}
	name, err := app.Parse(args)
	if err != nil {
		return err
	}
	return runs[name](ctx)
}
