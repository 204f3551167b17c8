package topology

import (
	"context"
	"strconv"
	"strings"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// KnownCommands asks COMMAND INFO, which answers with nil for each command that
// there is not, or no more under that name.
func (s *session) KnownCommands(ctx context.Context, names []string) (map[string]bool, error) {
	if s.denied(keyspace.CmdCommandInfo) {
		return nil, nil
	}
	args := make([]any, len(names))
	for i, name := range names {
		args[i] = name
	}
	reply, err := s.simple(ctx, keyspace.CmdCommandInfo, args...)
	if err != nil {
		return nil, err
	}
	rows, err := reply.Slice()
	if err != nil || len(rows) != len(names) {
		return nil, nil //nolint:nilerr // denied, or no such answer: nothing is known
	}
	known := make(map[string]bool, len(names))
	for i, name := range names {
		known[name] = rows[i] != nil
	}
	return known, nil
}

// Config asks for the settings one by one, which every version understands. It
// never asks for another one: the right to CONFIG GET is the right to read
// passwords.
func (s *session) Config(ctx context.Context) (*policy.ServerConfig, error) {
	if s.denied(keyspace.CmdConfigGet) {
		return nil, nil
	}
	// The first one alone: a denial costs one entry in the server's ACL LOG.
	timeout, err := s.simple(ctx, keyspace.CmdConfigGet, policy.ConfigTimeout)
	if err != nil || s.denied(keyspace.CmdConfigGet) {
		return nil, err
	}
	b := s.batch()
	buffer := b.add(ctx, keyspace.CmdConfigGet, policy.ConfigOutputBuffer)
	replies := map[string]interface{ Slice() ([]any, error) }{}
	for _, name := range policy.ConfigLazyFree() {
		replies[name] = b.add(ctx, keyspace.CmdConfigGet, name)
	}
	if err := b.exec(ctx); err != nil {
		return nil, err
	}
	cfg := &policy.ServerConfig{LazyFree: map[string]bool{}, Timeout: -1, ReplicaLimit: -1}
	if value, ok := setting(timeout); ok {
		cfg.Timeout = limit(value)
	}
	if value, ok := setting(buffer); ok {
		cfg.ReplicaLimit = replicaLimit(value)
	}
	for name, reply := range replies {
		if on, told := toggle(reply); told {
			cfg.LazyFree[name] = on
		}
	}
	return cfg, nil
}

// toggle is a setting that is yes or no; false = as setting, or it is neither.
func toggle(reply interface{ Slice() ([]any, error) }) (on, told bool) {
	value, _ := setting(reply)
	return value == "yes", value == "yes" || value == "no"
}

// setting is the value in a reply of CONFIG GET; false = there is no such
// setting, or it was not told.
func setting(reply interface{ Slice() ([]any, error) }) (string, bool) {
	pair, err := reply.Slice()
	if err != nil || len(pair) != 2 {
		return "", false
	}
	value, ok := pair[1].(string)
	return value, ok
}

// replicaLimit reads the hard limit out of a list of classes with three numbers
// each, such as: normal 0 0 0 slave 268435456 67108864 60 pubsub ….
func replicaLimit(value string) int64 {
	fields := strings.Fields(value)
	for i := 0; i+1 < len(fields); i += 4 {
		if fields[i] == "slave" || fields[i] == "replica" {
			return limit(fields[i+1])
		}
	}
	return -1
}

// limit reads a number that is 0 where there is no limit; -1 = it is none.
func limit(value string) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
