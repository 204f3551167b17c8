package policy

import (
	"strings"
	"testing"
)

// primary is a healthy server of which all is known.
func primary() *ServerFacts {
	return &ServerFacts{
		Called: map[string]int64{},
		Known:  map[string]bool{"keys": false},
		Config: &ServerConfig{LazyFree: map[string]bool{ConfigLazyExpire: true}, Timeout: 300, ReplicaLimit: 1 << 28},
		DBs:    1, Keys: 1000, Expires: 1000, Businesses: 1,
		EvictionPolicy: "allkeys-lru", UsedBytes: 1, MaxBytes: 1000,
	}
}

func TestServerRules(t *testing.T) {
	p := mustNew(t)
	for _, tc := range []struct {
		rule   string
		about  string
		change func(*ServerFacts)
		want   Finding
	}{
		{"cmd_forbidden_used", "none called", func(*ServerFacts) {}, Kept},
		{"cmd_forbidden_used", "another command", func(f *ServerFacts) { f.Called["sunion"] = 5 }, Kept},
		{"cmd_forbidden_used", "keys", func(f *ServerFacts) { f.Called["keys"] = 1 }, Violated},
		{"cmd_forbidden_used", "flushall", func(f *ServerFacts) { f.Called["flushall"] = 1 }, Violated},
		{"cmd_forbidden_used", "flushdb", func(f *ServerFacts) { f.Called["flushdb"] = 1 }, Violated},
		{"cmd_forbidden_used", "monitor", func(f *ServerFacts) { f.Called["monitor"] = 1 }, Violated},
		{"cmd_forbidden_used", "debug", func(f *ServerFacts) { f.Called["debug"] = 1 }, Violated},
		{"cmd_forbidden_used", "first probe", func(f *ServerFacts) { f.Called = nil }, NotJudged},
		{"cmd_forbidden_used", "restarted, none called since", func(f *ServerFacts) { f.Reset = true }, NotJudged},
		{"cmd_forbidden_used", "restarted, called since", func(f *ServerFacts) { f.Reset, f.Called["keys"] = true, 1 }, Violated},

		{"cmd_forbidden_enabled", "none known", func(*ServerFacts) {}, Kept},
		{"cmd_forbidden_enabled", "one known", func(f *ServerFacts) { f.Known["debug"] = true }, Violated},
		{"cmd_forbidden_enabled", "denied", func(f *ServerFacts) { f.Known = nil }, NotJudged},

		{"cmd_multi_key_used", "none called", func(*ServerFacts) {}, Kept},
		{"cmd_multi_key_used", "another command", func(f *ServerFacts) { f.Called["keys"] = 5 }, Kept},
		{"cmd_multi_key_used", "sunionstore", func(f *ServerFacts) { f.Called["sunionstore"] = 1 }, Violated},
		{"cmd_multi_key_used", "zintercard", func(f *ServerFacts) { f.Called["zintercard"] = 1 }, Violated},
		{"cmd_multi_key_used", "first probe", func(f *ServerFacts) { f.Called = nil }, NotJudged},

		{"multi_db", "none", func(f *ServerFacts) { f.DBs = 0 }, Kept},
		{"multi_db", "one", func(*ServerFacts) {}, Kept},
		{"multi_db", "two", func(f *ServerFacts) { f.DBs = 2 }, Violated},

		{"maxmemory_policy", "allkeys", func(f *ServerFacts) { f.UsedBytes, f.Expires = 1000, 0 }, Kept},
		{"maxmemory_policy", "no limit", func(f *ServerFacts) { f.MaxBytes = 0 }, Violated},
		{"maxmemory_policy", "noeviction at 90 %", func(f *ServerFacts) { f.EvictionPolicy, f.UsedBytes = "noeviction", 900 }, Kept},
		{"maxmemory_policy", "noeviction above", func(f *ServerFacts) { f.EvictionPolicy, f.UsedBytes = "noeviction", 901 }, Violated},
		{"maxmemory_policy", "volatile, half without TTL", func(f *ServerFacts) { f.EvictionPolicy, f.Expires = "volatile-lru", 500 }, Kept},
		{"maxmemory_policy", "volatile, more", func(f *ServerFacts) { f.EvictionPolicy, f.Expires = "volatile-ttl", 499 }, Violated},
		{"maxmemory_policy", "volatile, no key", func(f *ServerFacts) { f.EvictionPolicy, f.Keys, f.Expires = "volatile-lru", 0, 0 }, Kept},
		{"maxmemory_policy", "not told", func(f *ServerFacts) { f.EvictionPolicy, f.MaxBytes = "", 0 }, NotJudged},

		{"lazyfree_off", "all on", func(*ServerFacts) {}, Kept},
		{"lazyfree_off", "one off", func(f *ServerFacts) { f.Config.LazyFree["lazyfree-lazy-user-del"] = false }, Violated},
		{"lazyfree_off", "an older server lacks one", func(f *ServerFacts) { delete(f.Config.LazyFree, "lazyfree-lazy-user-del") }, Kept},
		{"lazyfree_off", "the server has none", func(f *ServerFacts) { f.Config.LazyFree = nil }, NotJudged},
		{"lazyfree_off", "not asked", func(f *ServerFacts) { f.Config = nil }, NotJudged},

		{"limits_unset", "both set", func(*ServerFacts) {}, Kept},
		{"limits_unset", "least that is set", func(f *ServerFacts) { f.Config.Timeout, f.Config.ReplicaLimit = 1, 1 }, Kept},
		{"limits_unset", "no timeout", func(f *ServerFacts) { f.Config.Timeout = 0 }, Violated},
		{"limits_unset", "no limit", func(f *ServerFacts) { f.Config.ReplicaLimit = 0 }, Violated},
		{"limits_unset", "one unset, one not told", func(f *ServerFacts) { f.Config.Timeout, f.Config.ReplicaLimit = 0, -1 }, Violated},
		{"limits_unset", "one set, one not told", func(f *ServerFacts) { f.Config.ReplicaLimit = -1 }, NotJudged},
		{"limits_unset", "not asked", func(f *ServerFacts) { f.Config = nil }, NotJudged},

		{"mixed_business", "eight", func(f *ServerFacts) { f.Businesses = 8 }, Kept},
		{"mixed_business", "nine", func(f *ServerFacts) { f.Businesses = 9 }, Violated},
	} {
		facts := primary()
		tc.change(facts)
		if got := p.CheckServer(facts)[ruleIndex(t, p, tc.rule)]; got != tc.want {
			t.Errorf("%s: %s: %v, want %v", tc.rule, tc.about, got, tc.want)
		}
	}
	for i, finding := range p.CheckServer(nil) {
		if finding != NotJudged {
			t.Errorf("%s: %v without a primary", p.Rules()[i].ID, finding)
		}
	}
}

