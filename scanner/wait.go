package scanner

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"redis_keyhealth_exporter/internal/fault"
)

// turn waits until a cycle may begin, as only so many nodes of a deployment are
// scanned at once. Whoever begins one puts a token into turns, to be taken out.
func (s *Scanner) turn(ctx context.Context) error {
	select {
	case s.shared.turns <- struct{}{}:
		return nil
	default:
	}
	if s.session == nil {
		if err := s.open(ctx); err != nil {
			return err
		}
		s.contacted = time.Time{}
	}
	for {
		if begins, err := s.nap(ctx, maxBackoff, s.shared.turns); begins || err != nil {
			return err
		}
	}
}

// wait sleeps for d, which pays back sleep that is owed, and keeps in contact
// meanwhile.
func (s *Scanner) wait(ctx context.Context, d time.Duration) error {
	until := time.Now().Add(d)
	for {
		if _, err := s.nap(ctx, time.Until(until), nil); err != nil {
			return err
		}
		if !time.Now().Before(until) {
			return nil
		}
	}
}

// nap sleeps for d at most, and ends early for what is due meanwhile, and does it;
// or when it can put a token into turns.
func (s *Scanner) nap(ctx context.Context, d time.Duration, turns chan<- struct{}) (begins bool, err error) {
	start := time.Now()
	timer := time.NewTimer(max(0, min(d, time.Until(s.contacted.Add(contactEvery)), time.Until(s.lookDue))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, ended(ctx)
	case turns <- struct{}{}:
		return true, nil
	case <-timer.C:
	}
	s.pace.slept(time.Since(start))
	if time.Since(s.contacted) >= contactEvery {
		if _, err := s.look(ctx); err != nil {
			return false, err
		}
	}
	return false, s.lookAtWatched(ctx)
}

// sleep returns a fault when ctx ends first.
func (s *Scanner) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ended(ctx)
	case <-timer.C:
		return nil
	}
}

// ended is the fault of a context that has ended: that with which it was
// cancelled, or that the program ends.
func ended(ctx context.Context) error {
	if f := (*fault.Error)(nil); errors.As(context.Cause(ctx), &f) {
		return f
	}
	return fault.New(fault.Shutdown, ctx.Err())
}

// jitter spreads d by ±20 %, so that a fleet does not come back in step.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}
