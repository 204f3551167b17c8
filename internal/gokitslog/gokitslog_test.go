package gokitslog

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/log"
)

func TestLine(t *testing.T) {
	// The program logs in UTC, wherever it runs.
	local := time.Local
	time.Local = time.FixedZone("far", 8*60*60)
	t.Cleanup(func() { time.Local = local })

	for _, format := range []struct {
		name string
		make func(io.Writer) log.Logger
		read func(*testing.T, []byte) map[string][]string
	}{
		{"logfmt", log.NewLogfmtLogger, readLogfmt},
		{"json", log.NewJSONLogger, readJSON},
	} {
		t.Run(format.name, func(t *testing.T) {
			var out bytes.Buffer
			logger := New(format.make(&out), slog.LevelInfo)
			before := time.Now()
			logger.With("address", "127.0.0.1:1").Warn("Listening on", "http2", false)

			if lines := strings.Count(out.String(), "\n"); lines != 1 {
				t.Fatalf("%d lines: %s", lines, out.String())
			}
			line := format.read(t, out.Bytes())
			for key, want := range map[string]string{
				"level": "warn", "msg": "Listening on", "address": "127.0.0.1:1", "http2": "false",
			} {
				if got := line[key]; len(got) != 1 || got[0] != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
			for key, values := range line {
				if len(values) != 1 {
					t.Errorf("%s stands there %d times", key, len(values))
				}
			}
			if len(line["caller"]) == 0 || !strings.HasPrefix(line["caller"][0], "gokitslog_test.go:") {
				t.Errorf("the caller is %q", line["caller"])
			}
			if _, there := line[slog.TimeKey]; there || len(line["ts"]) == 0 {
				t.Fatalf("the time is not named ts: %v", line)
			}
			ts, err := time.Parse(time.RFC3339Nano, line["ts"][0])
			if err != nil || ts.Before(before.Add(-time.Second)) || ts.After(time.Now().Add(time.Second)) {
				t.Errorf("ts is %q (%v), written after %v", line["ts"][0], err, before)
			}
			if !strings.HasSuffix(line["ts"][0], "Z") {
				t.Errorf("ts is not in UTC: %q", line["ts"][0])
			}
		})
	}
}

// TestAttributeNamedTime keeps the names of what the library itself wants to tell.
func TestAttributeNamedTime(t *testing.T) {
	var out bytes.Buffer
	New(log.NewLogfmtLogger(&out), slog.LevelInfo).Info("m", slog.TimeKey, "noon")
	line := readLogfmt(t, out.Bytes())
	if len(line["ts"]) != 1 || len(line[slog.TimeKey]) != 1 || line[slog.TimeKey][0] != "noon" {
		t.Errorf("the attribute is not kept apart: %s", out.String())
	}
}

func TestLevel(t *testing.T) {
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	for _, least := range levels {
		for _, level := range levels {
			var out bytes.Buffer
			New(log.NewLogfmtLogger(&out), least).Log(t.Context(), level, "m")
			if written := out.Len() > 0; written != (level >= least) {
				t.Errorf("a line of level %v at --log.level %v: written is %v", level, least, written)
			}
		}
	}
}

var logfmtPair = regexp.MustCompile(`^(\S+?)=("(?:[^"\\]|\\.)*"|\S*)\s+`)

func readLogfmt(t *testing.T, line []byte) map[string][]string {
	t.Helper()
	pairs := map[string][]string{}
	for len(line) > 0 {
		pair := logfmtPair.FindSubmatch(line)
		if pair == nil {
			t.Fatalf("no logfmt: %s", line)
		}
		value := string(pair[2])
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
		pairs[string(pair[1])] = append(pairs[string(pair[1])], value)
		line = line[len(pair[0]):]
	}
	return pairs
}

// readJSON keeps keys that stand there twice, which json.Unmarshal does not.
func readJSON(t *testing.T, line []byte) map[string][]string {
	t.Helper()
	pairs := map[string][]string{}
	d := json.NewDecoder(bytes.NewReader(line))
	token := func() json.Token {
		got, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if token() != json.Delim('{') {
		t.Fatalf("no object: %s", line)
	}
	for d.More() {
		key := token().(string)
		switch value := token().(type) {
		case string:
			pairs[key] = append(pairs[key], value)
		case bool:
			pairs[key] = append(pairs[key], map[bool]string{true: "true", false: "false"}[value])
		default:
			t.Fatalf("%s is %v in %s", key, value, line)
		}
	}
	return pairs
}
