package web

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{FormatBytes(int64(-1)), "–"},
		{FormatBytes(0.0), "0 B"},
		{FormatBytes(1023.0), "1023 B"},
		{FormatBytes(int64(1024)), "1.0 KiB"},
		{FormatBytes(uint64(5 << 20)), "5.0 MiB"},
		{FormatBytes(float64(3 << 40)), "3.0 TiB"},
		{FormatBytes(float64(1 << 60)), "1048576.0 TiB"},
		{FormatCount(int64(-1)), "–"},
		{FormatCount(uint64(0)), "0"},
		{FormatCount(999.0), "999"},
		{FormatCount(1000.0), "1,000"},
		{FormatCount(int64(12345678)), "12,345,678"},
		{formatPercent(0), "0 %"},
		{formatPercent(0.0001), "< 0.1 %"},
		{formatPercent(0.0123), "1.2 %"},
		{formatPercent(0.5), "50 %"},
		{formatPercent(0.9876), "99 %"},
		{formatPercent(0.9951), "99.5 %"},
		{formatPercent(0.99999), "> 99.9 %"},
		{formatPercent(1), "100 %"},
		{formatPercent(1.2), "120 %"},
		{formatDuration(-time.Second), "0 ms"},
		{formatDuration(20 * time.Millisecond), "20 ms"},
		{formatDuration(1500 * time.Millisecond), "1.5 s"},
		{formatDuration(time.Minute), "1 min"},
		{formatDuration(61 * time.Second), "1 min 1 s"},
		{formatDuration(47*time.Hour + 59*time.Minute), "47 h 59 min"},
		{formatDuration(72 * time.Hour), "3 days"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		part, whole any
		want        float64
	}{
		{1.0, 4.0, 0.25},
		{int64(3), int64(4), 0.75},
		{int64(-1), int64(4), 0},
		{0.0, 0.0, 0},
		{1.0, 0.0, 0},
		{5.0, 4.0, 1},
	} {
		if got := ratio(c.part, c.whole); got != c.want || math.IsNaN(got) {
			t.Errorf("%v of %v is %v, want %v", c.part, c.whole, got, c.want)
		}
	}
}

func TestProse(t *testing.T) {
	t.Parallel()
	got := prose("separated by `:` (or `#`)")
	want := []span{{"separated by ", false}, {":", true}, {" (or ", false}, {"#", true}, {")", false}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
