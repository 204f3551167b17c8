// Package testtools settles what becomes of a test for which the machine lacks
// something.
package testtools

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Program is the path of a program that a test needs, by the first of the names
// that distributions give it. Without it the test is skipped; but CI must have it
// all, as a test that is skipped there is one that nobody ever runs.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing := "needs " + strings.Join(names, " or ") + " on PATH"
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}
