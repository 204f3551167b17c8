package main

import (
	"syscall"
	"time"
)

// sleepUntil sleeps on its own thread. Go's timers may be a millisecond late,
// which is longer than what is timed.
func sleepUntil(due time.Time) {
	for {
		d := time.Until(due)
		if d <= 0 {
			return
		}
		ts := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&ts, nil) // a signal may have ended it early
	}
}
