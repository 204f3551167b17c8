package integration

import (
	"strings"
	"testing"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

// TestOddNames: any bytes may be a name. Each of these keys is large enough to
// be listed by name, and none may cost the scrape.
func TestOddNames(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	names := map[string]string{ // to the label
		"":                              `\e`,
		`\e`:                            `\\e`,
		"a:\xff":                        `a:\xff`,
		"a:\xfe":                        `a:\xfe`, // equal to the last one once sanitised
		"a:\ufffd":                      "a:\ufffd",
		"a:\x00b":                       `a:\x00b`,
		"a:\nb":                         `a:\x0ab`,
		"a:\r\n$-1\r\n":                 `a:\x0d\x0a$-1\x0d\x0a`,
		`a:"b"'c'`:                      `a:"b"'c'`,
		"a:{{ .Value }}":                "a:{{ .Value }}",
		"a:\u202egnp":                   `a:\xe2\x80\xaegnp`,
		"a:" + strings.Repeat("x", 198): "a:" + strings.Repeat("x", 198),
	}
	big := strings.Repeat("v", 20_000)
	var commands [][]any
	for name := range names {
		commands = append(commands, []any{"SET", name, big})
	}
	long := []string{"long:" + strings.Repeat("x", 300) + "1", "long:" + strings.Repeat("x", 300) + "2"}
	for _, name := range long {
		commands = append(commands, []any{"SET", name, big})
	}
	load(t, client, 0, commands...)

	r := newRig(t, flagsOf(server.Addr()), func(o *scanner.Options) { o.TopKeys = 50 })
	r.cycle()
	got := r.metrics()
	listed := 0
	for s := range got {
		if strings.HasPrefix(s, "top_key_memory_bytes{") {
			listed++
		}
	}
	if listed != len(names)+len(long) {
		t.Errorf("%d of %d keys are listed", listed, len(names)+len(long))
	}
	for name, want := range names {
		s := label("top_key_memory_bytes", "db=db0", "namespace=default", "key_type=string", "key="+want)
		if got[s] == 0 {
			t.Errorf("%q is not listed as %s", name, s)
		}
	}
	// special: "", \e, 2 bad UTF-8, NUL, LF, CRLF, quotes, spaces. The empty name
	// has no special character, the bidi override is no control character.
	if v := got[label("rule_violations", "db=db0", "rule=name_special_char", "level=mandatory", "namespace=default")]; v != 8 {
		t.Errorf("name_special_char = %v", v)
	}
}

// TestOversizedName: a name of 200 MB is counted and judged by its name alone;
// it is never sent back to the server.
func TestOversizedName(t *testing.T) {
	if testing.Short() {
		t.Skip("200 MB take long under the race detector")
	}
	server := testredis.Start(t)
	client := server.Client(t)
	load(t, client, 0, small("user", 50)...)
	load(t, client, 0,
		[]any{"SET", strings.Repeat("n", 200<<20), "v"},
		[]any{"SET", strings.Repeat("m", keyspace.MaxNameBytes), "v"},
		[]any{"SET", strings.Repeat("m", keyspace.MaxNameBytes+1), "v"},
	)
	before := infoField(t, client, "memory", "used_memory_peak")

	r := newRig(t, flagsOf(server.Addr()), func(o *scanner.Options) { o.TopKeys = 100 })
	r.cycle()
	got := r.metrics()
	same(t, got, map[string]float64{
		label("keys", "db=db0", "key_type=string"):          51,
		label("keys", "db=db0", "key_type=unknown"):         2,
		label("scan_errors_total", "reason=oversized_name"): 2,
	}, "keys", "scan_errors_total")
	if v := got[label("rule_violations", "db=db0", "rule=name_oversized", "level=mandatory", "namespace=default")]; v != 2 {
		t.Errorf("name_oversized = %v", v)
	}
	if v := got[label("scan_probes_total", "command=memory|usage")]; v != 51 {
		t.Errorf("%v keys were probed", v)
	}
	// The reply to SCAN holds the name once more; a name sent back would, too.
	if grew := infoField(t, client, "memory", "used_memory_peak") - before; grew > 300<<20 {
		t.Errorf("the server's peak grew by %d MiB", grew>>20)
	}
	for _, examples := range r.scanner.State().Snapshot.Examples {
		for _, e := range examples {
			if len(e.Label) > keyspace.MaxLabelBytes {
				t.Errorf("a label of %d bytes", len(e.Label))
			}
		}
	}
}
