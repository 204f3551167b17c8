package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// maxPipeline is how many commands are sent at once, as the rulebook's own
// sources advise.
const maxPipeline = 500

// load fills the server, each time with the same.
func load(ctx context.Context, addr string) error {
	random := rand.New(rand.NewPCG(1, 2))
	for db, families := range keyspace() {
		var commands [][]any
		for _, f := range families {
			commands = append(commands, f.commands(random)...)
		}
		client, disconnect := connect(ctx, addr, db)
		err := execute(ctx, client, commands)
		if err == nil {
			err = age(ctx, client, families)
		}
		disconnect()
		if err != nil {
			return err
		}
	}
	return nil
}

// age makes keys look unused for as long as their family is: RESTORE alone can
// set that.
func age(ctx context.Context, client *redis.Client, families []family) error {
	var commands [][]any
	for _, f := range families {
		for i := range f.keys {
			if f.idle == 0 {
				break
			}
			value, err := client.Dump(ctx, f.key(i)).Result()
			if err != nil {
				return err
			}
			commands = append(commands, []any{"RESTORE", f.key(i), 0, value, "REPLACE", "IDLETIME", int(f.idle.Seconds())})
		}
	}
	return execute(ctx, client, commands)
}

// key is the name of the family's i-th key.
func (f *family) key(i int) string { return strings.Replace(f.name, "%d", strconv.Itoa(1001+i), 1) }

// commands create the family's keys.
func (f *family) commands(random *rand.Rand) [][]any {
	var commands [][]any
	for i := range f.keys {
		name := f.key(i)
		commands = append(commands, f.value(random, name)...)
		if f.ttl.most > 0 {
			ttl := f.ttl.least + time.Duration(random.Int64N(int64(f.ttl.most-f.ttl.least)+1))
			commands = append(commands, []any{"PEXPIRE", name, ttl.Milliseconds()})
		}
	}
	return commands
}

// connect returns a client of one database, and what closes it; the end of ctx
// does so too, since a reply under way is waited for otherwise.
func connect(ctx context.Context, addr string, db int) (*redis.Client, func()) {
	client := redis.NewClient(&redis.Options{
		Addr:                     addr,
		DB:                       db,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1,
		DialerRetries:            1,
		PoolSize:                 1,
		PipelinePoolSize:         -1,
	})
	stop := context.AfterFunc(ctx, func() { client.Close() })
	return client, func() {
		stop()
		client.Close()
	}
}

// execute sends the commands in pipelines. All of them must succeed.
func execute(ctx context.Context, client *redis.Client, commands [][]any) error {
	for len(commands) > 0 {
		n := min(len(commands), maxPipeline)
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, words := range commands[:n] {
				pipe.Do(ctx, words...)
			}
			return nil
		})
		if err != nil {
			return err
		}
		commands = commands[n:]
	}
	return nil
}

// value makes the commands that create a key.
type value func(random *rand.Rand, name string) [][]any

// text is a string of least to most bytes.
func text(least, most int) value {
	return func(random *rand.Rand, name string) [][]any {
		return [][]any{{"SET", name, words(random, least, most)}}
	}
}

// hash has least to most fields, with values of smallest to largest bytes.
func hash(least, most, smallest, largest int) value {
	return func(random *rand.Rand, name string) [][]any {
		command := []any{"HSET", name}
		for i := range between(random, least, most) {
			command = append(command, "field"+strconv.Itoa(i), words(random, smallest, largest))
		}
		return [][]any{command}
	}
}

// list has least to most elements of smallest to largest bytes.
func list(least, most, smallest, largest int) value {
	return func(random *rand.Rand, name string) [][]any {
		command := []any{"RPUSH", name}
		for range between(random, least, most) {
			command = append(command, words(random, smallest, largest))
		}
		return [][]any{command}
	}
}

// set has least to most members.
func set(least, most int) value {
	return func(random *rand.Rand, name string) [][]any {
		return [][]any{append([]any{"SADD", name}, members(between(random, least, most))...)}
	}
}

// zset has least to most members.
func zset(least, most int) value {
	return func(random *rand.Rand, name string) [][]any {
		command := []any{"ZADD", name}
		for _, member := range members(between(random, least, most)) {
			command = append(command, random.IntN(100_000), member)
		}
		return [][]any{command}
	}
}

// stream has least to most entries.
func stream(least, most int) value {
	return func(random *rand.Rand, name string) [][]any {
		var commands [][]any
		for i := range between(random, least, most) {
			commands = append(commands, []any{"XADD", name, "*", "order", i, "state", "paid"})
		}
		return commands
	}
}

// hyperLogLog has counted so many; from some thousands on it takes 12 KiB.
func hyperLogLog(counted int) value {
	return func(_ *rand.Rand, name string) [][]any {
		return [][]any{append([]any{"PFADD", name}, members(counted)...)}
	}
}

func members(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = "user:" + strconv.Itoa(1001+i)
	}
	return list
}

// words are least to most bytes.
func words(random *rand.Rand, least, most int) string {
	const sample = "all that glitters is not gold; "
	n := between(random, least, most)
	return strings.Repeat(sample, n/len(sample)+1)[:n]
}

func between(random *rand.Rand, least, most int) int { return least + random.IntN(most-least+1) }
