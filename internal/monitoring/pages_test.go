package monitoring

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const newBigKey = "RedisKeyHealthNewBigKey"

// members adds n members to a sorted set.
func members(t *testing.T, client *redis.Client, key string, n int) {
	t.Helper()
	all := make([]redis.Z, n)
	for i := range all {
		all[i] = redis.Z{Score: float64(i), Member: fmt.Sprintf("member:%d", i)}
	}
	if err := client.ZAdd(t.Context(), key, all...).Err(); err != nil {
		t.Fatal(err)
	}
}

// startOf tells of each key that pages named, when its alert began; a page that
// is repeated for another beginning is an error.
func (s *stack) startOf(status string) map[string]time.Time {
	s.t.Helper()
	begins := map[string]time.Time{}
	for _, a := range s.pages.about(newBigKey, status) {
		key := a.Labels["key"]
		if before, known := begins[key]; known && !before.Equal(a.StartsAt) {
			s.t.Fatalf("%s pages twice: since %v and %v", key, before, a.StartsAt)
		}
		begins[key] = a.StartsAt
	}
	return begins
}

// TestPage follows two new big keys from their first second to the end of their
// alerts, on a Redis that was messy before anyone watched.
func TestPage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	t.Parallel()
	s := newStack(t)
	client := s.redis.Client(t)
	set := func(key string, bytes int) {
		t.Helper()
		if err := client.Set(t.Context(), key, strings.Repeat("v", bytes), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	cycles := func(n float64) func() bool {
		return func() bool {
			return len(s.query(fmt.Sprintf(`redis_keyhealth_scan_cycles_total{result="complete"} >= %v`, n))) == 1
		}
	}
	s.eventually(time.Minute, "two cycles", cycles(2))

	const bigString, bigZset = "shop:basket:4711", "shop:ranking:all"
	planted := time.Now()
	set(bigString, 6<<20)
	members(t, client, bigZset, 20_000)
	s.eventually(2*time.Minute, "a page for each of the two keys", func() bool {
		begins := s.startOf("firing")
		return !begins[bigString].IsZero() && !begins[bigZset].IsZero()
	})
	t.Logf("paged after %v", time.Since(planted).Round(time.Second))
	for _, a := range s.pages.about(newBigKey, "firing") {
		if a.Labels["severity"] != "critical" || a.Labels["target"] != "shop" || a.Labels["db"] != "db0" || a.Labels["namespace"] != "default" {
			t.Errorf("labels %v", a.Labels)
		}
		text := fmt.Sprint(a.Annotations)
		if !strings.Contains(text, `"`+a.Labels["key"]+`"`) || !strings.Contains(text, "iB") || !strings.Contains(a.Annotations["runbook_url"], "runbook") {
			t.Errorf("annotations %v", a.Annotations)
		}
	}

	s.restartExporter()
	restarted := fmt.Sprint("redis_keyhealth_scan_cycle_completed_timestamp_seconds > ", time.Now().Unix())
	s.eventually(time.Minute, "the exporter is back", func() bool { return len(s.query(restarted)) == 1 })
	time.Sleep(40 * time.Second) // as long as a new alert would take
	if begins := s.startOf("firing"); len(begins) != 2 {
		t.Errorf("pages of %v", begins)
	}
	if resolved := s.pages.about(newBigKey, "resolved"); len(resolved) > 0 {
		t.Errorf("resolved by a restart: %+v", resolved)
	}

	if err := client.Unlink(t.Context(), bigString, bigZset).Err(); err != nil {
		t.Fatal(err)
	}
	deleted := time.Now()
	s.eventually(3*time.Minute, "both are resolved", func() bool { return len(s.startOf("resolved")) == 2 })
	t.Logf("resolved after %v", time.Since(deleted).Round(time.Second))
	for name := range s.pages.names() {
		if name != newBigKey {
			t.Errorf("another page: %s", name)
		}
	}
}

// TestFlood: a release that makes 30 big keys at once is one page, not thirty.
func TestFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	t.Parallel()
	s := newStack(t)
	client := s.redis.Client(t)
	s.eventually(time.Minute, "two cycles", func() bool { return len(s.query(`redis_keyhealth_scan_cycles_total{result="complete"} >= 2`)) == 1 })
	for i := range 30 {
		members(t, client, fmt.Sprint("shop:flood:", i), 12_000)
	}
	s.eventually(2*time.Minute, "a page", func() bool { return len(s.pages.about(newBigKey+"Flood", "firing")) > 0 })
	time.Sleep(45 * time.Second) // as long as those of the keys would take
	if floods := s.pages.about(newBigKey+"Flood", "firing"); len(floods) != 1 || !strings.Contains(floods[0].Annotations["description"], "30 keys") {
		t.Errorf("%+v", floods)
	}
	if begins := s.startOf("firing"); len(begins) != 0 {
		t.Errorf("pages of single keys too: %v", begins)
	}
}
