// Package testtools settles what becomes of a test for which the machine lacks
// something.
package testtools

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Needs skips a test for want of something that not every machine has. CI must
// have it all: there a test that is skipped is one that nobody ever runs.
func Needs(t testing.TB, what string, have bool) {
	t.Helper()
	switch {
	case have:
	case os.Getenv("CI") != "":
		t.Fatal("CI needs " + what)
	default:
		t.Skip("needs " + what)
	}
}

// Program is the path of a program that a test needs, by the first of the names
// that distributions give it.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Needs(t, strings.Join(names, " or ")+" on PATH", false)
	return ""
}
