package integration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/testredis"
)

// key is a planted key and what is true of it, declared, not computed.
type key struct {
	db       int
	name     string
	typ      string
	length   int64         // elements; of a string its bytes
	ttl      time.Duration // 0 = none
	rules    []string      // that it breaks, ttl_missing aside
	severity string        // of the worst big-key rule
	bytes    int64         // MEMORY USAGE, asked for by the test itself
}

type garden struct{ keys []key }

func (g *garden) plant(k key) { g.keys = append(g.keys, k) }

// commands are what creates the keys of a database.
func (g *garden) commands(db int) [][]any {
	var all [][]any
	for _, k := range g.keys {
		if k.db != db {
			continue
		}
		all = append(all, create(k)...)
		if k.ttl > 0 {
			all = append(all, []any{"PEXPIRE", k.name, k.ttl.Milliseconds()})
		}
	}
	return all
}

func create(k key) [][]any {
	args := make([]any, 0, 2*k.length)
	var all [][]any
	flush := func(cmd string) {
		all = append(all, append([]any{cmd, k.name}, args...))
		args = args[:0:0]
	}
	switch k.typ {
	case "string":
		return [][]any{{"SET", k.name, strings.Repeat("v", int(k.length))}}
	case "stream":
		for range k.length {
			all = append(all, []any{"XADD", k.name, "*", "f", "v"})
		}
		return all
	}
	for i := range k.length {
		member := fmt.Sprintf("m%d", i)
		switch k.typ {
		case "list", "set":
			args = append(args, member)
		case "hash":
			args = append(args, member, "v")
		case "zset":
			args = append(args, i, member)
		}
	}
	flush(map[string]string{"list": "RPUSH", "set": "SADD", "hash": "HSET", "zset": "ZADD"}[k.typ])
	return all
}

var collections = []string{"hash", "list", "set", "zset", "stream"}

// plantBoundaries plants both sides of every boundary of the rulebook.
func (g *garden) plantBoundaries(db int) {
	p := func(k key) { k.db = db; g.plant(k) }
	p(key{name: "str:warn_below", typ: "string", length: 10_240})
	p(key{name: "str:warn", typ: "string", length: 10_241, rules: []string{"big_string"}, severity: "warning"})
	p(key{name: "str:crit_below", typ: "string", length: 5<<20 - 1, rules: []string{"big_string"}, severity: "warning"})
	p(key{name: "str:crit", typ: "string", length: 5 << 20, rules: []string{"big_string"}, severity: "critical"})
	for _, typ := range collections {
		p(key{name: typ + ":1000", typ: typ, length: 1000})
		p(key{name: typ + ":1001", typ: typ, length: 1001, rules: []string{"many_elements"}, severity: "warning"})
		p(key{name: typ + ":9999", typ: typ, length: 9_999, rules: []string{"many_elements"}, severity: "warning"})
		p(key{name: typ + ":10000", typ: typ, length: 10_000, rules: []string{"many_elements"}, severity: "critical"})
	}
	p(key{name: "n:" + strings.Repeat("x", 42), typ: "string", length: 1})
	p(key{name: "n:" + strings.Repeat("x", 43), typ: "string", length: 1, rules: []string{"name_too_long"}})
	p(key{name: "n:" + strings.Repeat("y", 16_382), typ: "string", length: 1, rules: []string{"name_too_long"}})
	p(key{name: "nocolon", typ: "string", length: 1, rules: []string{"name_format"}})
	p(key{name: "1st:segment", typ: "string", length: 1, rules: []string{"name_format"}})
	p(key{name: "{tag}:ok", typ: "string", length: 1})
	p(key{name: "sp:a b", typ: "string", length: 1, rules: []string{"name_special_char"}})
	p(key{name: "sp:\u3000", typ: "string", length: 1, rules: []string{"name_special_char"}})
	p(key{name: "sep:a-b", typ: "string", length: 1, rules: []string{"name_discouraged_separator"}})
	p(key{name: "sep:2026-11-21", typ: "string", length: 1})
	p(key{name: "ttl:short", typ: "string", length: 1, ttl: 30 * 24 * time.Hour})
	p(key{name: "ttl:long", typ: "string", length: 1, ttl: 30*24*time.Hour + time.Hour, rules: []string{"ttl_too_long"}})
	p(key{name: "ttl:ages", typ: "string", length: 1, ttl: 200 * 365 * 24 * time.Hour, rules: []string{"ttl_too_long"}})
}

