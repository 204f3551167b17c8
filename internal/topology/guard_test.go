package topology

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
)

func TestGuard(t *testing.T) {
	lan := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tc := range []struct {
		address string
		open    bool // by default, from elsewhere
		local   bool // by default, where a seed is on loopback
		lan     bool // where only lan is allowed
	}{
		{"10.0.0.1:6379", true, true, true},
		{"10.255.255.255:6379", true, true, true},
		{"11.0.0.0:6379", true, true, false},
		{"192.168.1.1:6379", true, true, false},
		{"8.8.8.8:6379", true, true, false},
		{"[fd00::1]:6379", true, true, true},
		{"[2001:db8::1]:6379", true, true, false},
		{"[::ffff:10.0.0.1]:6379", true, true, true},
		{"127.0.0.1:6379", false, true, false},
		{"127.255.255.254:6379", false, true, false},
		{"[::1]:6379", false, true, false},
		{"[::ffff:127.0.0.1]:6379", false, true, false},
		{"0.0.0.0:6379", false, true, false},
		{"[::]:6379", false, true, false},
		{"169.254.0.1:6379", false, false, false},
		{"169.254.169.254:80", false, false, false},
		{"[::ffff:169.254.169.254]:80", false, false, false},
		{"[64:ff9b::a9fe:a9fe]:80", false, false, false},
		{"[fe80::1%eth0]:6379", false, false, false},
		{"[fd00:ec2::254]:80", false, false, true}, // it is asked for
		{"100.100.100.200:80", false, false, false},
		{"168.63.129.16:80", false, false, false},
		{"224.0.0.1:6379", false, false, false},
		{"[ff02::1]:6379", false, false, false},
		{"not an address", false, false, false},
	} {
		for about, c := range map[string]struct {
			guard *guard
			want  bool
		}{
			"from elsewhere": {newGuard(Options{}, []config.Redis{{Network: "tcp", Address: "10.0.0.9:1"}}), tc.open},
			"from a socket":  {newGuard(Options{}, []config.Redis{{Network: "unix", Address: "/run/redis.sock"}}), tc.local},
			"in a LAN":       {newGuard(Options{AllowedNetworks: lan}, []config.Redis{{Network: "unix"}}), tc.lan},
		} {
			err := c.guard.control(context.Background(), "tcp", tc.address, nil)
			if (err == nil) != c.want || err != nil && fault.ReasonOf(err) != fault.Config {
				t.Errorf("%s %s: %v", tc.address, about, err)
			}
		}
	}
}

// remote is a connection to somewhere.
type remote struct {
	net.Conn
	addr net.Addr
}

func (r remote) RemoteAddr() net.Addr { return r.addr }

// TestGuardSeesSeeds: where a seed is on this host, whatever its name, so may the
// other servers be.
func TestGuardSeesSeeds(t *testing.T) {
	for ip, want := range map[string]bool{"127.0.0.1": true, "::1": true, "10.0.0.1": false, "169.254.1.1": false} {
		g := newGuard(Options{}, nil)
		g.seen(remote{addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 6379}})
		if got := g.control(context.Background(), "tcp", "127.0.0.1:6379", nil) == nil; got != want {
			t.Errorf("a seed at %s: loopback allowed is %v", ip, got)
		}
	}
}

// TestGuardDials: a refused address is never dialled, by whatever name; one that
// is rewritten counts as configured.
func TestGuardDials(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	g := newGuard(Options{Rewrite: map[string]string{"10.0.0.1:6379": listener.Addr().String()}}, nil)
	for announced, want := range map[string]bool{
		listener.Addr().String():            false,
		net.JoinHostPort("localhost", port): false,
		"10.0.0.1:6379":                     true,
	} {
		address, by := g.reach(announced)
		n := newNode(config.Redis{}.At(address), seedID(config.Deployment{}))
		n.guard = by
		conn, err := n.dial(t.Context(), "tcp", address)
		if (err == nil) != want || err != nil && fault.ReasonOf(classify(err)) != fault.Config {
			t.Errorf("%s: %v", announced, err)
		}
		if err == nil {
			conn.Close()
		}
		n.Close()
	}
}
