package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/internal/web"
)

// demo is one demonstration.
type demo struct {
	stdout, stderr io.Writer
	interval       time.Duration       // of the exporter's cycles
	every          time.Duration       // a new big key comes
	lifetime       time.Duration       // of such a key, once it was reported
	pickPort       func() (int, error) // for the exporter
}

// run shows everything until ctx ends, which is no error, and leaves nothing
// behind.
func (d *demo) run(ctx context.Context) (err error) {
	server, err := testredis.Launch(testredis.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	err = d.show(ctx, server.Addr())
	if ctx.Err() != nil {
		return nil // whatever broke, broke because of the end
	}
	return err
}

func (d *demo) show(ctx context.Context, addr string) error {
	if err := d.print("Filling a throw-away redis-server on %s and scanning it ...\n", addr); err != nil {
		return err
	}
	if err := load(ctx, addr); err != nil {
		return fmt.Errorf("filling redis-server on %s: %w", addr, err)
	}
	exporter, node, err := d.startExporter(ctx, addr)
	if err != nil {
		return err
	}
	defer exporter.stop()
	if err := d.greet(exporter.url, node); err != nil {
		return err
	}
	if err := d.showNewKeys(ctx, addr, exporter); err != nil {
		return err
	}
	if err := d.print("That was all that happens here; the exporter goes on until Ctrl-C.\n"); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-exporter.ended:
		return exporter.errEnded()
	}
}

// greet says where to look, and what was found so far.
func (d *demo) greet(url string, node *web.NodeReport) error {
	return d.print(`
  What was found   %[1]s/report
  The metrics      %[1]s/metrics
  All pages        %[1]s/

%[2]s
About every %[3]v a new big key comes, and goes after it was reported. Ctrl-C ends all.
`, url, summary(node), d.every)
}

// showNewKeys creates one big key after the other.
func (d *demo) showNewKeys(ctx context.Context, addr string, exporter *exporter) error {
	client, disconnect := connect(ctx, addr, newKeysDB)
	defer disconnect()
	tick := time.NewTicker(d.every)
	defer tick.Stop()
	for _, k := range newKeys() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-exporter.ended:
			return exporter.errEnded()
		case <-tick.C:
		}
		if err := d.comeAndGo(ctx, client, exporter, k); err != nil {
			return err
		}
	}
	return nil
}

// comeAndGo creates a big key, removes it again, and tells when the exporter has
// noticed the one and the other.
func (d *demo) comeAndGo(ctx context.Context, client *redis.Client, exporter *exporter, k family) error {
	if err := execute(ctx, client, k.commands(rand.New(rand.NewPCG(1, 2)))); err != nil {
		return fmt.Errorf("creating %s: %w", k.name, err)
	}
	created := time.Now()
	node, err := exporter.await(ctx, func(n *web.NodeReport) bool { return newBigKey(n, k.name) != nil })
	if err != nil {
		return err
	}
	found := newBigKey(node, k.name)
	what := fmt.Sprintf("new %s big key: %s, %s", found.Severity, found.Key, describe(&found.KeyReport))
	if err := d.event(what, "created", created); err != nil {
		return err
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d.lifetime):
	}
	if err := client.Unlink(ctx, k.name).Err(); err != nil {
		return fmt.Errorf("deleting %s: %w", k.name, err)
	}
	deleted := time.Now()
	if _, err := exporter.await(ctx, func(n *web.NodeReport) bool { return newBigKey(n, k.name) == nil }); err != nil {
		return err
	}
	return d.event("resolved: "+k.name, "deleted", deleted)
}

// newBigKey is what the report says of a big key that came after the first
// cycle; nil = nothing.
func newBigKey(node *web.NodeReport, name string) *web.BigKeyReport {
	for i := range node.NewBigKeys {
		if node.NewBigKeys[i].Key == name {
			return &node.NewBigKeys[i]
		}
	}
	return nil
}

func (d *demo) event(what, verb string, since time.Time) error {
	now := time.Now()
	return d.print("%s  %s, reported %.1f s after it was %s\n",
		now.Format(time.TimeOnly), what, now.Sub(since).Seconds(), verb)
}

// print fails when nobody reads any more.
func (d *demo) print(format string, args ...any) error {
	_, err := fmt.Fprintf(d.stdout, format, args...)
	return err
}