// TestServerOptions: what a policy sets holds for servers, too.
func TestServerOptions(t *testing.T) {
	off := false
	p := mustNew(t,
		RuleSpec{ID: "mixed_business", Options: []OptionSpec{number("max_businesses", 2)}},
		RuleSpec{ID: "maxmemory_policy", Options: []OptionSpec{number("full", 50), number("without_ttl", 10)}},
		RuleSpec{ID: "multi_db", Enabled: &off},
	)
	for _, tc := range []struct {
		rule   string
		change func(*ServerFacts)
		want   Finding
	}{
		{"mixed_business", func(f *ServerFacts) { f.Businesses = 2 }, Kept},
		{"mixed_business", func(f *ServerFacts) { f.Businesses = 3 }, Violated},
		{"maxmemory_policy", func(f *ServerFacts) { f.EvictionPolicy, f.UsedBytes = "noeviction", 500 }, Kept},
		{"maxmemory_policy", func(f *ServerFacts) { f.EvictionPolicy, f.UsedBytes = "noeviction", 501 }, Violated},
		{"maxmemory_policy", func(f *ServerFacts) { f.EvictionPolicy, f.Expires = "volatile-lru", 900 }, Kept},
		{"maxmemory_policy", func(f *ServerFacts) { f.EvictionPolicy, f.Expires = "volatile-lru", 899 }, Violated},
		{"multi_db", func(f *ServerFacts) { f.DBs = 2 }, NotJudged},
	} {
		facts := primary()
		tc.change(facts)
		if got := p.CheckServer(facts)[ruleIndex(t, p, tc.rule)]; got != tc.want {
			t.Errorf("%s of %+v: %v, want %v", tc.rule, facts, got, tc.want)
		}
	}
}

func TestLazyExpire(t *testing.T) {
	for _, tc := range []struct {
		config *ServerConfig
		want   Setting
	}{
		{nil, Untold},
		{&ServerConfig{}, Untold},
		{&ServerConfig{LazyFree: map[string]bool{"lazyfree-lazy-user-del": true}}, Untold},
		{&ServerConfig{LazyFree: map[string]bool{ConfigLazyExpire: false}}, Off},
		{&ServerConfig{LazyFree: map[string]bool{ConfigLazyExpire: true}}, On},
	} {
		if got := tc.config.LazyExpire(); got != tc.want {
			t.Errorf("%+v: %v, want %v", tc.config, got, tc.want)
		}
	}
}

// TestServerRows: each row is about keys or about servers.
func TestServerRows(t *testing.T) {
	p := mustNew(t)
	findings := p.CheckServer(primary())
	for i, r := range p.Rules() {
		if r.AboutServer() != (findings[i] != NotJudged) || r.AboutServer() != (r.Group == Servers) {
			t.Errorf("%s: about a server %v, finding %v", r.ID, r.AboutServer(), findings[i])
		}
	}
	seen := map[string]bool{}
	for _, cmd := range ServerCommands() {
		if seen[cmd] {
			t.Errorf("%s is counted twice", cmd)
		}
		seen[cmd] = true
	}
}

func TestBusiness(t *testing.T) {
	for name, want := range map[string]string{
		"order:1": "order", "order#1": "order", "order:invoice:1": "order", "order:": "order", "{order}:1": "order", "{order:1}:cart": "order",
		"123:order:1": "order", "{123}:order:1": "order", "::order:1": "order", "order-a:1": "order-a", "订单:1": "订单",
		"": "", "order": "", ":": "", "1:2": "", "12:order": "", "{}:1": "", "deadbee1:x": "", strings.Repeat("1:", 500): "",
	} {
		if got := Business(name); got != want {
			t.Errorf("Business(%q) = %q, want %q", name, got, want)
		}
		if n := testing.AllocsPerRun(1, func() { Business(name) }); n > 0 {
			t.Errorf("%v allocations for %q", n, name)
		}
	}
}
