package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/testredis"
)

const (
	// endsWithin is how long the end may take.
	endsWithin = 2 * time.Second
	// patience is for what a slow machine takes long for.
	patience = time.Minute

	mainEnv = "DEMO_TEST_MAIN"
)

var redisAddr = regexp.MustCompile(`redis-server on (127\.0\.0\.1:\d+)`)

// TestMain lets the test's binary be the program, for a test that sends it
// signals.
func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestDemo(t *testing.T) {
	noLeak(t)
	temp := tempDir(t)
	d, stdout, stderr := quickDemo()
	stop := start(t, d)

	stdout.await(t, "Every kind", "goes on until Ctrl-C")
	text := stdout.String()
	for _, rule := range policy.Rules() {
		broken := regexp.MustCompile(`(?m)^` + rule.ID + ` +` + rule.Level.String() + ` +[1-9][0-9,]* +db\d .+$`).MatchString(text)
		if configured := rule.ID != "name_unknown_prefix"; broken != configured {
			t.Errorf("rule %s: that keys break it is shown: %t, want %t; see keyspace.go", rule.ID, broken, configured)
		}
	}
	for _, k := range newKeys() {
		for _, event := range []string{"big key: " + k.name, "resolved: " + k.name} {
			if !strings.Contains(text, event) {
				t.Errorf("not told: %q", event)
			}
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	gone(t, redisAddr.FindStringSubmatch(text)[1], temp)
	if t.Failed() {
		t.Logf("printed:\n%s%s", text, stderr)
	}
}
