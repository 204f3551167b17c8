package cli

import (
	"io"
	"log/slog"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"redis_keyhealth_exporter/internal/config"
)

// newLoggers makes the program's logger, and the one to lend to gokitslog:
// without the time and caller that the adapter brings itself.
func newLoggers(cfg config.Log, w io.Writer) (logger, undecorated log.Logger) {
	sync := log.NewSyncWriter(w)
	if undecorated = log.NewLogfmtLogger(sync); cfg.Format == "json" {
		undecorated = log.NewJSONLogger(sync)
	}
	logger = level.NewFilter(undecorated, level.Allow(level.ParseDefault(cfg.Level, level.InfoValue())))
	return log.With(logger, "ts", log.DefaultTimestampUTC, "caller", log.DefaultCaller), undecorated
}

func slogLevel(cfg config.Log) slog.Level {
	switch cfg.Level {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}
