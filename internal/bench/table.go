package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// results are the samples of each subject, one a round.
type results map[string][]sample

// figure is one number of a sample.
type figure func(sample) float64

func keysPerSecond(s sample) float64 { return s.keysPerSecond }
func serverCPU(s sample) float64     { return s.server }
func serverShare(s sample) float64   { return s.serverShare }
func clientCPU(s sample) float64     { return s.client }
func wire(s sample) float64          { return s.wire }
func rss(s sample) float64           { return s.rss }
func block(s sample) float64         { return s.block }
func p50(s sample) float64           { return s.p50 }
func p90(s sample) float64           { return s.p90 }
func p99(s sample) float64           { return s.p99 }

// median is NaN where no sample has the figure.
func median(values []float64) float64 {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

func (r results) of(subject string, f figure) float64 {
	var all []float64
	for _, s := range r[subject] {
		all = append(all, f(s))
	}
	return median(all)
}

// ratio compares two subjects round by round, since what disturbs a round
// disturbs both, and takes the median.
func (r results) ratio(subject, to string, f figure) float64 {
	var all []float64
	for i, s := range r[subject] {
		if i < len(r[to]) {
			all = append(all, f(s)/f(r[to][i]))
		}
	}
	return median(all)
}

// column is one of a table of results.
type column struct {
	title string
	value func(r results, subject string) float64
	write func(float64) string
}

// show is a column of a figure's medians.
func show(title string, f figure, write func(float64) string) column {
	return column{title, func(r results, subject string) float64 { return r.of(subject, f) }, write}
}

// times is a column of ratios to one subject.
func times(title, to string, f figure) column {
	return column{title, func(r results, subject string) float64 { return r.ratio(subject, to, f) }, factor}
}

func (r results) table(subjects []subject, columns []column) string {
	header := []string{""}
	for _, c := range columns {
		header = append(header, c.title)
	}
	var rows [][]string
	for _, s := range subjects {
		row := []string{s.name}
		for _, c := range columns {
			row = append(row, written(c.value(r, s.name), c.write))
		}
		rows = append(rows, row)
	}
	return markdown(header, rows)
}

// goal is a limit that the project sets itself.
type goal struct {
	what   string
	of, to string // subjects; to = "": the figure itself, else the ratio
	figure figure
	limit  float64
	least  bool // the limit is the least that it may be, not the most
	write  func(float64) string
}

// goals tells which were reached; what was not measured is left out.
func (r results) goals(list []goal) string {
	var rows [][]string
	for _, g := range list {
		value := r.of(g.of, g.figure)
		if g.to != "" {
			value = r.ratio(g.of, g.to, g.figure)
		}
		if math.IsNaN(value) {
			continue
		}
		rows = append(rows, verdict(g.what, value, g.limit, g.least, g.write))
	}
	return markdown(goalHeader(), rows)
}

func goalHeader() []string { return []string{"goal", "limit", "measured", ""} }

// verdict is a row of a table of goals.
func verdict(what string, value, limit float64, least bool, write func(float64) string) []string {
	sign, met := "≤ ", value <= limit
	if least {
		sign, met = "≥ ", value >= limit
	}
	word := "PASS"
	if !met {
		word = "miss"
	}
	return []string{what, sign + write(limit), write(value), word}
}

// markdown writes a table. The first column is text, the others are numbers.
func markdown(header []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(header)
	b.WriteString("|---" + strings.Repeat("|--:", len(header)-1) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

func written(v float64, write func(float64) string) string {
	if math.IsNaN(v) {
		return "–"
	}
	return write(v)
}

// How numbers are written.
func factor(v float64) string {
	if v < 0.2 && v > 0 {
		return fmt.Sprintf("1/%.1f", 1/v)
	}
	return significant(v) + " ×"
}
func micros(v float64) string     { return significant(v*1e6) + " µs" }
func millis(v float64) string     { return significant(v*1e3) + " ms" }
func percent(v float64) string    { return fmt.Sprintf("%.1f %%", 100*v) }
func plainBytes(v float64) string { return fmt.Sprintf("%.0f B", v) }
func cores(v float64) string      { return significant(v) + " cores" }
func megabytes(v float64) string  { return significant(v/1e6) + " MB/s" }
func duration(v float64) string   { return (time.Duration(v) * time.Second).String() }

func mebibytes(v float64) string {
	if v >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", v/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", v/(1<<20))
}

// significant keeps three digits, or all in front of the point.
func significant(v float64) string {
	switch {
	case math.Abs(v) >= 100:
		return thousands(v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
