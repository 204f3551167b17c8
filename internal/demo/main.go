// Command demo shows the exporter at work on a redis-server of its own, filled
// with every kind of trouble that the rulebook knows.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"redis_keyhealth_exporter/internal/testredis"
)

func main() {
	forgetSettings()
	// Output that nobody reads any more must fail, not end the program before
	// it has cleaned up.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	d := demo{
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		interval: 5 * time.Second,
		every:    20 * time.Second,
		lifetime: 8 * time.Second,
		pickPort: testredis.FreePort,
	}
	err := d.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	fmt.Println("\nStopped: the exporter and redis-server are gone, with all their files.")
}

// forgetSettings clears the environment of what configures the exporter of
// whoever runs the demonstration: a password in REDIS_PASSWORD, say. The names
// to keep are few and known; those of flags are neither.
func forgetSettings() {
	keep := []string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains(keep, name) {
			os.Unsetenv(name)
		}
	}
}
