package policy

import (
	"strings"
	"testing"
	"time"
)

func TestParseOption(t *testing.T) {
	for _, c := range []struct {
		option      Option
		good        map[string]int64
		bad         []string
		allowedSays string
	}{
		{
			size("warning", 1),
			map[string]int64{"1": 1, "10240": 10240, "10KiB": 10 << 10, "5MiB": 5 << 20, "2GiB": 2 << 30, "1TiB": 1 << 40, "1024TiB": maxNumber},
			[]string{"", "0", "-1", "0KiB", "1.5MiB", "10 KiB", "10kib", "10KB", "10K", "KiB", "1_000", "010", "0x10", "+1", "1025TiB", "99999999999999999999", "1125899906842625", "ten"},
			"such as 10KiB",
		},
		{
			count("n", 1, 20),
			map[string]int64{"1": 1, "20": 20},
			[]string{"", "0", "-1", "21", "1.0", "1e1", "1,0", "1_0", "01", " 1", "1 ", "twenty"},
			"from 1 to 20",
		},
		{
			count("n", 1, 0),
			map[string]int64{"1": 1, "1125899906842624": maxNumber},
			[]string{"1125899906842625"},
			"from 1 to 1125899906842624",
		},
		{
			Option{Name: "share", Kind: Percent},
			map[string]int64{"1": 1, "10%": 10, "100%": 100},
			[]string{"", "%", "0%", "101%", "0.1", "10%%", "10 %"},
			"from 1 to 100",
		},
		{
			duration("max", day),
			map[string]int64{"1s": 1e9, "90s": 90e9, "1h30m": 5400e9, "30d": int64(30 * day), "1d12h": int64(36 * time.Hour), "106751d": int64(106751 * day)},
			[]string{"", "0s", "999ms", "-1s", "30", "d", "1.5d", "30 d", "1w", "30d-1s", "106752d", "106751d24h", "12h1d", "forever"},
			"30d",
		},
	} {
		for text, want := range c.good {
			v, err := c.option.Parse(text)
			if err != nil || v.Number != want || v.Words != nil {
				t.Errorf("%q: %v, %v; want %d", text, v, err, want)
				continue
			}
			if again, err := c.option.Parse(c.option.Format(v)); err != nil || again.Number != want {
				t.Errorf("%q formats as %q, which reads %v, %v", text, c.option.Format(v), again, err)
			}
		}
		for _, text := range c.bad {
			if v, err := c.option.Parse(text); err == nil || !strings.Contains(err.Error(), c.allowedSays) {
				t.Errorf("%q: %v, %v", text, v, err)
			}
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		30 * day: "30d", time.Hour: "1h", 90 * time.Minute: "1h30m", time.Minute: "1m", 90 * time.Second: "1m30s",
		day + time.Second: "1d1s", 10 * time.Second: "10s", time.Hour + time.Second: "1h0m1s", 1500 * time.Millisecond: "1.5s",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
		if n, ok := parseDuration(formatDuration(d)); !ok || time.Duration(n) != d {
			t.Errorf("%v comes back as %v", d, time.Duration(n))
		}
	}
}

func TestWords(t *testing.T) {
	r := Rule{
		Violated: "above {warning} or {other}", Critical: "{critical}",
		Options: []Option{size("warning", 10<<10), size("critical", 5<<20)},
	}
	if v, c := r.Words(r.Defaults()); v != "above 10KiB or {other}" || c != "5MiB" {
		t.Errorf("%q, %q", v, c)
	}
}
