package topology

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// readOnly is a hook that refuses every command that is not on the list of
// keyspace.Commands, before it leaves the process. The hot path, which bypasses
// it, can only write commands of that list (see wire). Whatever goes wrong in
// this program, it cannot write.
type readOnly struct{}

// handshake are what go-redis sends by itself to log in.
var handshake = map[string]bool{"hello": true, "auth": true}

// What sentinels are asked, and nobody else.
const (
	sentinelMaster   = "get-master-addr-by-name"
	sentinelReplicas = "replicas"
	sentinelSlaves   = "slaves" // before Redis 5
)

// asksSentinel tells whether a command is one of them.
func asksSentinel(args []any) bool {
	if len(args) != 3 || args[0] != "sentinel" {
		return false
	}
	return args[1] == sentinelMaster || args[1] == sentinelReplicas || args[1] == sentinelSlaves
}

func (readOnly) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (readOnly) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := refuse(cmd); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (readOnly) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := refuse(cmd); err != nil {
				for _, cmd := range cmds {
					cmd.SetErr(err)
				}
				return err
			}
		}
		return next(ctx, cmds)
	}
}

func refuse(cmd redis.Cmder) error {
	args := cmd.Args()
	if len(args) > 0 {
		name := fmt.Sprint(args[0])
		if handshake[name] || asksSentinel(args) {
			return nil
		}
		for _, allowed := range keyspace.Commands() {
			if is(allowed, name, args) && (allowed != keyspace.CmdConfigGet || readsHarmless(args)) {
				return nil
			}
		}
	}
	// Never the arguments: those of AUTH are a secret.
	return fmt.Errorf("command %q is not on the read-only list", cmd.Name())
}

// readsHarmless tells whether a CONFIG GET reads one of the settings that rules
// need: others are passwords.
func readsHarmless(args []any) bool {
	if len(args) != 3 {
		return false
	}
	name, ok := args[2].(string)
	return ok && slices.Contains(policy.ConfigNames(), name)
}

// is tells whether a command is the allowed one.
func is(allowed keyspace.Command, name string, args []any) bool {
	container, sub, two := strings.Cut(allowed.String(), "|")
	if !strings.EqualFold(name, container) {
		return false
	}
	if !two {
		return true
	}
	if len(args) < 2 {
		return false
	}
	word, ok := args[1].(string)
	return ok && strings.EqualFold(word, sub)
}

func maintNotificationsOff() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
