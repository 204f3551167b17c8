package config

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestScanBounds(t *testing.T) {
	t.Parallel()
	week := 7 * 24 * time.Hour
	for _, c := range []struct {
		flag        string
		set         func(*Scan, float64)
		fine, wrong []float64
	}{
		{
			"--scan.interval", func(s *Scan, v float64) { s.Interval = time.Duration(v) },
			[]float64{0, 1, float64(week)},
			[]float64{-1, float64(week + time.Microsecond), math.MinInt64},
		},
		{
			"--scan.watch-interval", func(s *Scan, v float64) { s.WatchInterval = time.Duration(v) },
			[]float64{float64(time.Second), float64(time.Hour)},
			[]float64{0, float64(time.Second - 1), float64(time.Hour + time.Microsecond)},
		},
		{
			"--scan.count", func(s *Scan, v float64) { s.Count = int(v) },
			[]float64{1, 100, 500},
			[]float64{0, 501, -1},
		},
		{
			"--scan.max-duty", func(s *Scan, v float64) { s.MaxDuty = v },
			[]float64{math.SmallestNonzeroFloat64, 0.05, 1},
			[]float64{0, -0.1, math.Nextafter(1, 2), math.Inf(1), math.NaN()},
		},
		{
			"--scan.max-keys-per-second", func(s *Scan, v float64) { s.MaxKeysPerSecond = v },
			[]float64{0, 0.5, 1e9},
			[]float64{-1, math.Nextafter(1e9, 2e9), math.Inf(1), math.Inf(-1), math.NaN()},
		},
		{
			"--scan.concurrency", func(s *Scan, v float64) { s.Concurrency = int(v) },
			[]float64{1, 4, 1000},
			[]float64{0, -1, 1001},
		},
		{
			"--top.keys", func(s *Scan, v float64) { s.TopKeys = int(v) },
			[]float64{0, 20, 100},
			[]float64{-1, 101},
		},
		{
			"--metrics.max-series", func(s *Scan, v float64) { s.MaxSeries = int(v) },
			[]float64{1000, 20000},
			[]float64{999, 0, -1},
		},
	} {
		for _, v := range c.fine {
			s := defaults()
			c.set(&s, v)
			if err := s.Validate(); err != nil {
				t.Errorf("%s=%v: %v", c.flag, v, err)
			}
		}
		for _, v := range c.wrong {
			s := defaults()
			c.set(&s, v)
			if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.flag+": ") {
				t.Errorf("%s=%v: %v", c.flag, v, err)
			}
		}
	}
}

func defaults() Scan {
	return Scan{Interval: time.Minute, WatchInterval: 15 * time.Second, Count: 100, MaxDuty: 0.05, Sample: 1, Detail: "auto", TopKeys: 20, Concurrency: 4, MaxSeries: 20000}
}

func TestScanSampling(t *testing.T) {
	for k := -1; k <= 33; k++ {
		s := defaults()
		s.Sample = k
		good := k == 1 || k == 2 || k == 4 || k == 8 || k == 16
		if err := s.Validate(); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "--scan.sample") {
			t.Errorf("sample %d: %v", k, err)
		}
	}
	for text, want := range map[string]int{"auto": 0, "1": 1, "16": 16, "7": 7, "0": -1, "17": -1, "-1": -1, "": -1, "AUTO": -1, "1.5": -1} {
		s := defaults()
		s.Detail = text
		err := s.Validate()
		if (err == nil) != (want >= 0) || err == nil && s.DetailRatio() != want || err != nil && !strings.Contains(err.Error(), "--scan.detail") {
			t.Errorf("detail %q: %d, %v", text, s.DetailRatio(), err)
		}
	}
}
