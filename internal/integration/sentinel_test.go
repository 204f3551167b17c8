package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

const sentinelPassword = "of-the-sentinels"

func sentinelFlags(t *testing.T, d *testredis.Sentinels) config.RedisFlags {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(sentinelPassword), 0o600); err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for _, s := range d.Sentinels {
		addrs = append(addrs, s.Addr())
	}
	return config.RedisFlags{Addr: strings.Join(addrs, ","), SentinelMaster: testredis.MasterName, SentinelPasswordFile: file}
}

// bigKeys are n strings above the warning limit.
func bigKeys(prefix string, n int) [][]any {
	commands := make([][]any, n)
	for i := range commands {
		commands[i] = []any{"SET", fmt.Sprintf("%s:%d", prefix, i), strings.Repeat("x", 20_000)}
	}
	return commands
}

// TestSentinelFailover: the healthy replica is scanned; after the primary's death
// its cycle is aborted and another begins on what the sentinels then name; the
// same keys are counted once, and none of them is new.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	d := testredis.StartSentinels(t, 2, sentinelPassword)
	old := d.Servers[0]
	load(t, old.Client(t), 0, append(small("user", 3000), bigKeys("big", 5)...)...)
	f := newFleet(t, sentinelFlags(t, d), func(o *scanner.Options) { o.MaxKeysPerSecond = 2000 })
	f.scanned(old.Addr())
	n := f.node(old.Addr())
	if n.Status.Info.Role != "replica" || n.Status.Info.Address == old.Addr() || !n.Status.Up {
		t.Errorf("scanned is %+v", n.Status.Info)
	}
	before := f.sums()
	if keys := before[label("keys", "db=db0", "key_type=string")]; keys != 3005 {
		t.Errorf("%v keys", keys)
	}
	if p, r := before[label("topology_nodes", "role=primary")], before[label("topology_nodes", "role=replica")]; p != 1 || r != 2 {
		t.Errorf("%v primaries, %v replicas", p, r)
	}

	// A cycle takes 1.5 s, so that one runs while the primary dies.
	eventually(t, "a cycle", func() bool {
		n := f.node(old.Addr())
		return n != nil && n.Status.Scanning && n.Status.Progress > 0.2
	})
	if err := old.Kill(); err != nil {
		t.Fatal(err)
	}
	var promoted *testredis.Server
	eventually(t, "a failover", func() bool {
		promoted = d.Primary(t, sentinelPassword)
		return promoted != nil && promoted != old
	})
	failedOver := time.Now()
	eventually(t, "a scan of the new node", func() bool {
		n := f.node(promoted.Addr())
		return n != nil && n.Status.Up && n.Status.CycleStarted.After(failedOver)
	})
	if took := time.Since(failedOver); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	f.scanned(promoted.Addr())
	after := f.sums()
	if after[label("scan_aborts_total", "reason=topology")] < 1 {
		t.Errorf("no cycle was aborted: %v", f.node(promoted.Addr()).Status.Aborts)
	}
	for _, s := range []string{label("keys", "db=db0", "key_type=string"), label("memory_bytes", "db=db0", "key_type=string"), label("big_keys", "db=db0", "key_type=string", "severity=warning")} {
		if before[s] != after[s] {
			t.Errorf("%s was %v and is %v", s, before[s], after[s])
		}
	}
	if entered, resolved := f.events(); entered != 0 || resolved != 0 {
		t.Errorf("%v new, %v resolved", entered, resolved)
	}
	load(t, promoted.Client(t), 0, bigKeys("later", 3)...)
	eventually(t, "news", func() bool { entered, _ := f.events(); return entered == 3 })
}

// TestSentinelPlannedFailover: SENTINEL FAILOVER, when every server stays.
func TestSentinelPlannedFailover(t *testing.T) {
	t.Parallel()
	d := testredis.StartSentinels(t, 1, "")
	old, replica := d.Servers[0], d.Servers[1]
	load(t, old.Client(t), 0, append(small("user", 300), bigKeys("big", 5)...)...)
	flags := sentinelFlags(t, d)
	flags.SentinelPasswordFile = ""
	flags.ReadFrom = "primary"
	f := newFleet(t, flags, nil)
	f.scanned(old.Addr())
	if role := f.node(old.Addr()).Status.Info.Role; role != "primary" {
		t.Errorf("a %s is scanned", role)
	}
	if err := d.Sentinels[0].Client(t).Do(t.Context(), "sentinel", "failover", testredis.MasterName).Err(); err != nil {
		t.Fatal(err)
	}
	f.scanned(replica.Addr())
	if keys := f.sums()[label("keys", "db=db0", "key_type=string")]; keys != 305 {
		t.Errorf("%v keys", keys)
	}
	if entered, resolved := f.events(); entered != 0 || resolved != 0 {
		t.Errorf("%v new, %v resolved", entered, resolved)
	}
}

// TestSentinelLosesReplica: where no replica is left the primary is scanned.
func TestSentinelLosesReplica(t *testing.T) {
	t.Parallel()
	d := testredis.StartSentinels(t, 1, "")
	primary, replica := d.Servers[0], d.Servers[1]
	load(t, primary.Client(t), 0, small("user", 300)...)
	flags := sentinelFlags(t, d)
	flags.SentinelPasswordFile = ""
	f := newFleet(t, flags, nil)
	f.scanned(primary.Addr())
	if address := f.node(primary.Addr()).Status.Info.Address; address != replica.Addr() {
		t.Errorf("scanned is %s", address)
	}
	if err := replica.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a scan of the primary", func() bool {
		n := f.node(primary.Addr())
		return n != nil && n.Status.Info.Address == primary.Addr() && n.Status.Up
	})
	f.scanned(primary.Addr())
}

func TestSentinelMistakes(t *testing.T) {
	t.Parallel()
	d := testredis.StartSentinels(t, 0, sentinelPassword)
	good := sentinelFlags(t, d)
	for about, tc := range map[string]struct {
		change func(*config.RedisFlags)
		reason fault.Reason
		says   string
	}{
		"an unknown master": {func(f *config.RedisFlags) { f.SentinelMaster = "nobody" }, fault.Config, "knows no master named"},
		"no password":       {func(f *config.RedisFlags) { f.SentinelPasswordFile = "" }, fault.Auth, "NOAUTH"},
		"no sentinel":       {func(f *config.RedisFlags) { f.Addr, f.SentinelPasswordFile = d.Servers[0].Addr(), "" }, fault.Config, "is none"},
		"no name": {func(f *config.RedisFlags) {
			f.Addr = d.Sentinels[0].Addr()
			f.SentinelMaster, f.SentinelPasswordFile, f.Password = "", "", sentinelPassword
		}, fault.Config, "--redis.sentinel-master is missing"},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			flags := good
			tc.change(&flags)
			f := newFleet(t, flags, nil)
			eventually(t, "an abort", func() bool { return f.States()[0].Status.Aborts[tc.reason] > 0 })
			status := f.States()[0].Status
			if status.Node.Node != strings.Split(flags.Addr, ",")[0] {
				t.Errorf("shown is %+v", status.Node)
			}
			if lines := f.logs.String(); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, tc.says) || !strings.Contains(lines, "reason="+tc.reason.String()) {
				t.Errorf("logged:\n%s", lines)
			}
		})
	}
}
