package topology

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
)

// Options are about the addresses that servers announce of each other.
type Options struct {
	// Rewrite maps an announced host:port to one that can be reached from here,
	// as with NAT or containers. Such an address counts as configured.
	Rewrite map[string]string
	// AllowedNetworks are where the others may be. Empty = anywhere but where no
	// Redis is: a server that lies could make this program speak to its own host
	// and to the metadata service of a cloud.
	AllowedNetworks []netip.Prefix
}

// metadata are the addresses at which clouds tell secrets, beyond link-local ones.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::254/128"),   // AWS
	netip.MustParsePrefix("100.100.100.200/32"),  // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),    // Azure
	netip.MustParsePrefix("192.0.0.192/32"),      // Oracle
	netip.MustParsePrefix("fd20:ce::254/128"),    // Google
	netip.MustParsePrefix("64:ff9b::a9fe:0/112"), // link-local ones through NAT64
}

// guard decides on announced addresses.
type guard struct {
	Options
	local atomic.Bool // a seed or sentinel is on loopback: so may the others be
}

func newGuard(opts Options, seeds []config.Redis) *guard {
	g := &guard{Options: opts}
	for _, seed := range seeds {
		if seed.Network == "unix" {
			g.local.Store(true)
		}
	}
	return g
}

// seen notes where a configured address leads.
func (g *guard) seen(conn net.Conn) {
	if to, ok := conn.RemoteAddr().(*net.TCPAddr); ok && to.IP.IsLoopback() {
		g.local.Store(true)
	}
}

// reach is where to dial for an announced address, and what guards that.
func (g *guard) reach(announced string) (address string, by *guard) {
	if to, ok := g.Rewrite[announced]; ok {
		return to, nil
	}
	return announced, g
}

// control is asked by net.Dialer for each address that it is about to connect to,
// behind the resolution of names.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fault.Newf(fault.Config, "announced address %s: %w", address, err)
	}
	if why := g.objection(to.Addr()); why != "" {
		return fault.Newf(fault.Config, "announced address %s is refused: %s", address, why)
	}
	return nil
}

// objection says why an address may not be dialled, or nothing.
func (g *guard) objection(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	if len(g.AllowedNetworks) > 0 {
		if !within(ip, g.AllowedNetworks) {
			return "it is outside of the allowed networks"
		}
		return ""
	}
	switch {
	case ip.IsLinkLocalUnicast(), within(ip, metadata):
		return "it is link-local, or of a metadata service"
	case ip.IsMulticast():
		return "it is a multicast address"
	case (ip.IsLoopback() || ip.IsUnspecified()) && !g.local.Load():
		return "it is this host, and no configured address is"
	}
	return ""
}

func within(ip netip.Addr, networks []netip.Prefix) bool {
	for _, n := range networks {
		if n.Contains(ip) {
			return true
		}
	}
	return false
}
