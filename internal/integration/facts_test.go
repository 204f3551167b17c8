package integration

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

// plot is a keyspace whose small keys are all in the fixed sample, so that what
// is estimated from it is exact.
type plot struct {
	t      *testing.T
	client *redis.Client
	next   int
	dumps  map[string]string
	want   map[string]float64
	levels map[string]string
	load   [][]any
}

func newPlot(t *testing.T, client *redis.Client) *plot {
	p := &plot{t: t, client: client, dumps: map[string]string{}, want: map[string]float64{}, levels: map[string]string{}}
	for _, r := range policy.Rules() {
		p.levels[r.ID] = r.Level.String()
	}
	return p
}

// name is a new one of the fixed sample.
func (p *plot) name(prefix string) string {
	for {
		p.next++
		if name := fmt.Sprintf("%s:%d", prefix, p.next); keyspace.HashName(name)>>32%64 == 0 {
			return name
		}
	}
}

// expect counts n keys of an encoding that break the rules.
func (p *plot) expect(n int, typ, encoding string, rules ...string) {
	p.want[label("keys_by_encoding", "db=db0", "key_type="+typ, "encoding="+encoding)] += float64(n)
	p.breaks(n, rules...)
}

// breaks counts n keys more that break the rules.
func (p *plot) breaks(n int, rules ...string) {
	for _, id := range rules {
		p.want[label("rule_violations", "db=db0", "rule="+id, "level="+p.levels[id], "namespace=default")] += float64(n)
	}
}

// create queues a key of n elements or bytes, each with a value of so many.
func (p *plot) create(name, typ string, n, value int, ttl time.Duration) {
	args := []any{map[string]string{"hash": "HSET", "set": "SADD", "list": "RPUSH"}[typ], name}
	for i := range n {
		args = append(args, fmt.Sprint("m", i))
		if typ == "hash" {
			args = append(args, strings.Repeat("v", value))
		}
	}
	p.load = append(p.load, args)
	if ttl > 0 {
		p.load = append(p.load, []any{"PEXPIRE", name, ttl.Milliseconds()})
	}
}

// text queues a string of n bytes that starts with head, and never expires.
func (p *plot) text(name, head string, n int) {
	p.load = append(p.load, []any{"SET", name, head + strings.Repeat("v", n-len(head))})
}

// restore queues n copies of a key that were used so long ago, or so often.
func (p *plot) restore(prefix, of string, n int, ttl time.Duration, what string, value int64) {
	if p.dumps[of] == "" {
		dump, err := p.client.Dump(p.t.Context(), of).Result()
		if err != nil {
			p.t.Fatal(err)
		}
		p.dumps[of] = dump
	}
	for range n {
		p.load = append(p.load, []any{"RESTORE", p.name(prefix), ttl.Milliseconds(), p.dumps[of], what, value})
	}
}

func (p *plot) plant() {
	p.t.Helper()
	load(p.t, p.client, 0, p.load...)
	p.load = nil
}

// template makes keys to copy, and takes them away again.
func (p *plot) template() {
	p.load = append(p.load, []any{"SET", "tmp:small", "value"})
	p.create("tmp:list", "list", 1500, 0, 0)
	p.create("tmp:hash", "hash", 12_000, 1, 0)
	p.plant()
	for _, name := range []string{"tmp:small", "tmp:list", "tmp:hash"} {
		p.restore("unused", name, 0, 0, "IDLETIME", 0)
		p.load = append(p.load, []any{"DEL", name})
	}
	p.plant()
}

