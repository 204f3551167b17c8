// Package packaging holds the tests of what users are handed: releases, the
// container image, and what deploys it.
package packaging

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const (
	root    = "../.."
	program = "redis_keyhealth_exporter"
)

// runMake makes a target of the Makefile, with variables NAME=VALUE. Tests that
// compile and link take long, and have no concurrency that a race could be in.
func runMake(t *testing.T, target string, variables ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the exporter")
	}
	cmd := exec.CommandContext(t.Context(), "make", append([]string{target}, variables...)...)
	cmd.Dir = root
	for _, variable := range os.Environ() {
		// The make that runs the tests would pass on its own flags and variables.
		if name, _, _ := strings.Cut(variable, "="); name != "MAKEFLAGS" && name != "MAKEOVERRIDES" {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	output(t, cmd)
}

// output runs a command that must succeed, and returns what it printed.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, stdout, stderr.String())
	}
	return string(stdout)
}

func onPath(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
