package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMode(t *testing.T) {
	t.Parallel()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		about string
		flags RedisFlags
		want  Mode
		err   string // begins with; "" = none
	}{
		{"one address", RedisFlags{Addr: "a"}, Auto, ""},
		{"several", RedisFlags{Addr: "a,b"}, Cluster, ""},
		{"a name", RedisFlags{Addr: "a", SentinelMaster: "m"}, Sentinel, ""},
		{"several and a name", RedisFlags{Addr: "a,b", SentinelMaster: "m", Mode: "auto"}, Sentinel, ""},
		{"standalone", RedisFlags{Addr: "a", Mode: "standalone"}, Standalone, ""},
		{"cluster", RedisFlags{Addr: "a", Mode: "cluster"}, Cluster, ""},
		{"sentinels' password", RedisFlags{Addr: "a", SentinelMaster: "m", SentinelUser: "u", SentinelPasswordFile: password}, Sentinel, ""},
		{"no such mode", RedisFlags{Addr: "a", Mode: "Cluster"}, "", "--redis.mode: "},
		{"no such place to read", RedisFlags{Addr: "a", ReadFrom: "slave"}, "", "--redis.read-from: "},
		{"several, standalone", RedisFlags{Addr: "a,b", Mode: "standalone"}, "", "--redis.addr: "},
		{"no name", RedisFlags{Addr: "a", Mode: "sentinel"}, "", "--redis.mode: "},
		{"an odd name", RedisFlags{Addr: "a", SentinelMaster: "m\n"}, "", "--redis.sentinel-master: "},
		{"a name, cluster", RedisFlags{Addr: "a", Mode: "cluster", SentinelMaster: "m"}, "", "--redis.sentinel-master: "},
		{"a user without sentinels", RedisFlags{Addr: "a", SentinelUser: "u"}, "", "--redis.sentinel-user: "},
		{"a password without sentinels", RedisFlags{Addr: "a", SentinelPasswordFile: password}, "", "--redis.sentinel-password-file: "},
		{"a user without password", RedisFlags{Addr: "a", SentinelMaster: "m", SentinelUser: "u"}, "", "--redis.sentinel-user: "},
		{"no such file", RedisFlags{Addr: "a", SentinelMaster: "m", SentinelPasswordFile: password + "?"}, "", "--redis.sentinel-password-file: "},
	} {
		d, err := c.flags.Validate()
		switch {
		case c.err == "" && (err != nil || d.Mode != c.want):
			t.Errorf("%s: %q, %v", c.about, d.Mode, err)
		case c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err)):
			t.Errorf("%s: %v, want %s…", c.about, err, c.err)
		}
	}
}

// TestSentinelCredentials: the sentinels get theirs and never the servers'.
func TestSentinelCredentials(t *testing.T) {
	t.Parallel()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]Secret{"": "", password: "theirs"} {
		d, err := RedisFlags{Addr: "a,b", SentinelMaster: "m", User: "u", Password: "ours", SentinelPasswordFile: file}.Validate()
		if err != nil {
			t.Fatal(err)
		}
		for _, seed := range d.Seeds {
			if got, err := seed.Password(); err != nil || got != want || seed.User != "" {
				t.Errorf("user %q, an unexpected password or %v", seed.User, err)
			}
		}
		node := d.At("c:1")
		if got, err := node.Password(); err != nil || got != "ours" || node.User != "u" || node.Address != "c:1" {
			t.Errorf("of the servers: user %q at %s, an unexpected password or %v", node.User, node.Address, err)
		}
	}
}
