package topology

import (
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/scanner"
)

func TestParseInfo(t *testing.T) {
	for _, tc := range []struct {
		about, text string
		want        func(*scanner.Info)
	}{
		{"nothing", "", func(*scanner.Info) {}},
		{"garbage", "\x00\xff:\n:::\ndb\ndbx:keys=1\ndb-1:keys=1\ndb99999999:keys=1\n# db0:keys=1\n", func(*scanner.Info) {}},
		{
			"a primary",
			"# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nredis_mode:standalone\r\n# Memory\r\nused_memory:100\r\nused_memory_dataset:60\r\nmaxmemory:0\r\nmaxmemory_policy:volatile-lru\r\n" +
				"# Persistence\r\nloading:0\r\n# Stats\r\nexpired_keys:7\r\nevicted_keys:8\r\n# Replication\r\nrole:master\r\n# Cluster\r\ncluster_enabled:0\r\n" +
				"# Keyspace\r\ndb3:keys=5,expires=2,avg_ttl=0\r\ndb0:keys=10,expires=0,avg_ttl=0,subexpiry=1\r\n" +
				"# Commandstats\r\ncmdstat_flushall:calls=2,usec=1,usec_per_call=0.5\r\ncmdstat_flushdb:calls=3,usec=1\r\ncmdstat_swapdb:calls=1,usec=1\r\n",
			func(i *scanner.Info) {
				i.Version, i.RunID, i.Role = "7.0.15", "abc", "primary"
				i.HasMemory, i.UsedBytes, i.DatasetBytes = true, 100, 60
				i.ExpiredKeys, i.EvictedKeys, i.Flushes = 7, 8, 6
				i.DBs = []snapshot.DBInfo{{DB: 0, Keys: 10}, {DB: 3, Keys: 5, Expires: 2}}
				i.EvictionPolicy = "volatile-lru"
				i.Calls = uncalled()
				i.Calls["flushall"] = snapshot.Usage{Calls: 2, Time: time.Microsecond}
				i.Calls["flushdb"] = snapshot.Usage{Calls: 3, Time: time.Microsecond}
			},
		},
		{
			"subcommands of what rules are about are added up, others are left out", // as Redis 7 and 6.2 spell them
			"cmdstat_debug:calls=1,usec=10,usec_per_call=10.00,rejected_calls=5,failed_calls=0\r\ncmdstat_debug|sleep:calls=2,usec=20\r\n" +
				"cmdstat_georadius_ro:calls=3,usec=30,usec_per_call=10.00\r\ncmdstat_keys:calls=0,usec=0,rejected_calls=7\r\n" +
				"cmdstat_config|get:calls=4,usec=40\r\ncmdstat_keysx:calls=1,usec=1\r\n",
			func(i *scanner.Info) {
				i.Usage[keyspace.CmdConfigGet] = snapshot.Usage{Calls: 4, Time: 40 * time.Microsecond}
				i.Calls = uncalled()
				i.Calls["debug"] = snapshot.Usage{Calls: 3, Time: 30 * time.Microsecond}
				i.Calls["georadius_ro"] = snapshot.Usage{Calls: 3, Time: 30 * time.Microsecond}
			},
		},
		{
			"a replica that is synchronising",
			"role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:down\r\nmaster_sync_in_progress:1\r\nloading:1\r\ncluster_enabled:1\r\n",
			func(i *scanner.Info) {
				i.Role, i.PrimaryAddress, i.PrimaryLinkDown, i.Syncing, i.Loading, i.Cluster = "replica", "10.0.0.1:6379", true, true, true, true
			},
		},
		{
			"a replica by IPv6",
			"role:slave\r\nmaster_host:::1\r\nmaster_port:6379\r\nmaster_link_status:up\r\n",
			func(i *scanner.Info) { i.Role, i.PrimaryAddress = "replica", "[::1]:6379" },
		},
		{"Valkey", "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n", func(i *scanner.Info) { i.Server, i.Version = "valkey", "9.1.2" }},
		{"negative and absurd numbers", "used_memory:-5\r\nmaxmemory:99999999999999999999\r\nexpired_keys:x\r\n", func(i *scanner.Info) { i.HasMemory = true }},
		{"a database twice, one without keys", "db0:keys=1,expires=1\r\ndb0:keys=2\r\ndb1:keys=0\r\ndb2:expires=1\r\n", func(i *scanner.Info) {
			i.DBs = []snapshot.DBInfo{{DB: 0, Keys: 1, Expires: 1}}
		}},
		{"more keys that expire than there are, and more than fit", "db0:keys=5,expires=9\r\ndb1:keys=9223372036854775807,expires=0\r\n", func(i *scanner.Info) {
			i.DBs = []snapshot.DBInfo{{DB: 0, Keys: 5, Expires: 5}, {DB: 1, Keys: maxKeys}}
		}},
		{"a version that is no text", "redis_version:\xff\x01\r\n", func(i *scanner.Info) { i.Version = `\xff\x01` }},
	} {
		want := scanner.Info{}
		want.Server = "redis"
		tc.want(&want)
		if got := parseInfo(tc.text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.about, got, want)
		}
	}
}

// uncalled are the statistics of a server before the first call.
func uncalled() map[string]snapshot.Usage {
	calls := map[string]snapshot.Usage{}
	for _, cmd := range policy.ServerCommands() {
		calls[cmd] = snapshot.Usage{}
	}
	return calls
}

func FuzzParseInfo(f *testing.F) {
	f.Add("redis_version:7.0.15\r\nrole:slave\r\nmaster_host:h\r\nmaster_port:1\r\ndb0:keys=1,expires=0\r\n")
	f.Add("server_name:\xff\r\n\xff_version:\xfe\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		info := parseInfo(text)
		for _, s := range []string{info.Server, info.Version, info.Role, info.PrimaryAddress} {
			if !utf8.ValidString(s) || len(s) > 300 {
				t.Fatalf("%q becomes a label value", s)
			}
		}
		last := -1
		for _, db := range info.DBs {
			if db.DB <= last || db.Keys < 1 || db.Expires < 0 {
				t.Fatalf("databases %+v", info.DBs)
			}
			last = db.DB
		}
	})
}
