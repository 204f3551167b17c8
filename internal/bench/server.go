package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/testredis"
)

// server is a redis-server full of keys.
type server struct {
	*testredis.Server
	client  *redis.Client
	data    dataset
	version string
	bytes   int64 // that the keys take
}

// launch starts a server and fills it.
func (l *lab) launch(ctx context.Context, data dataset, under ...string) (*server, error) {
	process, err := testredis.Launch(testredis.Options{Under: slices.Concat(l.serverCPU, under)})
	if err != nil {
		return nil, err
	}
	s := &server{Server: process, client: testredis.NewClient(process.Addr()), data: data}
	l.say("filling redis-server on %s with %s keys", s.Addr(), thousands(float64(data.keys)))
	if err := s.fill(ctx); err != nil {
		s.close()
		return nil, fmt.Errorf("filling redis-server on %s: %w", s.Addr(), err)
	}
	return s, nil
}

func (s *server) close() {
	s.client.Close()
	s.Close()
}

func (s *server) fill(ctx context.Context) error {
	if err := s.data.load(ctx, s.Addr()); err != nil {
		return err
	}
	info, err := s.info(ctx)
	if err != nil {
		return err
	}
	s.version = info.text("redis_version")
	s.bytes, err = info.int("used_memory")
	if err != nil {
		return err
	}
	size, err := s.size(ctx)
	if err == nil && size != int64(s.data.keys) {
		err = fmt.Errorf("it has %d keys", size)
	}
	return err
}

// describe says what is walked, for the document.
func (s *server) describe() string {
	return fmt.Sprintf("%s keys, %s", thousands(float64(s.data.keys)), mebibytes(float64(s.bytes)))
}

// size is how many keys there are.
func (s *server) size(ctx context.Context) (int64, error) { return s.client.DBSize(ctx).Result() }

// info is INFO, by field.
type info map[string]string

func (s *server) info(ctx context.Context) (info, error) {
	text, err := s.client.Info(ctx, "everything").Result()
	if err != nil {
		return nil, err
	}
	return parseInfo(text), nil
}

func parseInfo(text string) info {
	fields := info{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

func (i info) text(name string) string { return or(i[name], "of unknown version") }

func (i info) int(name string) (int64, error) {
	n, err := strconv.ParseInt(i[name], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("INFO %s: %w", name, err)
	}
	return n, nil
}

// calls is how often a command was called.
func (i info) calls(command string) int {
	var calls int
	_, _ = fmt.Sscanf(i["cmdstat_"+command], "calls=%d", &calls) // never called: 0
	return calls
}

// cpu is what the server has used, of its main thread where it tells.
func (i info) cpu() (time.Duration, error) {
	suffix := "_main_thread"
	if i["used_cpu_user"+suffix] == "" {
		suffix = "" // before Redis 6.2
	}
	var seconds float64
	for _, mode := range []string{"user", "sys"} {
		n, err := strconv.ParseFloat(i["used_cpu_"+mode+suffix], 64)
		if err != nil {
			return 0, fmt.Errorf("INFO used_cpu_%s: %w", mode, err)
		}
		seconds += n
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// wire is how many bytes have come and gone.
func (i info) wire() (int64, error) {
	in, err := i.int("total_net_input_bytes")
	out, err2 := i.int("total_net_output_bytes")
	return in + out, errors.Join(err, err2)
}

// forgetBlocks begins a new account of how long commands block.
func (s *server) forgetBlocks(ctx context.Context) error {
	// Of a server before Redis 7 the longest block is not known.
	_ = s.client.ConfigSet(ctx, "latency-tracking-info-percentiles", "100").Err()
	return s.client.ConfigResetStat(ctx).Err()
}

// longestBlock is the time of the longest single command by the server's own
// account, 0 = unknown: while it runs nobody else is served. What the bench
// itself asks does not count.
func (i info) longestBlock() time.Duration {
	const prefix, percentile = "latency_percentiles_usec_", "p100="
	var longest float64
	for field, value := range i {
		command, ok := strings.CutPrefix(field, prefix)
		if !ok || command == "info" || command == "get" || strings.HasPrefix(command, "config|") {
			continue
		}
		if n, err := strconv.ParseFloat(strings.TrimPrefix(value, percentile), 64); err == nil {
			longest = max(longest, n)
		}
	}
	return time.Duration(longest * float64(time.Microsecond))
}
