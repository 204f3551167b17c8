package topology

import (
	"context"
	"fmt"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/redis/go-redis/v9"
)

// RouteLogs hands what go-redis logs by itself to logger. It logs what it also
// returns as an error, hence at debug level. The setting is go-redis' own and
// global: to be called once, at the program's start.
func RouteLogs(logger log.Logger) { redis.SetLogger(clientLog{logger}) }

type clientLog struct{ logger log.Logger }

// Printf is go-redis' logging interface.
func (l clientLog) Printf(_ context.Context, format string, v ...any) {
	level.Debug(l.logger).Log("msg", "redis client", "detail", fmt.Sprintf(format, v...))
}
