package topology

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
)

func TestFollows(t *testing.T) {
	healthy := "role:slave\r\nmaster_link_status:up\r\nmaster_last_io_seconds_ago:15\r\nmaster_sync_in_progress:0\r\nslave_repl_offset:1000\r\n"
	for _, tc := range []struct {
		about, text string
		offset      int64 // of the primary; -1 = it cannot be asked
		want        bool
	}{
		{"healthy", healthy, 1000, true},
		{"healthy, without a primary", healthy, -1, true},
		{"a little late", healthy, 1000 + maxLag, true},
		{"late", healthy, 1001 + maxLag, false},
		{"ahead of what the primary said", healthy, 900, true},
		{"silence", "role:slave\r\nmaster_link_status:up\r\nmaster_last_io_seconds_ago:16\r\nslave_repl_offset:1000\r\n", 1000, false},
		{"never heard", "role:slave\r\nmaster_link_status:up\r\nmaster_last_io_seconds_ago:-1\r\nslave_repl_offset:1000\r\n", 1000, false},
		{"link down", "role:slave\r\nmaster_link_status:down\r\nmaster_last_io_seconds_ago:1\r\nslave_repl_offset:1000\r\n", 1000, false},
		{"receives its data", "role:slave\r\nmaster_link_status:up\r\nmaster_last_io_seconds_ago:1\r\nmaster_sync_in_progress:1\r\nslave_repl_offset:1000\r\n", 1000, false},
		{"a primary", "role:master\r\nmaster_repl_offset:1000\r\n", 1000, false},
		{"a sentinel", "role:sentinel\r\n", 1000, false},
		{"nothing", "", 1000, false},
	} {
		var p *replication
		if tc.offset >= 0 {
			p = &replication{role: "primary", offset: tc.offset}
		}
		if got := parseReplication(tc.text).follows(p); got != tc.want {
			t.Errorf("%s: %v", tc.about, got)
		}
	}
	if r := parseReplication("role:master\r\nmaster_repl_offset:5\r\n"); r.role != "primary" || r.offset != 5 {
		t.Errorf("a primary is %+v", r)
	}
}

// TestSettle: after a time on the primary a replica has to stay healthy for a
// while.
func TestSettle(t *testing.T) {
	s := shard{primary: "p", chosen: "p"}
	for i, step := range []struct {
		found int
		since time.Duration // that it has been healthy, before the step; -1 = not
		want  int
	}{
		{-1, -1, -1},
		{0, -1, -1},
		{0, settle - time.Minute, -1},
		{-1, settle - time.Minute, -1},
		{0, -1, -1},
		{0, settle, 0},
	} {
		s.healthy = time.Time{}
		if step.since >= 0 {
			s.healthy = time.Now().Add(-step.since)
		}
		if got := s.prefer(step.found); got != step.want {
			t.Errorf("step %d: %d", i, got)
		}
	}
	s.chosen = ""
	if s.prefer(0) != 0 {
		t.Error("a healthy replica is not taken at the start")
	}
}

func TestParseSlots(t *testing.T) {
	node := func(host any, port int64, name string, more ...any) []any {
		return append([]any{host, port, name}, more...)
	}
	row := func(first, last int64, nodes ...any) any { return append([]any{first, last}, nodes...) }
	parse := func(rows ...any) ([]layout, error) {
		reply := redis.NewCmd(t.Context())
		reply.SetVal(rows)
		return parseSlots(reply, "asked")
	}
	got, err := parse(
		row(0, 5, node("10.0.0.1", 1, "a"), node("10.0.0.2", 2, "b")),
		row(6, 9, node("", 3, "c")),
		row(12, 12, node("10.0.0.1", 1, "a"), node("10.0.0.2", 2, "b")),
		row(13, 13, node(nil, 4, "d", []any{})),
		row(14, 14, node("?", 5, "e", []any{"ip", "10.0.0.5"})),
		row(15, keyspace.NumSlots-1, node("redis-6.example", 6, "f", []any{"ip", "10.0.0.6"})),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ primary, slots string }{
		{"10.0.0.1:1", "0-5,12"},
		{"asked:3", "6-9"},
		{"asked:4", "13"},
		{"10.0.0.5:5", "14"},
		{"redis-6.example:6", "15-16383"},
	}
	if len(got) != len(want) || len(got[0].replicas) != 1 || got[0].replicas[0] != (member{"10.0.0.2:2", "b"}) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		if got[i].primary.address != w.primary || got[i].slots.String() != w.slots {
			t.Errorf("%d: %s %s, want %+v", i, got[i].primary.address, got[i].slots, w)
		}
	}
	for about, rows := range map[string][]any{
		"too few cells":    {row(0, 5)},
		"no slots":         {[]any{"a", "b", node("10.0.0.1", 1, "a")}},
		"backwards":        {row(5, 4, node("10.0.0.1", 1, "a"))},
		"below":            {row(-1, 4, node("10.0.0.1", 1, "a"))},
		"beyond":           {row(0, keyspace.NumSlots, node("10.0.0.1", 1, "a"))},
		"no port":          {row(0, 5, node("10.0.0.1", 0, "a"))},
		"a host that lies": {row(0, 5, node("a\nb", 1, "a"))},
		"no row":           {"x"},
		"no node":          {row(0, 5, "x")},
	} {
		if _, err := parse(rows...); fault.ReasonOf(err) != fault.Protocol {
			t.Errorf("%s: %v", about, err)
		}
	}
	if slots, err := slotsOf(slotsReply(t, row(0, 5, node("10.0.0.1", 1, "a"), node("10.0.0.2", 2, "b"))), "b"); err != nil || slots.String() != "0-5" {
		t.Errorf("of a replica: %v, %v", slots, err)
	}
	if slots, err := slotsOf(slotsReply(t, row(0, 5, node("10.0.0.1", 1, "a"))), "z"); err != nil || slots == nil || slots.String() != "" {
		t.Errorf("of a server without slots: %v, %v", slots, err)
	}
}

func slotsReply(t *testing.T, rows ...any) *redis.Cmd {
	reply := redis.NewCmd(t.Context())
	reply.SetVal(rows)
	return reply
}

// TestWorst: what one said goes before that another was not there.
func TestWorst(t *testing.T) {
	down, auth, unknown := fault.Newf(fault.Down, "down"), fault.Newf(fault.Auth, "auth"), fault.Newf(fault.Config, "unknown")
	for _, tc := range []struct {
		errs []error
		want fault.Reason
	}{
		{[]error{down, down}, fault.Down},
		{[]error{down, auth, unknown}, fault.Auth},
		{[]error{unknown, down}, fault.Config},
	} {
		var err error
		for _, e := range tc.errs {
			err = worst(err, "x", e)
		}
		if fault.ReasonOf(err) != tc.want {
			t.Errorf("%v: %v", tc.errs, err)
		}
	}
}

func TestLiveReplicas(t *testing.T) {
	row := func(words ...any) any { return words }
	got := liveReplicas([]any{
		row("ip", "10.0.0.3", "port", "1", "flags", "slave"),
		row("ip", "10.0.0.2", "port", "1", "flags", "slave,s_down"),
		row("ip", "10.0.0.1", "port", "1", "flags", "slave"),
		row("ip", "10.0.0.4", "port", "1", "flags", "slave,disconnected"),
		row("ip", "a\nb", "port", "1", "flags", "slave"),
		row("ip"), "x",
	})
	if len(got) != 2 || got[0].address != "10.0.0.1:1" || got[1].address != "10.0.0.3:1" {
		t.Errorf("%+v", got)
	}
}
