// Package cli is the command line: it parses flags, builds what they ask for and
// turns what went wrong into an exit code.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"redis_keyhealth_exporter/internal/config"
)

// Exit codes.
const (
	exitOK     = 0
	exitConfig = 2 // flags, files, the web listener: what a person must mend
)

const (
	program        = "redis_keyhealth_exporter"
	defaultCommand = "serve"
	checkCommand   = "check"
	defaultPort    = ":10121"
)

// flags is the command line as given.
type flags struct {
	redis      config.RedisFlags
	scan       config.Scan
	server     config.Server
	log        config.Log
	web        *web.FlagConfig
	telemetry  string
	policyFile string
	asked      asked // check

	given map[string]*bool // by flag: it stands on the command line
}

// Run is the program. It ends when ctx does and returns the exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, app := commandLine(stdout)
	command, err := parse(app, args)
	if err == nil {
		switch command {
		case defaultCommand:
			err = serve(ctx, f, stderr)
		case checkCommand:
			err = check(f, stdout)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", program, f.blame(err))
		return exitConfig
	}
	return exitOK
}

// commandLine declares every flag.
func commandLine(stdout io.Writer) (*flags, *kingpin.Application) {
	f := &flags{given: map[string]*bool{}}
	app := kingpin.New(program, "A Prometheus exporter that watches over the health of the keys in Redis: big keys, missing TTLs, bad names. It walks the keyspace gently in the background and never writes.")
	app.UsageWriter(stdout).ErrorWriter(io.Discard) // Run tells of errors
	app.HelpFlag.Short('h')
	app.Version(version.Print(program)).VersionFlag.Short('V')
	app.Command(defaultCommand, "Scan and expose metrics (default).")
	check := app.Command(checkCommand, "Check the configuration and print the policy that it makes, as a policy file; or tell what it means for one key.")
	// What is asked once is no setting: these have no environment variables.
	check.Flag("key", "Name of a key: tell which namespace and which rules apply to it, and why.").IsSetByUser(&f.asked.given).StringVar(&f.asked.key)
	check.Flag("db", "Database of that key.").Default("0").IsSetByUser(&f.asked.dbGiven).IntVar(&f.asked.db)
	for _, flag := range check.Model().Flags {
		check.GetFlag(flag.Name).SetValue(named{flag.Value, flag.Name})
	}

	app.Flag("redis.addr", "The server to scan: redis://host:port, rediss://host:port (TLS), unix:///path or host:port. A list with commas: some servers of one cluster, or the sentinels; the first one's scheme holds for all.").
		Default("redis://127.0.0.1:6379").StringVar(&f.redis.Addr)
	app.Flag("redis.name", "Name of the deployment, the label target. Default: its host:port.").StringVar(&f.redis.Name)
	app.Flag("redis.mode", "auto, standalone, sentinel or cluster; auto = sentinel with --redis.sentinel-master, else cluster if the server is part of one.").Default("auto").StringVar(&f.redis.Mode)
	app.Flag("redis.sentinel-master", "Name under which the sentinels at --redis.addr know the deployment.").StringVar(&f.redis.SentinelMaster)
	app.Flag("redis.sentinel-user", "ACL user of the sentinels.").StringVar(&f.redis.SentinelUser)
	app.Flag("redis.sentinel-password-file", "File that holds the sentinels' password; they are never sent that of Redis.").StringVar(&f.redis.SentinelPasswordFile)
	app.Flag("redis.read-from", "What is scanned of a shard: replica = a healthy one, the primary where there is none; or primary. Of a cluster or behind sentinels.").Default("replica").StringVar(&f.redis.ReadFrom)
	app.Flag("redis.user", "ACL user.").StringVar(&f.redis.User)
	app.Flag("redis.password-file", "File that holds the password; read anew for each connection. REDIS_PASSWORD is used when there is none.").StringVar(&f.redis.PasswordFile)
	app.Flag("redis.tls-ca-file", "PEM certificates that sign the server's; default: the system's.").StringVar(&f.redis.TLSCAFile)
	app.Flag("redis.tls-cert-file", "PEM client certificate.").StringVar(&f.redis.TLSCertFile)
	app.Flag("redis.tls-key-file", "PEM key of the client certificate.").StringVar(&f.redis.TLSKeyFile)
	app.Flag("redis.tls-server-name", "Name that the certificate must carry, of every server; default: the host of each.").StringVar(&f.redis.TLSServerName)

	app.Flag("scan.interval", "Least time between the starts of two cycles; 0s = at once.").Default("1m").DurationVar(&f.scan.Interval)
	app.Flag("scan.watch-interval", "Time between two looks at the big keys that are known by name, at most 1000: what becomes of them shows at once, however long a cycle takes. Within the budget of --scan.max-duty.").Default("15s").DurationVar(&f.scan.WatchInterval)
	app.Flag("scan.count", "Names per page, 1 to 500.").Default("100").IntVar(&f.scan.Count)
	app.Flag("scan.max-duty", "Share of one server core that the scan may take, above 0 and at most 1.").Default("0.05").Float64Var(&f.scan.MaxDuty)
	app.Flag("scan.max-keys-per-second", "Names per second that the scan may walk; 0 = no limit.").Default("0").Float64Var(&f.scan.MaxKeysPerSecond)
	app.Flag("scan.sample", "MEMORY USAGE on 1 key in 1, 2, 4, 8 or 16, in turns: after so many cycles every key was measured. Above 1, big keys are found later and totals are estimates.").Default("1").IntVar(&f.scan.Sample)
	app.Flag("scan.detail", "TYPE and PTTL on 1 key in so many, 1 to 16, and on every key that may be big; auto = 1 up to 65,536 keys, then as few as keep that many.").Default("auto").StringVar(&f.scan.Detail)
	app.Flag("scan.concurrency", "Nodes of a cluster that are scanned at once.").Default("4").IntVar(&f.scan.Concurrency)
	app.Flag("top.keys", "Length of the lists of largest keys, 0 to 100.").Default("20").IntVar(&f.scan.TopKeys)
	app.Flag("metrics.max-series", "Series of a scrape beyond which detail is dropped: per-key series first, totals never.").Default("20000").IntVar(&f.scan.MaxSeries)

	app.Flag("policy.file", "YAML file with the rules' levels, thresholds, exemptions and namespaces; read anew on SIGHUP and POST /-/reload. Default: the rulebook's, see check.").StringVar(&f.policyFile)
	app.Flag("state.file", "File that carries over a restart what the last cycle found and which big keys are known, so that old ones are not called new; written after each cycle.").StringVar(&f.scan.StateFile)

	app.Flag("server.config-probe", "Read timeout, client-output-buffer-limit and lazyfree-lazy-* by CONFIG GET, for lazyfree_off, limits_unset and ttl_big_key. Off by default: the ACL right to it (+config|get) lets the account read requirepass, too.").BoolVar(&f.server.ConfigProbe)
	app.Flag("server.slowlog-hints", "Watch the keys that the slow log names (+slowlog|get). Off by default: the slow log holds values, of which nothing but names of keys is looked at.").BoolVar(&f.server.SlowlogHints)

	f.web = kingpinflag.AddFlags(app, defaultPort)
	app.Flag("web.telemetry-path", "Path of the metrics.").Default("/metrics").StringVar(&f.telemetry)
	app.Flag("log.level", "debug, info, warn or error.").Default("info").EnumVar(&f.log.Level, "debug", "info", "warn", "error")
	app.Flag("log.format", "logfmt or json.").Default("logfmt").EnumVar(&f.log.Format, "logfmt", "json")

	for _, flag := range app.Model().Flags {
		if flag.Name == "help" || flag.Name == "version" {
			continue
		}
		f.given[flag.Name] = new(bool)
		app.GetFlag(flag.Name).Envar(envar(flag.Name)).IsSetByUser(f.given[flag.Name]).SetValue(named{flag.Value, flag.Name})
	}
	f.redis.Password = config.Secret(os.Getenv("REDIS_PASSWORD"))
	return f, app
}
