package config

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 190)
	for _, c := range []struct {
		addr             string
		network, address string
		tls              bool
	}{
		{"redis://127.0.0.1:6380", "tcp", "127.0.0.1:6380", false},
		{"redis://redis-1.prod_a.example:6380/", "tcp", "redis-1.prod_a.example:6380", false},
		{"redis://cache", "tcp", "cache:6379", false},
		{"rediss://cache:6380", "tcp", "cache:6380", true},
		{"rediss://[::1]", "tcp", "[::1]:6379", true},
		{"cache", "tcp", "cache:6379", false},
		{"cache:6380", "tcp", "cache:6380", false},
		{"127.0.0.1", "tcp", "127.0.0.1:6379", false},
		{":6380", "tcp", "127.0.0.1:6380", false},
		{"cache:06380", "tcp", "cache:6380", false},
		{"cache:65535", "tcp", "cache:65535", false},
		{"cache:1", "tcp", "cache:1", false},
		{"::1", "tcp", "[::1]:6379", false},
		{"2001:db8::7", "tcp", "[2001:db8::7]:6379", false},
		{"[::1]", "tcp", "[::1]:6379", false},
		{"[::1]:6380", "tcp", "[::1]:6380", false},
		{"redis://[fe80::1%eth0]:6380", "tcp", "[fe80::1%eth0]:6380", false},
		{"unix:///run/redis/redis.sock", "unix", "/run/redis/redis.sock", false},
		{"unix:///run/with space, and comma", "unix", "/run/with space, and comma", false},
		{long, "tcp", long + ":6379", false},
	} {
		r, err := RedisFlags{Addr: c.addr}.Validate()
		if err != nil {
			t.Errorf("%q: %v", c.addr, err)
			continue
		}
		if r.Network != c.network || r.Address != c.address || (r.TLS != nil) != c.tls {
			t.Errorf("%q is read as %s %q, TLS %v; want %s %q, TLS %v", c.addr, r.Network, r.Address, r.TLS != nil, c.network, c.address, c.tls)
		}
		if r.Target != c.address {
			t.Errorf("%q: the target is called %q, want the address", c.addr, r.Target)
		}
	}
}

func TestBadAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		addr string
		want error
	}{
		{"", errNoHost},
		{"redis://", errNoHost},
		{"rediss:///", errNoHost},
		{"http://cache:6379", errScheme},
		{"REDIS://cache", errScheme},
		{"redis:cache:6379", errHostPort},
		{"redis://user:canary@cache:6379", errUserInfo},
		{"redis://:canary@cache", errUserInfo},
		{"canary@cache", errUserInfo},
		{"unix://user:canary@/run/redis.sock", errUserInfo},
		{"http://canary@cache", errUserInfo},
		{"redis://user:canary%40cache:6379", errHostPort},
		{"redis://cache:6379?password=canary", errPath},
		{"redis://cache:6379/0?password=canary", errPath},
		{"redis://cache:6379/0", errPath},
		{"redis://cache#canary", errPath},
		{"unix:///run/redis.sock?password=canary", errPath},
		{"unix://run/redis.sock", errSocket},
		{"unix://", errSocket},
		{"unix:///", errSocket},
		{"unix:///run/a\xff.sock", errName},
		{"unix:///" + strings.Repeat("a", maxNameBytes), errName},
		{strings.Repeat("a", maxNameBytes), errName},
		{"cache-1,", errEmpty},
		{",cache-1", errEmpty},
		{"cache-1,,cache-2", errEmpty},
		{"redis://cache-1,rediss://cache-2", errSchemes},
		{"cache-1,rediss://cache-2", errSchemes},
		{"cache-1,unix:///run/redis.sock", errSchemes},
		{"cache-1,canary@cache-2", errUserInfo},
		{"cache-1,cache-2:0", errPort},
		{"cache:", errPort},
		{"cache:0", errPort},
		{"cache:65536", errPort},
		{"cache:+6379", errPort},
		{"cache:-1", errPort},
		{"cache:redis", errPort},
		{"redis://default:canary", errPort},
		{"cache:1:2", errHostPort},
		{"[::1", errHostPort},
		{"::1]", errHostPort},
		{"[]", errHostPort},
		{"[cache]", errHostPort},
		{"[::1]6379", errHostPort},
		{"my cache", errHostPort},
		{"my cache:6379", errHostPort},
		{"cache:6379\n", errPort},
		{"cache\n:6379", errHostPort},
		{"c\u202eache", errHostPort},
		{"c\xffache:1", errHostPort},
		{"$(cache)", errHostPort},
		{"::%[", errHostPort},
	} {
		_, err := RedisFlags{Addr: c.addr}.Validate()
		if !errors.Is(err, c.want) {
			t.Errorf("%q: %v; want %v", c.addr, err, c.want)
			continue
		}
		if !strings.HasPrefix(err.Error(), "--redis.addr: ") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: the error must name the flag and no part of its value: %v", c.addr, err)
		}
	}
}

