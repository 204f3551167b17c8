package topology

import (
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/scanner"
)

// What a server may claim to have.
const (
	maxDBs    = 1 << 14
	maxFields = 2000    // there are some hundred commands
	maxKeys   = 1 << 48 // in a database; the sum over all of them is no overflow
)

// infoFields are the fields that are read; whatever else comes is not kept.
var infoFields = []string{
	"redis_version", "server_name", "valkey_version", "redis_mode", "run_id", "cluster_enabled", "loading",
	"role", "master_host", "master_port", "master_link_status", "master_sync_in_progress",
	"used_memory", "used_memory_dataset", "maxmemory", "maxmemory_policy", "expired_keys", "evicted_keys",
}

// parseInfo reads the default sections of INFO and its commandstats. Whatever
// is missing or odd stays zero: forks leave fields out. Text is not trusted: it
// ends up in label values.
func parseInfo(text string) scanner.Info {
	fields := map[string]string{}
	info := scanner.Info{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if db, ok := parseDB(name, value); ok {
			if len(info.DBs) < maxDBs {
				info.DBs = append(info.DBs, db)
			}
			continue
		}
		if strings.HasPrefix(name, "cmdstat_") && len(fields) < maxFields || slices.Contains(infoFields, name) {
			fields[name] = value
		}
	}
	slices.SortFunc(info.DBs, func(a, b snapshot.DBInfo) int { return a.DB - b.DB })
	info.DBs = slices.CompactFunc(info.DBs, func(a, b snapshot.DBInfo) bool { return a.DB == b.DB })

	number := func(name string) int64 {
		n, err := strconv.ParseInt(fields[name], 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	info.Server, info.Version = "redis", fields["redis_version"]
	if name := fields["server_name"]; name != "" { // Valkey
		info.Server, info.Version = keyspace.Label(name), fields["valkey_version"]
	}
	if info.Version != "" {
		info.Version = keyspace.Label(info.Version)
	}
	switch fields["role"] {
	case "master":
		info.Role = "primary"
	case "slave":
		info.Role = "replica"
		if host, port := fields["master_host"], fields["master_port"]; host != "" && port != "" {
			info.PrimaryAddress = keyspace.Label(net.JoinHostPort(host, port))
		}
		info.PrimaryLinkDown = fields["master_link_status"] != "up"
		info.Syncing = fields["master_sync_in_progress"] == "1"
	}
	info.Cluster = fields["cluster_enabled"] == "1"
	info.Sentinel = fields["redis_mode"] == "sentinel"
	info.RunID = fields["run_id"]
	info.Loading = fields["loading"] == "1"
	if fields["used_memory"] != "" {
		info.HasMemory = true
		info.UsedBytes = number("used_memory")
		info.MaxBytes = number("maxmemory")
		info.DatasetBytes = number("used_memory_dataset")
		info.EvictionPolicy = strings.Clone(fields["maxmemory_policy"])
	}
	info.ExpiredKeys = number("expired_keys")
	info.EvictedKeys = number("evicted_keys")
	for _, cmd := range []string{"flushall", "flushdb", "swapdb"} {
		info.Flushes += usage(fields["cmdstat_"+cmd]).Calls
	}
	for _, cmd := range keyspace.Commands() {
		info.Usage[cmd] = usage(fields["cmdstat_"+cmd.String()])
	}
	info.Calls = calls(fields)
	return info
}

// calls adds up what commandstats tells of the commands that server rules are
// about; nil = it tells nothing.
func calls(fields map[string]string) map[string]snapshot.Usage {
	var all map[string]snapshot.Usage
	for field, stats := range fields {
		name, ok := strings.CutPrefix(field, "cmdstat_")
		if !ok {
			continue
		}
		if all == nil {
			all = map[string]snapshot.Usage{}
			for _, cmd := range policy.ServerCommands() {
				all[cmd] = snapshot.Usage{}
			}
		}
		name, _, _ = strings.Cut(name, "|") // Redis 7 counts subcommands apart
		if sum, listed := all[name]; listed {
			one := usage(stats)
			all[name] = snapshot.Usage{Calls: sum.Calls + one.Calls, Time: sum.Time + one.Time}
		}
	}
	return all
}

// parseDB reads a row such as db0:keys=5,expires=2,avg_ttl=0.
func parseDB(name, value string) (snapshot.DBInfo, bool) {
	digits, ok := strings.CutPrefix(name, "db")
	if !ok {
		return snapshot.DBInfo{}, false
	}
	db, err := strconv.Atoi(digits)
	if err != nil || db < 0 || db >= maxDBs {
		return snapshot.DBInfo{}, false
	}
	keys, ok := pair(value, "keys")
	expires, _ := pair(value, "expires")
	keys = min(keys, maxKeys)
	return snapshot.DBInfo{DB: db, Keys: keys, Expires: min(expires, keys)}, ok && keys > 0
}

// usage reads a row such as calls=1,usec=20,usec_per_call=20.00,….
func usage(stats string) snapshot.Usage {
	calls, _ := pair(stats, "calls")
	usec, _ := pair(stats, "usec")
	return snapshot.Usage{Calls: calls, Time: time.Duration(min(usec, math.MaxInt64/1000)) * time.Microsecond}
}

// pair finds the number of name in a list such as a=1,b=2.
func pair(list, name string) (int64, bool) {
	for field := range strings.SplitSeq(list, ",") {
		if value, ok := strings.CutPrefix(field, name+"="); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			return max(n, 0), err == nil
		}
	}
	return 0, false
}
