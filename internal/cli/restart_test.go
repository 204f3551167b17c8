package cli

import (
	"net/http"
	"path/filepath"
	"testing"

	"redis_keyhealth_exporter/internal/testredis"
)

// TestRestart: with a state file, what the last run found is there at once, as
// old as it is, even while the server is down.
func TestRestart(t *testing.T) {
	server := testredis.Start(t)
	plant(t, server.Client(t))
	args := []string{"--redis.addr=" + server.Addr(), "--state.file=" + filepath.Join(t.TempDir(), "state"), "--scan.max-duty=1"}
	const completed = "redis_keyhealth_scan_cycle_completed_timestamp_seconds"
	e := start(t, args...)
	e.awaitReady(t)
	before := sample(t, e.get(t, "/metrics").body, completed)
	e.stop(t)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}

	e = start(t, args...)
	eventually(t, "the server is found to be down", func() bool {
		return sample(t, e.get(t, "/metrics").body, "redis_keyhealth_scan_aborts_total", `reason="down"`) > 0
	})
	if a := e.get(t, "/-/ready"); a.status != http.StatusOK {
		t.Errorf("ready: %d %s", a.status, a.body)
	}
	metrics := e.get(t, "/metrics").body
	for _, c := range []struct {
		family string
		labels []string
		want   float64
	}{
		{completed, nil, before},
		{"redis_keyhealth_up", nil, 0},
		{"redis_keyhealth_keys", []string{`db="db0"`, `key_type="string"`}, 3},
		{"redis_keyhealth_big_keys", []string{`db="db0"`, `key_type="string"`, `severity="critical"`}, 1},
		{"redis_keyhealth_new_big_keys_total", []string{`key_type="string"`, `severity="critical"`}, 0},
	} {
		if got := sample(t, metrics, c.family, c.labels...); got != c.want {
			t.Errorf("%s%v is %v, want %v", c.family, c.labels, got, c.want)
		}
	}
	e.stop(t)
}
