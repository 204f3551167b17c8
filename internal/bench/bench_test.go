package main

import (
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/resp"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, nan},
		{[]float64{nan}, nan},
		{[]float64{7}, 7},
		{[]float64{9, 1}, 5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{nan, 9, 1, nan, 2, 4}, 3},
	} {
		if got := median(c.values); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("median of %v = %v, want %v", c.values, got, c.want)
		}
	}
}

// TestRatio: rounds are compared with themselves, not median with median.
func TestRatio(t *testing.T) {
	t.Parallel()
	r := results{"a": {{server: 2}, {server: 40}, {server: 9}}, "b": {{server: 1}, {server: 10}, {server: 3}}}
	if got := r.ratio("a", "b", serverCPU); got != 3 {
		t.Errorf("ratio %v, want that of the third round, 3", got)
	}
	if got := r.ratio("a", "nobody", serverCPU); !math.IsNaN(got) {
		t.Errorf("ratio to what was not measured: %v", got)
	}
}

func TestGoals(t *testing.T) {
	t.Parallel()
	r := results{"a": {{server: 0.5}}}
	for _, c := range []struct {
		limit float64
		least bool
		want  string
	}{
		{0.5, false, "PASS"},
		{0.49, false, "miss"},
		{0.5, true, "PASS"},
		{0.51, true, "miss"},
	} {
		g := goal{"g", "a", "", serverCPU, c.limit, c.least, factor}
		if got := r.goals([]goal{g}); !strings.Contains(got, "| "+c.want+" |") {
			t.Errorf("0.5 with limit %v (least: %v): want %s in\n%s", c.limit, c.least, c.want, got)
		}
	}
	if got := r.goals([]goal{{"g", "b", "", serverCPU, 1, false, factor}}); strings.Contains(got, "PASS") {
		t.Errorf("what was not measured passes:\n%s", got)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0":         thousands(0),
		"999":       thousands(999),
		"1,000":     thousands(1000),
		"-1,000":    thousands(-1000),
		"-100":      thousands(-100),
		"1,234,568": thousands(1234567.8),
		"2.50 ×":    factor(2.5),
		"0.33 ×":    factor(0.33),
		"1/30.0":    factor(1.0 / 30),
		"12.3 µs":   micros(12.34e-6),
		"1,235 ms":  millis(1.2346),
		"64.0 MiB":  mebibytes(64 << 20),
		"1.5 GiB":   mebibytes(3 << 29),
		"1m40s":     duration(100.4),
		"–":         written(math.NaN(), factor),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	i := parseInfo("# CPU\r\nused_cpu_sys:5.5\r\nused_cpu_user:7.25\r\nused_cpu_sys_main_thread:1.5\r\nused_cpu_user_main_thread:2.25\r\n" +
		"total_net_input_bytes:100\r\ntotal_net_output_bytes:23\r\n" +
		"latency_percentiles_usec_scan:p100=350.207\r\nlatency_percentiles_usec_info:p100=9000\r\nlatency_percentiles_usec_memory|usage:p100=1003.519\r\n")
	if got, err := i.cpu(); err != nil || got != 3750*time.Millisecond {
		t.Errorf("CPU of the main thread: %v, %v", got, err)
	}
	if got, err := i.wire(); err != nil || got != 123 {
		t.Errorf("bytes: %v, %v", got, err)
	}
	if got := i.longestBlock(); got != 1003519*time.Nanosecond {
		t.Errorf("longest block %v: INFO is our own", got)
	}

	if got := parseInfo("cmdstat_scan:calls=201,usec=5,usec_per_call=0.02\r\n").calls("scan"); got != 201 {
		t.Errorf("%d calls", got)
	}
	if got := i.calls("scan"); got != 0 {
		t.Errorf("%d calls of what was never called", got)
	}

	old := parseInfo("used_cpu_sys:5.5\nused_cpu_user:7.25\n")
	if got, err := old.cpu(); err != nil || got != 12750*time.Millisecond {
		t.Errorf("CPU of an old server: %v, %v", got, err)
	}
	if _, err := old.wire(); err == nil {
		t.Error("no bytes, and no error")
	}
	if got := old.longestBlock(); got != 0 {
		t.Errorf("longest block %v of a server that does not tell", got)
	}
	if _, err := (info{}).cpu(); err == nil {
		t.Error("no CPU, and no error")
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	start := time.Now()
	before := mark{at: start, keys: 100, client: time.Second, server: 5 * time.Second, wire: 1000}
	after := mark{at: start.Add(2 * time.Second), keys: 1100, client: 2 * time.Second, server: 6 * time.Second, wire: 51000, block: time.Millisecond}
	got := difference(before, after)
	if got.keysPerSecond != 500 || got.server != 1e-3 || got.client != 1e-3 || got.wire != 50 || got.serverShare != 0.5 || got.block != 1e-3 {
		t.Errorf("%+v", got)
	}
	after.keys = before.keys
	if got := difference(before, after); !math.IsNaN(got.server) || !math.IsNaN(got.keysPerSecond) || got.serverShare != 0.5 {
		t.Errorf("without keys: %+v", got)
	}
}

func TestTotals(t *testing.T) {
	t.Parallel()
	if got, err := parseTotals("summary: 0\n\nfn=(1) x\n0 12\n\ntotals: 31015042\n"); err != nil || got != 31015042 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "totals: 12\n", "\ntotals: \n", "\ntotals: 0\n"} {
		if got, err := parseTotals(bad); err == nil {
			t.Errorf("%q gives %v", bad, got)
		}
	}
}

func TestExceeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		full, lean, k16 float64
		want            bool
	}{
		{7725, 3708, 9000, false},
		{7726, 3708, 0, true},
		{7725, 3709, 0, true},
	} {
		if got := exceeds(map[string]float64{rowBare: 1000, rowFull: c.full, rowLean: c.lean, rowK16: c.k16}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestCPUOfProcess(t *testing.T) {
	t.Parallel()
	const head = "17 (odd) name) S 1 17 17 0 -1 4194304 1 2 3 4 "
	if got, err := parseCPU(head + "250 50 0 0 20 0\n"); err != nil || got != 3*time.Second {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", head, head + "250 x 0"} {
		if got, err := parseCPU(bad); err == nil {
			t.Errorf("%q gives %v", bad, got)
		}
	}
}

func TestRedisBenchmark(t *testing.T) {
	t.Parallel()
	const header = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"
	got, err := parseBenchmark(header + `"GET","52301.26","0.030","0.008","0.031","0.047","0.063","0.927"` + "\n")
	if err != nil || got.perSecond != 52301.26 || got.P50 != 31*time.Microsecond || got.P99 != 63*time.Microsecond {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", header, header + `"GET","fast","1","1","1","1","1","1"`, "\"test\"\n\"GET\"\n"} {
		if _, err := parseBenchmark(bad); !errors.Is(err, errBenchmark) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMetricsSum(t *testing.T) {
	t.Parallel()
	m := metrics("# HELP cycles x\ncycles{node=\"a b\",result=\"complete\"} 3\ncycles{node=\"c\",result=\"aborted\"} 1\ncycles_total 9\nplain 1.5e+06\n")
	for _, c := range []struct {
		family string
		labels []string
		want   float64
	}{
		{"cycles", nil, 4},
		{"cycles", []string{`result="complete"`}, 3},
		{"cycles", []string{`result="suspect"`}, 0},
		{"plain", nil, 1.5e6},
	} {
		if got := m.sum(c.family, c.labels...); got != c.want {
			t.Errorf("%s%v = %v, want %v", c.family, c.labels, got, c.want)
		}
	}
}

func TestSummarise(t *testing.T) {
	t.Parallel()
	var waits []time.Duration
	for i := range 1000 {
		waits = append(waits, time.Duration(1000-i))
	}
	if got := summarise(waits); got != (latencies{1000, 501, 901, 991}) {
		t.Errorf("%+v", got)
	}
	if got := summarise(nil); got != (latencies{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestReplaceBlock(t *testing.T) {
	t.Parallel()
	const document = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n"
	got, err := replaceBlock(document, "x", "new\n")
	if want := "a\n<!-- x -->\n\nnew\n\n<!-- /x -->\nb\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if again, err := replaceBlock(got, "x", "new\n"); err != nil || again != got {
		t.Errorf("a second time: %q, %v", again, err)
	}
	for _, bad := range []string{"", "<!-- x -->\n", "<!-- /x -->\n<!-- x -->\n", document + document} {
		if _, err := replaceBlock(bad, "x", "new\n"); !errors.Is(err, errMarkers) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestFlat(t *testing.T) {
	t.Parallel()
	var c course
	for i := range 40 {
		c = append(c, reading{rss: float64(i / 10), descriptors: 7})
	}
	quarters := c.quarters(residentMemory)
	if quarters != [4]float64{0, 1, 2, 3} {
		t.Fatalf("quarters %v", quarters)
	}
	if !flat(quarters, 2) || flat(quarters, 1.9) {
		t.Error("the last quarter is 2 above the second")
	}
	if _, ok := c.rows(); !ok {
		t.Error("three bytes are too much")
	}
	c[39].goroutines, c[38].goroutines = 1, 1
	for i := 30; i < 40; i++ {
		c[i].goroutines = 3
	}
	if _, ok := c.rows(); ok {
		t.Error("three goroutines more are nothing")
	}
}

func TestDataset(t *testing.T) {
	t.Parallel()
	for about, d := range map[string]dataset{"mixed": mixed(20_000), "small": small(20_000)} {
		names, big, percent := map[string]int{}, 0, 0
		var first, second resp.Writer
		for i := range d.keys {
			_, name, isBig := d.key(i)
			names[name]++
			if isBig {
				big++
			}
			if i < 2000 {
				d.write(&first, i)
				d.write(&second, i)
			}
		}
		for _, f := range d.families {
			percent += f.percent
		}
		if len(names) != d.keys || percent != 100 {
			t.Errorf("%s: %d names, %d %%", about, len(names), percent)
		}
		if want := map[bool]int{true: 2, false: 0}[d.big]; big != want {
			t.Errorf("%s: %d big keys, want %d", about, big, want)
		}
		if !slices.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: a key is not always the same", about)
		}
		for dice := range uint64(1000) {
			if name := d.someString(mix(dice)); names[name] != 1 {
				t.Fatalf("%s: there is no %s", about, name)
			}
		}
	}
}

// TestCompare runs the whole comparison on a few keys.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the exporter, and takes a while")
	}
	t.Parallel()
	dir := t.TempDir()
	build := func(pkg, name string) string {
		out := filepath.Join(dir, name)
		if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", out, pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return out
	}
	bench, exporter := build(".", "bench"), build("../..", "exporter")
	cmd := exec.CommandContext(t.Context(), bench, "--exporter", exporter, "compare", "--keys=2000", "--few-keys=200", "--rounds=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	for _, row := range []string{rowIdle, rowBare, rowFull, rowLean, rowK16, rowBigKeys, rowMemKeys} {
		if !strings.Contains(string(out), "\n| "+row+" | ") {
			t.Errorf("no row %s", row)
		}
	}
	if strings.Contains(string(out), "NaN") || strings.Contains(string(out), "Inf") || !strings.Contains(string(out), "| PASS |") {
		t.Error("figures are missing")
	}
	if t.Failed() {
		t.Logf("%s\n%s", out, stderr.String())
	}
}
