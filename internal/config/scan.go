package config

import (
	"fmt"
	"strconv"
	"time"
)

// Scan are the --scan.*, --top.* and --metrics.* flags as given.
type Scan struct {
	Interval         time.Duration
	WatchInterval    time.Duration
	Count            int
	MaxDuty          float64
	MaxKeysPerSecond float64
	Sample           int
	Detail           string // auto, or a number
	TopKeys          int
	Concurrency      int
	StateFile        string
	MaxSeries        int
}

// Server are the --server.* flags: what only is asked of a server by consent.
type Server struct {
	ConfigProbe  bool // CONFIG GET
	SlowlogHints bool // SLOWLOG GET
}

// Validate checks the bounds of each flag.
func (s Scan) Validate() error {
	switch {
	case s.Interval < 0 || s.Interval > 7*24*time.Hour:
		return fmt.Errorf("--scan.interval: %v is not within 0s and 168h", s.Interval)
	case s.WatchInterval < time.Second || s.WatchInterval > time.Hour:
		return fmt.Errorf("--scan.watch-interval: %v is not within 1s and 1h", s.WatchInterval)
	case s.Count < 1 || s.Count > 500:
		return fmt.Errorf("--scan.count: %d is not within 1 and 500", s.Count)
	case !(s.MaxDuty > 0 && s.MaxDuty <= 1):
		return fmt.Errorf("--scan.max-duty: %v is not above 0 and at most 1", s.MaxDuty)
	case !(s.MaxKeysPerSecond >= 0 && s.MaxKeysPerSecond <= 1e9):
		return fmt.Errorf("--scan.max-keys-per-second: %v is not within 0 (no limit) and 1e9", s.MaxKeysPerSecond)
	case s.Sample != 1 && s.Sample != 2 && s.Sample != 4 && s.Sample != 8 && s.Sample != 16:
		return fmt.Errorf("--scan.sample: %d is none of 1, 2, 4, 8 and 16", s.Sample)
	case s.Detail != detailAuto && (s.DetailRatio() < 1 || s.DetailRatio() > 16):
		return fmt.Errorf("--scan.detail: %q is neither auto nor a number from 1 to 16", s.Detail)
	case s.Concurrency < 1 || s.Concurrency > 1000:
		return fmt.Errorf("--scan.concurrency: %d is not within 1 and 1000", s.Concurrency)
	case s.TopKeys < 0 || s.TopKeys > 100:
		return fmt.Errorf("--top.keys: %d is not within 0 and 100", s.TopKeys)
	case s.MaxSeries < 1000:
		return fmt.Errorf("--metrics.max-series: %d is below 1000, which one node may need", s.MaxSeries)
	}
	return nil
}

const detailAuto = "auto"

// DetailRatio is --scan.detail as a number; 0 = auto.
func (s Scan) DetailRatio() int {
	n, err := strconv.Atoi(s.Detail)
	if err != nil {
		return 0
	}
	return n
}
