package policy

import "slices"

// ServerCommands are all whose calls are counted.
func ServerCommands() []string {
	return slices.Concat(ForbiddenCommands(), MultiKeyCommands(), OnCommands())
}

// OnCommands are counted, not judged: those whose time grows with the size of a
// key, transactions and scripts. They are the label `command` of
// on_command_calls_total and on_command_seconds_total.
func OnCommands() []string {
	return []string{
		"del", "eval", "eval_ro", "evalsha", "evalsha_ro", "exec",
		"geohash", "georadius", "georadius_ro", "georadiusbymember", "georadiusbymember_ro", "geosearch", "geosearchstore",
		"hgetall", "hkeys", "hvals", "lrange", "lrem", "multi", "smembers", "sort", "sort_ro",
		"zrange", "zremrangebylex", "zremrangebyrank", "zremrangebyscore", "zrevrange",
	}
}
