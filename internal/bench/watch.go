package main

import (
	"context"
	"time"
)

// reading is what a process holds at a moment.
type reading struct {
	rss, descriptors, goroutines float64
}

func (e *exporter) read(ctx context.Context) (reading, error) {
	resident, err := e.memory("VmRSS")
	if err != nil {
		return reading{}, e.explain(err)
	}
	open, err := e.descriptors()
	if err != nil {
		return reading{}, e.explain(err)
	}
	m, err := e.metrics(ctx)
	return reading{float64(resident), float64(open), m.sum("go_goroutines")}, err
}

// course are readings in the order in which they were made.
type course []reading

// watch reads every second for a while.
func (e *exporter) watch(ctx context.Context, d time.Duration) (course, error) {
	var all course
	for end := time.Now().Add(d); time.Now().Before(end); {
		r, err := e.read(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		if err := sleep(ctx, time.Second); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// quarters are the medians of four stretches of time: the first is warming up.
func (c course) quarters(of func(reading) float64) [4]float64 {
	var medians [4]float64
	for i := range medians {
		var values []float64
		for _, r := range c[len(c)*i/4 : len(c)*(i+1)/4] {
			values = append(values, of(r))
		}
		medians[i] = median(values)
	}
	return medians
}

// flat tells whether the last quarter holds no more than the second, but for
// so much.
func flat(quarters [4]float64, slack float64) bool { return quarters[3] <= quarters[1]+slack }

// How much more of each the last quarter may hold.
const (
	slackRSS     = 4 << 20
	slackHandles = 2
)

func residentMemory(r reading) float64  { return r.rss }
func openDescriptors(r reading) float64 { return r.descriptors }
func goroutines(r reading) float64      { return r.goroutines }

// rows are the course by quarters, and whether everything was flat.
func (c course) rows() (rows [][]string, allFlat bool) {
	allFlat = true
	for _, of := range []struct {
		what  string
		value func(reading) float64
		slack float64
		write func(float64) string
	}{
		{"RSS", residentMemory, slackRSS, mebibytes},
		{"file descriptors", openDescriptors, slackHandles, thousands},
		{"goroutines", goroutines, slackHandles, thousands},
	} {
		quarters := c.quarters(of.value)
		row := []string{of.what}
		for _, q := range quarters {
			row = append(row, written(q, of.write))
		}
		word := "PASS"
		if !flat(quarters, of.slack) {
			word, allFlat = "miss", false
		}
		rows = append(rows, append(row, "+ "+of.write(of.slack), word))
	}
	return rows, allFlat
}

var courseHeader = []string{"median of", "1st quarter", "2nd", "3rd", "4th", "may exceed the 2nd by", ""}
