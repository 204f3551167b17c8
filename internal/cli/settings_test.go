package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/testredis"
)

// TestSettings: what a flag says reaches what it is about.
func TestSettings(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	for db := range 16 {
		fill(t, client, db, 100)
	}
	e := start(t, "--redis.addr="+server.Addr(), "--scan.max-duty=1",
		"--scan.count=5", "--top.keys=3", "--metrics.max-series=1000", "--server.config-probe")
	e.awaitReady(t)
	metrics := e.get(t, "/metrics").body
	// SCAN may return a few names more than COUNT, but not twice as many.
	if pages := sample(t, metrics, "redis_keyhealth_scan_probes_total", `command="scan"`); pages < 1600/10 {
		t.Errorf("--scan.count=5: 1600 names came in %v pages", pages)
	}
	if dropped := sample(t, metrics, "redis_keyhealth_series_dropped"); dropped == 0 {
		t.Error("--metrics.max-series=1000: no series is dropped")
	}
	if evaluated := sample(t, metrics, "redis_keyhealth_rule_evaluated", `rule="lazyfree_off"`); evaluated != 1 {
		t.Error("--server.config-probe: no setting was read")
	}
	if report := e.get(t, "/report.json").body; strings.Count(report, `"db": "db`) == 0 || strings.Count(between(t, report, `"top_by_bytes"`, `]`), `"key"`) != 3 {
		t.Error("--top.keys=3: the list has another length")
	}
}

// TestPace: a limit holds the scan back, which takes milliseconds without one.
// The least pace that a small duty leads to is 500 names per second.
func TestPace(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, most of them asleep")
	}
	const keys = 600
	server := testredis.Start(t)
	fill(t, server.Client(t), 0, keys)
	for _, limit := range []string{"--scan.max-keys-per-second=500", "--scan.max-duty=0.0001"} {
		t.Run(limit, func(t *testing.T) {
			e := start(t, "--redis.addr="+server.Addr(), limit)
			e.awaitReady(t)
			took := sample(t, e.get(t, "/metrics").body, "redis_keyhealth_scan_cycle_duration_seconds")
			if took < keys/500.0/2 {
				t.Errorf("a cycle took %v s", took)
			}
		})
	}
}

// fill writes small keys.
func fill(t *testing.T, c *redis.Client, db, keys int) {
	t.Helper()
	_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Do(t.Context(), "select", db)
		for i := range keys {
			p.Set(t.Context(), fmt.Sprintf("shop:item:%d", i), "v", 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// between cuts a piece out of a text.
func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, from)
	piece, _, closed := strings.Cut(rest, to)
	if !found || !closed {
		t.Fatalf("nothing between %q and %q in %s", from, to, text)
	}
	return piece
}
