package integration

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

// TestDutyOnTheServer: what the scan costs, by the server's own account, keeps to
// the budget and makes use of it: near, and far away over a jittery network.
func TestDutyOnTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute, and the race detector changes the cost")
	}
	const stretch = 12 * time.Second
	for about, tc := range map[string]struct {
		duty  float64
		delay func() time.Duration
	}{
		"near": {0.05, func() time.Duration { return 0 }},
		// A page in each of such round trips takes a little more than 1 %.
		"far": {0.02, func() time.Duration { return 15*time.Millisecond + rand.N(30*time.Millisecond) }},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			server := testredis.Start(t, "--enable-debug-command", "yes")
			client := server.Client(t)
			if err := client.Do(t.Context(), "DEBUG", "POPULATE", 300_000, "user", 50).Err(); err != nil {
				t.Fatal(err)
			}
			proxy := testredis.StartProxy(t, server.Addr())
			proxy.Garble(func(reply []byte) []byte { time.Sleep(tc.delay()); return reply })
			duty := tc.duty
			r := newRig(t, flagsOf(proxy.Addr()), func(o *scanner.Options) { o.MaxDuty, o.Interval, o.Detail = duty, 0, 1 })
			r.start()
			eventually(t, "the scan is on its way", func() bool { return r.status().Keys > 2000 })
			cpu, keys, start := serverCPU(t, client), r.status().Keys, time.Now()
			eventually(t, "some time passes", func() bool { return time.Since(start) > stretch })
			spent, wall := serverCPU(t, client)-cpu, time.Since(start)
			got := spent.Seconds() / wall.Seconds()
			t.Logf("duty %.4f by the server's account, %.4f by ours, %.0f keys/s", got, r.status().Duty, float64(r.status().Keys-keys)/wall.Seconds())
			if got > 1.5*duty || got < duty/5 {
				t.Errorf("duty %.4f, budget %v", got, duty)
			}
		})
	}
}

// serverCPU is what the server's main thread has used, what an idle server uses
// for itself included.
func serverCPU(t *testing.T, client *redis.Client) time.Duration {
	t.Helper()
	text, err := client.Info(t.Context(), "cpu").Result()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "used_cpu_sys_main_thread" || name == "used_cpu_user_main_thread" {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return time.Duration(sum * float64(time.Second))
}
