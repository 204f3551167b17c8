package topology

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"redis_keyhealth_exporter/internal/keyspace"
)

const (
	// slowEntries is what is asked of the slow log: all that it holds by default.
	slowEntries = 128
	// maxSlowKeys is how many names one look may bring.
	maxSlowKeys = 100
)

// slowSeen is the newest entry of a node's slow log that was read, over all
// sessions.
type slowSeen struct {
	mu       sync.Mutex
	id, unix int64
}

// news are the entries that are newer, newest first as they came. Ids begin anew
// with the server's process; its clock does not.
func (s *slowSeen) news(entries []slowEntry) []slowEntry {
	if len(entries) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, unix := s.id, s.unix
	s.id, s.unix = entries[0].id, entries[0].unix
	if s.id < id {
		return entries
	}
	return slices.DeleteFunc(entries, func(e slowEntry) bool { return e.id <= id && e.unix <= unix })
}

// SlowKeys reads the slow log. Of its arguments only the names of keys are
// looked at: the others are values, which nobody here may see.
func (s *session) SlowKeys(ctx context.Context) ([]string, error) {
	if s.denied(keyspace.CmdSlowlogGet) {
		return nil, nil
	}
	reply, err := s.simple(ctx, keyspace.CmdSlowlogGet, slowEntries)
	if err != nil {
		return nil, err
	}
	rows, err := reply.Slice()
	if err != nil {
		return nil, nil //nolint:nilerr // denied
	}
	var entries []slowEntry
	for _, row := range rows {
		if entry, ok := parseSlow(row); ok {
			entries = append(entries, entry)
		}
	}
	var names []string
	for _, entry := range s.slow.news(entries) {
		for _, name := range entry.keys {
			if len(names) < maxSlowKeys && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// slowEntry is what is kept of an entry of the slow log.
type slowEntry struct {
	id, unix int64
	keys     []string
}

// parseSlow reads id, time, duration, arguments and, since Redis 4, the address
// and name of the client. Our own commands name no key.
func parseSlow(reply any) (slowEntry, bool) {
	fields, ok := reply.([]any)
	if !ok || len(fields) < 4 {
		return slowEntry{}, false
	}
	id, hasID := fields[0].(int64)
	unix, hasTime := fields[1].(int64)
	words, hasArgs := fields[3].([]any)
	if !hasID || !hasTime || !hasArgs {
		return slowEntry{}, false
	}
	entry := slowEntry{id: id, unix: unix}
	if len(fields) > 5 && fields[5] == clientName {
		return entry, true
	}
	args := make([]string, 0, len(words))
	for _, word := range words {
		arg, ok := word.(string)
		if !ok {
			return entry, true
		}
		args = append(args, arg)
	}
	entry.keys = keysOf(args)
	return entry, true
}

// keyPositions tell where a command has its keys.
type keyPositions struct {
	first, last, step int // last counts from the end where it is negative
	count             int // position of their number; 0 = none: they follow it
}

var (
	oneKey   = keyPositions{first: 1, last: 1, step: 1}
	twoKeys  = keyPositions{first: 1, last: 2, step: 1}
	allKeys  = keyPositions{first: 1, last: -1, step: 1}
	keyPairs = keyPositions{first: 1, last: -1, step: 2}
)

// slowCommands are the commands whose time grows with a key's size. The probes
// of this program are not among them.
var slowCommands = func() map[string]keyPositions {
	table := map[string]keyPositions{
		"mset": keyPairs, "msetnx": keyPairs,
		"bitop": {first: 2, last: -1, step: 1},
		"eval":  {count: 2}, "evalsha": {count: 2}, "eval_ro": {count: 2}, "evalsha_ro": {count: 2},
		"zunionstore": {first: 1, last: 1, step: 1, count: 2}, "zinterstore": {first: 1, last: 1, step: 1, count: 2}, "zdiffstore": {first: 1, last: 1, step: 1, count: 2},
		"zunion": {count: 1}, "zinter": {count: 1}, "zdiff": {count: 1}, "zintercard": {count: 1}, "sintercard": {count: 1},
		"lmpop": {count: 1}, "zmpop": {count: 1}, "blmpop": {count: 2}, "bzmpop": {count: 2},
	}
	for positions, names := range map[keyPositions]string{
		oneKey: `get getset getdel getex getrange set setex psetex setnx setrange append bitcount bitpos
			hgetall hkeys hvals hmget hset hmset hdel hscan hrandfield
			lrange lrem linsert lindex lset ltrim lpush rpush lpop rpop lpos
			smembers sadd srem spop srandmember sscan smismember
			zadd zrem zrange zrevrange zrangebyscore zrevrangebyscore zrangebylex zrevrangebylex zremrangebyrank
			zremrangebyscore zremrangebylex zcount zlexcount zscan zpopmin zpopmax zrandmember zmscore
			xadd xdel xtrim xrange xrevrange
			geoadd geohash geopos geosearch georadius georadiusbymember georadius_ro georadiusbymember_ro
			sort sort_ro dump restore`,
		twoKeys: `rename renamenx copy smove rpoplpush lmove brpoplpush blmove geosearchstore zrangestore`,
		allKeys: `del unlink mget sunion sinter sdiff sunionstore sinterstore sdiffstore pfcount pfmerge`,
	} {
		for name := range strings.FieldsSeq(names) {
			table[name] = positions
		}
	}
	return table
}()

// keysOf picks the names of keys out of a command's arguments. What the slow log
// cut short names no key.
func keysOf(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	at, listed := slowCommands[strings.ToLower(args[0])]
	if !listed {
		return nil
	}
	var names []string
	pick := func(first, last, step int) {
		for i := first; i <= last && i < len(args); i += step {
			if !cutShort(args[i]) {
				names = append(names, args[i])
			}
		}
	}
	if at.first > 0 {
		last := at.last
		if last < 0 {
			last += len(args)
		}
		pick(at.first, last, at.step)
	}
	if at.count > 0 && at.count < len(args) {
		if n, err := strconv.Atoi(args[at.count]); err == nil && n > 0 {
			pick(at.count+1, at.count+min(n, len(args)), 1)
		}
	}
	return names
}

// cutShort finds what the slow log leaves of a long argument or of many: they
// end in "... (12 more bytes)" and "... (12 more arguments)".
func cutShort(arg string) bool {
	_, tail, found := strings.Cut(arg, "... (")
	return found && (strings.HasSuffix(tail, " more bytes)") || strings.HasSuffix(tail, " more arguments)"))
}