// TestAddresses: the seeds of a cluster, or the sentinels.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		addr string
		want []string
		tls  bool
	}{
		{"a", []string{"a:6379"}, false},
		{"a,b:7000, [::1]", []string{"a:6379", "b:7000", "[::1]:6379"}, false},
		{"redis://a,redis://b", []string{"a:6379", "b:6379"}, false},
		{"rediss://a,b", []string{"a:6379", "b:6379"}, true},
	} {
		d, err := RedisFlags{Addr: c.addr}.Validate()
		if err != nil || len(d.Seeds) != len(c.want) {
			t.Errorf("%q: %v, %v", c.addr, d.Seeds, err)
			continue
		}
		for i, seed := range d.Seeds {
			host, _, _ := net.SplitHostPort(c.want[i])
			if seed.Address != c.want[i] || (seed.TLS != nil) != c.tls || c.tls && seed.TLS.ServerName != host {
				t.Errorf("%q: %+v", c.addr, seed)
			}
		}
		if d.Address != c.want[0] || d.Target != c.want[0] {
			t.Errorf("%q: the target is %q at %q", c.addr, d.Target, d.Address)
		}
	}
}

func TestAnnouncedAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ host, port, want string }{
		{"10.0.0.1", "6379", "10.0.0.1:6379"},
		{"fe80::1", "1", "[fe80::1]:1"},
		{"redis-1.example", "65535", "redis-1.example:65535"},
		{"", "6379", ""},
		{"10.0.0.1", "0", ""},
		{"10.0.0.1", "65536", ""},
		{"10.0.0.1", "-1", ""},
		{"a\nb", "6379", ""},
		{"a/b", "6379", ""},
		{strings.Repeat("a", maxNameBytes-5), "6379", strings.Repeat("a", maxNameBytes-5) + ":6379"},
		{strings.Repeat("a", maxNameBytes-4), "6379", ""},
	} {
		if got, ok := AnnouncedAddress(c.host, c.port); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%q %q: %q, %v", c.host, c.port, got, ok)
		}
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		fine bool
	}{
		{"orders", true},
		{"订单 (prod)", true},
		{strings.Repeat("a", 200), true},
		{strings.Repeat("a", 201), false},
		{"a\xff", false},
		{"a\nb", false},
		{"a\x00", false},
		{"a\u202eb", false},
		{"a\u200bb", false},
	} {
		r, err := RedisFlags{Addr: "cache", Name: c.name}.Validate()
		switch {
		case c.fine && (err != nil || r.Target != c.name):
			t.Errorf("%q: the target is called %q, %v", c.name, r.Target, err)
		case !c.fine && (err == nil || !strings.HasPrefix(err.Error(), "--redis.name: ")):
			t.Errorf("%q: %v", c.name, err)
		}
	}
}

// FuzzAddress: no address panics, an accepted one can be dialled and labelled,
// and none is repeated by the error, wherever in it a password stands.
func FuzzAddress(f *testing.F) {
	for _, seed := range [][2]string{
		{"redis://", "@cache:6379"},
		{"redis://user:", "@cache"},
		{"rediss://cache:", ""},
		{"unix://", "@/run/redis.sock"},
		{"", "@[::1]:6379"},
		{"redis://[", "]:6379"},
		{"redis://cache/0?password=", ""},
		{"", "://cache"},
		{"\xff", "\x00"},
	} {
		f.Add(seed[0], seed[1])
	}
	const canary = "hunter2canary"
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, addr := range []string{before + after, before + canary + after, before + canary + "@" + after} {
			_, network, addresses, err := parseAddresses(addr)
			if strings.Contains(addr, "@") && err != errUserInfo {
				t.Fatalf("%q holds an @: %v", addr, err)
			}
			if err != nil {
				if strings.Contains(err.Error(), canary) {
					t.Fatalf("%q is repeated: %v", addr, err)
				}
				continue
			}
			for _, address := range addresses {
				check(t, addr, network, address)
			}
		}
	})
}

// check holds what an address became against what it may be.
func check(t *testing.T, addr, network, address string) {
	t.Helper()
	if !utf8.ValidString(address) || len(address) > maxNameBytes || strings.ContainsAny(address, "\n\x00") {
		t.Fatalf("%q becomes the label %q", addr, address)
	}
	if network == "unix" {
		return
	}
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.Atoi(port); err != nil || host == "" || bad != nil || n < 1 || n > 65535 {
		t.Fatalf("%q becomes %q, which cannot be dialled: %v", addr, address, err)
	}
	if _, _, again, err := parseAddresses("redis://" + address); err != nil || len(again) != 1 || again[0] != address {
		t.Fatalf("%q becomes %q, which is read as %q, %v", addr, address, again, err)
	}
}
