package web

import (
	"fmt"
	"html/template"
	"strconv"
	"time"
)

// helpers are the functions of the report's template.
func helpers() template.FuncMap {
	return template.FuncMap{
		"bytes":    formatBytes,
		"count":    formatCount,
		"percent":  formatPercent,
		"seconds":  func(s float64) string { return formatDuration(time.Duration(s * float64(time.Second))) },
		"ago":      func(now, t time.Time) string { return formatDuration(now.Sub(t)) + " ago" },
		"until":    func(now, t time.Time) string { return "in " + formatDuration(t.Sub(now)) },
		"clock":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"barWidth": func(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) },
	}
}

// formatBytes is a size as people read it; negative = not known.
func formatBytes(v any) string {
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

// formatCount groups thousands; negative = not known.
func formatCount(v any) string {
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

// formatPercent shows that a small share is not none.
func formatPercent(share float64) string {
	switch p := 100 * share; {
	case p == 0:
		return "0 %"
	case p < 0.1:
		return "< 0.1 %"
	case p < 10:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

func formatDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d, 0).Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
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
