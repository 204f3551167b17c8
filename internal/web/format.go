package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// helpers are the functions of the report's template.
func helpers() template.FuncMap {
	return template.FuncMap{
		"bytes":    FormatBytes,
		"count":    FormatCount,
		"percent":  formatPercent,
		"seconds":  func(s float64) string { return formatDuration(time.Duration(s * float64(time.Second))) },
		"ago":      func(now, t time.Time) string { return formatDuration(now.Sub(t)) + " ago" },
		"until":    func(now, t time.Time) string { return "in " + formatDuration(t.Sub(now)) },
		"clock":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"barWidth": func(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) },
		"ratio":    ratio,
		"tone":     tone,
		"prose":    prose,
		"doc":      docOf,
		"twice":    func(v float64) float64 { return math.Ceil(2 * v) },
		"list":     func(keys []KeyReport, now time.Time) keyList { return keyList{keys, now} },
	}
}

// FormatBytes is a size as people read it; negative = not known.
func FormatBytes(v any) string {
	n := toFloat(v)
	if n < 0 {
		return "–"
	}
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if n < 1024 {
			if unit == "B" {
				return fmt.Sprintf("%.0f B", n)
			}
			return fmt.Sprintf("%.1f %s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%.1f TiB", n)
}

// FormatCount groups thousands; negative = not known.
func FormatCount(v any) string {
	n := int64(toFloat(v))
	if n < 0 {
		return "–"
	}
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ratio is part ÷ whole; negative parts are not known and have none.
func ratio(part, whole any) float64 {
	p, w := toFloat(part), toFloat(whole)
	if p <= 0 || w <= 0 {
		return 0
	}
	return min(p/w, 1)
}

// tone is the class of what is said about a rule of the level.
func tone(level string) string {
	return map[string]string{"mandatory": "bad", "recommended": "warn"}[level]
}

// keyList is a table of keys, at a moment.
type keyList struct {
	Keys []KeyReport
	Now  time.Time
}

// span is a piece of prose.
type span struct {
	Text string
	Code bool
}

// prose parts text where it marks code with backticks.
func prose(text string) []span {
	var spans []span
	for i, piece := range strings.Split(text, "`") {
		if piece != "" {
			spans = append(spans, span{piece, i%2 == 1})
		}
	}
	return spans
}

// formatPercent shows that a small share is not none, and nearly all not all.
func formatPercent(share float64) string {
	switch p := 100 * share; {
	case p == 0:
		return "0 %"
	case p < 0.1:
		return "< 0.1 %"
	case p > 99.9 && p < 100:
		return "> 99.9 %"
	case p < 10, p > 99 && p < 100:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// formatDuration gives two units at most, and none that is 0.
func formatDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d, 0).Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return twoUnits(int(d.Minutes()), "min", int(d.Seconds())%60, "s")
	case d < 48*time.Hour:
		return twoUnits(int(d.Hours()), "h", int(d.Minutes())%60, "min")
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

func twoUnits(n int, unit string, rest int, small string) string {
	if rest == 0 {
		return fmt.Sprintf("%d %s", n, unit)
	}
	return fmt.Sprintf("%d %s %d %s", n, unit, rest, small)
}

func toFloat(v any) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case uint64:
		return float64(n)
	case float64:
		return n
	default:
		panic(fmt.Sprintf("web: no number: %T", v))
	}
}
