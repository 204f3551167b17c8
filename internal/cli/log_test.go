package cli

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/gokitslog"
	"redis_keyhealth_exporter/internal/testredis"
)

// TestLogLevel: the program's lines and those of its web library obey one flag.
func TestLogLevel(t *testing.T) {
	levels := []string{"debug", "info", "warn", "error"}
	for least, name := range levels {
		cfg := config.Log{Level: name, Format: "logfmt"}
		var ours, theirs buffer
		logger, _ := newLoggers(cfg, &ours)
		_, undecorated := newLoggers(cfg, &theirs)
		library := gokitslog.New(undecorated, slogLevel(cfg))
		for _, log := range []func(log.Logger) log.Logger{level.Debug, level.Info, level.Warn, level.Error} {
			if err := log(logger).Log("msg", "m"); err != nil {
				t.Fatal(err)
			}
		}
		for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			library.Log(t.Context(), l, "m")
		}
		for i, l := range levels {
			want := i >= least
			if got := strings.Contains(ours.String(), "level="+l+" "); got != want {
				t.Errorf("--log.level=%s: the program's %s line is written: %v", name, l, got)
			}
			if got := strings.Contains(theirs.String(), "level="+l+" "); got != want {
				t.Errorf("--log.level=%s: the library's %s line is written: %v", name, l, got)
			}
		}
	}
}

// TestLogJSON: every line, whoever wrote it, is an object with the same keys.
func TestLogJSON(t *testing.T) {
	e := start(t, "--redis.addr="+testredis.Start(t).Addr(), "--log.format=json")
	e.awaitReady(t)
	e.stop(t)
	lines := 0
	for line := range strings.Lines(e.stderr.String()) {
		lines++
		var entry struct{ TS, Level, Msg, Caller string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if _, err := time.Parse(time.RFC3339Nano, entry.TS); err != nil || entry.Level == "" || entry.Msg == "" || !strings.Contains(entry.Caller, ".go:") {
			t.Errorf("%s: %v", line, err)
		}
	}
	if lines < 3 {
		t.Errorf("%d lines", lines)
	}
}