// plantHealthy plants n small keys of all types, most with a TTL.
func (g *garden) plantHealthy(db, n int) {
	types := append([]string{"string", "string", "string"}, collections...)
	for i := range n {
		k := key{db: db, name: fmt.Sprintf("item:%d", i), typ: types[i%len(types)], length: int64(1 + i%7)}
		switch i % 4 {
		// No minute takes so many that they cluster.
		case 0:
			k.ttl = 30*time.Minute + time.Duration(i%1200)*time.Second
		case 1:
			k.ttl = 12*time.Hour + time.Duration(i%7200)*time.Second
		case 2:
			k.ttl = 3 * 24 * time.Hour
		}
		g.plant(k)
	}
}

// measure asks the server for each key's MEMORY USAGE, and derives from it what
// the byte rules must say.
func (g *garden) measure(t *testing.T, client *redis.Client) {
	t.Helper()
	conn := client.Conn()
	defer conn.Close()
	for chunk := range slices.Chunk(g.keys, 1000) {
		pipe := conn.Pipeline()
		var sizes []*redis.IntCmd
		for _, k := range chunk {
			pipe.Select(t.Context(), k.db)
			sizes = append(sizes, pipe.MemoryUsage(t.Context(), k.name))
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range chunk {
			chunk[i].bytes = sizes[i].Val()
		}
	}
	for i := range g.keys {
		k := &g.keys[i]
		if k.typ == "string" {
			continue
		}
		breaks := func(rule string, warning, critical bool) {
			if !warning && !critical {
				return
			}
			k.rules = append(k.rules, rule)
			if critical {
				k.severity = "critical"
			} else if k.severity == "" {
				k.severity = "warning"
			}
		}
		if k.typ == "hash" && 513 <= k.length && k.length <= 5000 {
			k.rules = append(k.rules, "loose_encoding")
		}
		breaks("big_collection", k.bytes > 1<<20, k.bytes >= 100<<20)
		if k.typ != "stream" {
			breaks("big_element", k.bytes > 4096*k.length, k.bytes >= 65_536*k.length)
		}
	}
}

// truth is what the metrics must say, by arithmetic of the test's own.
func (g *garden) truth(topKeys int) map[string]float64 {
	want := map[string]float64{}
	levels := map[string]string{}
	for _, r := range policy.Rules() {
		levels[r.ID] = r.Level.String()
	}
	total, broken, without := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for _, k := range g.keys {
		db, typ := fmt.Sprintf("db=db%d", k.db), "key_type="+k.typ
		total[db]++
		want[label("keys", db, typ)]++
		want[label("memory_bytes", db, typ)] += float64(k.bytes)
		for _, le := range []float64{128, 512, 1024, 4096, 10240, 102400, 1048576, 5242880, 10485760, 104857600} {
			want[label("key_memory_bytes_bucket", db, typ, fmt.Sprintf("le=%g", le))] += bit(float64(k.bytes) <= le)
		}
		want[label("key_memory_bytes_count", db, typ)]++
		want[label("key_memory_bytes_sum", db, typ)] += float64(k.bytes)
		if k.typ != "string" {
			for _, le := range []float64{1000, 5000, 10000, 100000, 1000000} {
				want[label("key_elements_bucket", db, typ, fmt.Sprintf("le=%g", le))] += bit(float64(k.length) <= le)
			}
			want[label("key_elements_count", db, typ)]++
		}
		rules := k.rules
		if k.ttl == 0 {
			rules = append(slices.Clip(rules), "ttl_missing")
			without[db]++
		} else {
			for _, le := range []float64{60, 600, 3600, 86400, 604800, 2592000} {
				want[label("ttl_seconds_bucket", db, fmt.Sprintf("le=%g", le))] += bit(k.ttl.Seconds() <= le)
			}
			want[label("ttl_seconds_count", db)]++
		}
		naming := false
		for _, r := range rules {
			want[label("rule_violations", db, "rule="+r, "level="+levels[r], "namespace=default")]++
			naming = naming || strings.HasPrefix(r, "name_") && levels[r] != "advisory"
		}
		broken[db] += bit(naming)
		if k.severity != "" {
			want[label("big_keys", db, typ, "severity="+k.severity)]++
			want[label("big_keys_memory_bytes", db, typ, "severity="+k.severity)] += float64(k.bytes)
		}
	}
	for db, n := range total {
		want[label("naming_violation_ratio", db)] = broken[db] / n
		want[label("keys_without_ttl", db)] = without[db]
		want[label("without_ttl_ratio", db)] = without[db] / n
	}
	g.addTop(want, "top_key_memory_bytes", topKeys, g.keys, func(k key) int64 { return k.bytes })
	counted := slices.DeleteFunc(slices.Clone(g.keys), func(k key) bool { return k.typ == "string" })
	g.addTop(want, "top_key_elements", topKeys, counted, func(k key) int64 { return k.length })
	return want
}

// addTop expects the n largest. The garden must have no tie at the n-th place.
func (g *garden) addTop(want map[string]float64, family string, n int, keys []key, value func(key) int64) {
	sorted := slices.Clone(keys)
	slices.SortFunc(sorted, func(a, b key) int { return cmp.Compare(value(b), value(a)) })
	if value(sorted[n-1]) == value(sorted[n]) {
		panic("a tie at the end of " + family)
	}
	for _, k := range sorted[:n] {
		want[label(family, fmt.Sprintf("db=db%d", k.db), "key_type="+k.typ, "namespace=default", "key="+keyspace.Label(k.name))] = float64(value(k))
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// TestExact: on a keyspace of known truth every gauge is the truth, exactly.
func TestExact(t *testing.T) {
	const topKeys = 10
	server := testredis.Start(t)
	client := server.Client(t)
	g := &garden{}
	g.plantBoundaries(0)
	g.plantHealthy(0, 12_000)
	g.plantHealthy(5, 9_000)
	g.plant(key{db: 5, name: "big:1", typ: "string", length: 11_000, rules: []string{"big_string"}, severity: "warning"})
	g.plant(key{db: 5, name: "big:2", typ: "zset", length: 12_000, rules: []string{"many_elements"}, severity: "critical"})
	for i := range 4 { // no ties among those with most elements
		g.plant(key{db: 5, name: fmt.Sprintf("big:set%d", i), typ: "set", length: int64(11_000 + i), rules: []string{"many_elements"}, severity: "critical"})
	}
	load(t, client, 0, g.commands(0)...)
	load(t, client, 5, g.commands(5)...)
	plantByBytes(t, client, g)
	g.measure(t, client)
	checkBothSides(t, g)
	// A dense HyperLogLog is a string of 12,304 bytes.
	if err := client.PFAdd(t.Context(), "hll:visits", members(5000)...).Err(); err != nil {
		t.Fatal(err)
	}
	hll := key{name: "hll:visits", typ: "string", length: 12_304, rules: []string{"big_string"}, severity: "warning"}
	hll.bytes = client.MemoryUsage(t.Context(), hll.name).Val()
	g.plant(hll)

	r := newRig(t, flagsOf(server.Addr()), nil)
	r.cycle()
	got, want := r.metrics(), g.truth(topKeys)
	same(t, got, want, "keys", "memory_bytes", "key_memory_bytes_bucket", "key_memory_bytes_count", "key_memory_bytes_sum",
		"key_elements_bucket", "key_elements_count", "ttl_seconds_bucket", "ttl_seconds_count",
		"rule_violations", "big_keys", "big_keys_memory_bytes", "naming_violation_ratio",
		"keys_without_ttl", "without_ttl_ratio", "top_key_memory_bytes", "top_key_elements")
	for _, exact := range []string{"keys_stderr", "memory_bytes_stderr", "rule_violations_stderr"} {
		for s, v := range got {
			if strings.HasPrefix(s, exact+"{") && v != 0 {
				t.Errorf("%s = %v", s, v)
			}
		}
	}
	same(t, got, map[string]float64{
		label("scan_cycles_total", "result=complete"): 1,
		label("scan_keys_total"):                      float64(len(g.keys)),
		label("scan_coverage_ratio"):                  1,
		label("up"):                                   1,
	}, "scan_cycles_total", "scan_keys_total", "scan_coverage_ratio", "scan_aborts_total", "up", "snapshot_suspect", "scan_errors_total")
	for s, v := range got {
		if strings.HasPrefix(s, "new_big_keys_total") && v != 0 {
			t.Errorf("the first cycle is the baseline, but %s = %v", s, v)
		}
	}
	t.Logf("%d keys, %d series", len(g.keys), len(got))
}

func members(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = fmt.Sprintf("visitor%d", i)
	}
	return all
}

// plantByBytes plants what is judged by MEMORY USAGE, on both sides of each
// limit as near as allocation sizes let it: elements of two sizes are mixed,
// the smaller ones at the end of the first five, which MEMORY USAGE samples.
func plantByBytes(t *testing.T, client *redis.Client, g *garden) {
	t.Helper()
	add := func(name, typ string, elements, small, smallBytes, bytes int) {
		args := []any{map[string]string{"list": "RPUSH", "hash": "HSET"}[typ], name}
		for i := range elements {
			if typ == "hash" {
				args = append(args, fmt.Sprintf("f%d", i))
			}
			size := bytes
			if 5-small <= i && i < 5 {
				size = smallBytes
			}
			args = append(args, strings.Repeat("e", size))
		}
		load(t, client, 0, args)
		g.plant(key{name: name, typ: typ, length: int64(elements)})
	}
	for small := range 6 {
		add(fmt.Sprintf("elem:warn%d", small), "list", 5, small, 3500, 4000)
		add(fmt.Sprintf("elem:crit%d", small), "list", 5, small, 57_000, 65_000)
	}
	for n := 900; n <= 1000; n += 10 {
		add(fmt.Sprintf("coll:warn%d", n), "hash", n, 0, 0, 1000)
	}
	add("coll:crit_below", "list", 25, 1, 7<<19-100, 4<<20-100)
	add("coll:crit", "list", 25, 0, 0, 4<<20-100)
}

// checkBothSides makes sure that the garden has keys close to each byte limit.
func checkBothSides(t *testing.T, g *garden) {
	t.Helper()
	for _, limit := range []struct {
		about string
		value func(key) float64
		at    float64
	}{
		{"1 MiB", func(k key) float64 { return float64(k.bytes) }, 1 << 20},
		{"100 MiB", func(k key) float64 { return float64(k.bytes) }, 100 << 20},
		{"4 KiB an element", func(k key) float64 { return float64(k.bytes) / float64(k.length) }, 4 << 10},
		{"64 KiB an element", func(k key) float64 { return float64(k.bytes) / float64(k.length) }, 64 << 10},
	} {
		below, above := false, false
		for _, k := range g.keys {
			if k.typ == "string" {
				continue
			}
			v := limit.value(k)
			below = below || limit.at*0.97 < v && v <= limit.at
			above = above || limit.at < v && v < limit.at*1.03
		}
		if !below || !above {
			t.Errorf("no key just below (%v) or above (%v) %s", below, above, limit.about)
		}
	}
}
