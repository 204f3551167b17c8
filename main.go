// Command redis_keyhealth_exporter watches over the health of the keys in
// Redis, for Prometheus.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"redis_keyhealth_exporter/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
