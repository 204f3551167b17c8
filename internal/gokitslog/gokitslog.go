// Package gokitslog lends the program's go-kit logger to exporter-toolkit, the
// one library that asks for a slog.Logger.
package gokitslog

import (
	"log/slog"
	"time"

	"github.com/go-kit/log"
	sloggokit "github.com/tjhop/slog-gokit"
)

// New wraps a logger that adds neither time nor caller: the adapter brings
// its own, with the time named and in the zone as everywhere else in the
// program's log.
func New(logger log.Logger, level slog.Level) *slog.Logger {
	return slog.New(sloggokit.NewGoKitHandler(renamed{logger}, level))
}

// renamed calls the adapter's time "ts".
type renamed struct{ log.Logger }

func (r renamed) Log(keyvals ...any) error {
	for i := 0; i+1 < len(keyvals); i += 2 {
		if keyvals[i] == slog.TimeKey {
			keyvals[i] = "ts"
			if t, ok := keyvals[i+1].(time.Time); ok {
				keyvals[i+1] = t.UTC()
			}
			break // a later one is an attribute of the line
		}
	}
	return r.Logger.Log(keyvals...)
}
