package testtools

import (
	"runtime"
	"testing"
)

// outcome is a test that only remembers how it ended.
type outcome struct {
	testing.TB
	skipped, failed bool
}

func (o *outcome) Helper()      {}
func (o *outcome) Skip(...any)  { o.skipped = true; runtime.Goexit() }
func (o *outcome) Fatal(...any) { o.failed = true; runtime.Goexit() }

func TestProgram(t *testing.T) {
	for _, tc := range []struct {
		ci              string
		names           []string
		skipped, failed bool
	}{
		{"", []string{"no-such-program", "sh"}, false, false},
		{"", []string{"no-such-program"}, true, false},
		{"true", []string{"sh"}, false, false},
		{"true", []string{"no-such-program"}, false, true},
	} {
		t.Setenv("CI", tc.ci)
		o, path, done := &outcome{TB: t}, "", make(chan struct{})
		go func() {
			defer close(done)
			path = Program(o, tc.names...)
		}()
		<-done
		if o.skipped != tc.skipped || o.failed != tc.failed || (path == "") != (o.skipped || o.failed) {
			t.Errorf("%+v: skipped %v, failed %v, %q", tc, o.skipped, o.failed, path)
		}
	}
}