// TestDetailRules: each rule on detail facts fires exactly as often as it was
// planted, on both sides of each boundary, and in the second cycle as in the
// first, although the first one touched the candidates.
func TestDetailRules(t *testing.T) {
	const day = 24 * time.Hour
	server := testredis.Start(t)
	client := server.Client(t)
	p := newPlot(t, client)
	p.template()

	for _, fields := range []int{512, 513, 1000, 1001, 5000, 5001} {
		p.create(fmt.Sprint("hash:", fields), "hash", fields, 70, time.Hour)
		p.expect(1, "hash", "hashtable")
		if 513 <= fields && fields <= 5000 {
			p.breaks(1, "loose_encoding")
		}
		if fields > 1000 {
			p.breaks(1, "many_elements", "ttl_big_key")
		}
	}
	p.create("hash:listpack", "hash", 512, 1, time.Hour)
	p.expect(1, "hash", "listpack")
	p.create("set:600", "set", 600, 0, time.Hour)
	p.expect(1, "set", "hashtable")

	p.text(p.name("doc"), "{", 1024)
	p.text(p.name("doc"), "x", 2000)
	p.expect(2, "string", "raw", "ttl_missing")
	p.text(p.name("doc"), "{", 1025)
	p.text(p.name("doc"), "[", 2000)
	p.expect(2, "string", "raw", "ttl_missing", "json_string")
	p.text("doc:large", "{", 11_000)
	p.expect(1, "string", "raw", "ttl_missing", "json_string", "big_string")

	seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
	p.restore("idle", "tmp:small", 3, 0, "IDLETIME", seconds(30*day)-1000)
	p.expect(3, "string", "embstr", "ttl_missing")
	p.restore("idle", "tmp:small", 4, 0, "IDLETIME", seconds(30*day)+1000)
	p.expect(4, "string", "embstr", "ttl_missing", "idle_permanent")
	p.restore("idle", "tmp:small", 2, time.Hour, "IDLETIME", seconds(40*day))
	p.expect(2, "string", "embstr")
	p.restore("idle", "tmp:list", 5, 0, "IDLETIME", seconds(100*day))
	p.expect(5, "list", "quicklist", "ttl_missing", "idle_permanent", "many_elements")

	p.plant()
	minute := time.Now().Add(3 * time.Hour).Truncate(time.Minute)
	for i := range 1500 {
		name := p.name("session")
		p.load = append(p.load, []any{"SET", name, "v"}, []any{"PEXPIREAT", name, minute.Add(time.Duration(i) * 39 * time.Millisecond).UnixMilli()})
	}
	p.expect(1500, "string", "embstr", "ttl_clustered")
	for i := range 900 { // a minute that is not too full
		name := p.name("session")
		p.load = append(p.load, []any{"SET", name, "v"}, []any{"PEXPIREAT", name, minute.Add(time.Hour + time.Duration(i)*time.Millisecond).UnixMilli()})
	}
	p.expect(900, "string", "embstr")
	p.plant()
	p.want[label("expiring_keys_peak", "db=db0")] = 1500
	p.want[label("expiring_keys_peak_timestamp_seconds", "db=db0")] = float64(minute.Unix())
	for le, n := range map[float64]float64{60: 5, 3600: 5, 86400: 5, 604800: 5, 2592000: 8, 7776000: 12} {
		p.want[label("idle_seconds_bucket", "db=db0", fmt.Sprintf("le=%g", le))] = n
	}
	p.want[label("idle_seconds_count", "db=db0")] = 17

	on := true
	rules, err := policy.New(policy.Spec{Rules: []policy.RuleSpec{{ID: "json_string", Enabled: &on}}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, flagsOf(server.Addr()), func(o *scanner.Options) { o.Policy, o.ConfigProbe = rules, true })
	for cycle := range 3 {
		if cycle == 2 {
			do(t, client, "CONFIG", "SET", "lazyfree-lazy-expire", "yes")
			p.breaks(-3, "ttl_big_key")
		}

		r.cycle()
		got := r.metrics()
		same(t, got, p.want, "rule_violations", "keys_by_encoding", "expiring_keys_peak", "expiring_keys_peak_timestamp_seconds", "idle_seconds_bucket", "idle_seconds_count")
		notExact(t, got)
		evaluated(t, got, "name_unknown_prefix", "hot_key", "hot_and_big")
	}
}

// TestHotRules: hot keys show on a primary that evicts by LFU.
func TestHotRules(t *testing.T) {
	server := testredis.Start(t, "--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lfu", "--lfu-decay-time", "0", "--lfu-log-factor", "100")
	client := server.Client(t)
	p := newPlot(t, client)
	p.template()
	p.restore("hot", "tmp:small", 30, time.Hour, "FREQ", 199)
	p.expect(30, "string", "embstr")
	p.restore("hot", "tmp:small", 7, time.Hour, "FREQ", 200)
	p.expect(7, "string", "embstr", "hot_key")
	p.restore("hot", "tmp:hash", 2, time.Hour, "FREQ", 240)
	p.expect(2, "hash", "hashtable", "hot_key", "hot_and_big", "many_elements")
	p.restore("hot", "tmp:list", 2, time.Hour, "FREQ", 50)
	p.expect(2, "list", "quicklist", "many_elements")
	p.plant()
	r := newRig(t, flagsOf(server.Addr()), nil)
	for range 2 {
		r.cycle()
		got := r.metrics()
		same(t, got, p.want, "rule_violations", "keys_by_encoding", "idle_seconds_count")
		notExact(t, got)
		evaluated(t, got, "name_unknown_prefix", "json_string", "ttl_big_key", "idle_permanent")
		var hottest []float64
		for s, v := range got {
			if strings.HasPrefix(s, "hot_key_frequency{") {
				hottest = append(hottest, v)
			}
		}
		slices.Sort(hottest)
		if want := []float64{199, 200, 200, 200, 200, 200, 200, 200, 240, 240}; !slices.Equal(hottest, want) {
			t.Errorf("hottest %v, want %v", hottest, want)
		}
	}

	setUser(t, client, append(slices.DeleteFunc(slices.Clone(fullRights), func(r string) bool { return r == "+object|freq" }), "%R~*")...)
	r = newRig(t, userFlags(server.Addr()), nil)
	r.cycle()
	got := r.metrics()
	evaluated(t, got, "name_unknown_prefix", "json_string", "ttl_big_key", "idle_permanent", "hot_key", "hot_and_big")
	for s := range got {
		if strings.HasPrefix(s, "hot_key_frequency") || strings.HasPrefix(s, "rule_violations") && strings.Contains(s, "rule=hot_") {
			t.Errorf("%s without OBJECT FREQ", s)
		}
	}
	if v, ok := got[label("capability", "command=object|freq")]; !ok || v != 0 {
		t.Errorf("capability of OBJECT FREQ is %v, %v", v, ok)
	}
}

// TestHotEstimate: of small keys 1 in 64 is asked, and the figure is as good as
// it says.
func TestHotEstimate(t *testing.T) {
	const n, hot = 20_000, 6_000
	server := testredis.Start(t, "--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lfu", "--lfu-decay-time", "0")
	client := server.Client(t)
	p := newPlot(t, client)
	p.template()
	for i := range n {
		frequency := 100
		if i < hot {
			frequency = 201
		}
		p.load = append(p.load, []any{"RESTORE", fmt.Sprint("user:", i), 0, p.dumps["tmp:small"], "FREQ", frequency})
	}
	p.plant()
	r := newRig(t, flagsOf(server.Addr()), nil)
	r.cycle()
	got := r.metrics()
	labels := []string{"db=db0", "rule=hot_key", "level=recommended", "namespace=default"}
	value, stderr := got[label("rule_violations", labels...)], got[label("rule_violations_stderr", labels...)]
	if want := n * math.Sqrt(0.3*0.7/(n/64)); math.Abs(value-hot) > 4*stderr || math.Abs(stderr/want-1) > 0.2 {
		t.Errorf("%v ± %v hot keys, want %d ± %.0f", value, stderr, hot, want)
	}
	if asked := got[label("scan_probes_total", "command=object|freq")]; math.Abs(asked-n/64) > 90 {
		t.Errorf("%v keys were asked", asked)
	}
	t.Logf("%v ± %v", value, stderr)
}

// evaluated compares which rules about keys were not.
func evaluated(t *testing.T, got map[string]float64, not ...string) {
	t.Helper()
	for _, r := range policy.Rules() {
		if r.AboutServer() {
			continue
		}
		if want := !slices.Contains(not, r.ID); (got[label("rule_evaluated", "rule="+r.ID)] == 1) != want {
			t.Errorf("%s evaluated: want %v", r.ID, want)
		}
		for s := range got {
			if slices.Contains(not, r.ID) && strings.HasPrefix(s, "rule_violations") && strings.Contains(s, "rule="+r.ID+"}") {
				t.Errorf("%s = %v, but it is not evaluated", s, got[s])
			}
		}
	}
}

// notExact reports what should be known exactly, but is not.
func notExact(t *testing.T, got map[string]float64) {
	t.Helper()
	for _, s := range slices.Sorted(maps.Keys(got)) {
		if strings.HasPrefix(s, "rule_violations_stderr{") && got[s] != 0 {
			t.Errorf("%s = %v", s, got[s])
		}
	}
}
