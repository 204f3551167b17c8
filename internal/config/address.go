package config

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	defaultPort = "6379"

	// maxNameBytes bounds the label values that the flags make.
	maxNameBytes = 200
)

// What is wrong with an address. None of it repeats any of the address: a
// password stands in all of its parts, when it is written by mistake.
var (
	errUserInfo = errors.New("must not hold a user or password: use --redis.user and --redis.password-file")
	errScheme   = errors.New("must be redis://host:port, rediss://host:port (TLS), unix:///path or host:port")
	errSocket   = errors.New("the socket's path must be absolute and name a file, as in unix:///run/redis.sock")
	errEmpty    = errors.New("an address is empty, see the commas")
	errSchemes  = errors.New("the first address's scheme holds for all: give no other one")
	errPath     = errors.New("takes no path or query: every database is scanned")
	errNoHost   = errors.New("the host is missing, as in redis://127.0.0.1:6379")
	errHostPort = errors.New("is no host:port; an IPv6 address with a port is written [::1]:6379")
	errPort     = errors.New("the port is no number from 1 to 65535")
	errName     = errors.New("must be printable UTF-8 of at most 200 bytes")
)

// parseAddresses reads a list of addresses: redis://, rediss://, unix:// and plain
// host:port. The scheme of the first one holds for all. A socket is one address:
// commas may be part of its path.
func parseAddresses(list string) (scheme, network string, addresses []string, err error) {
	if strings.Contains(list, "@") {
		return "", "", nil, errUserInfo
	}
	all := strings.Split(list, ",")
	if strings.HasPrefix(list, "unix://") {
		all = []string{list}
	}
	for i, addr := range all {
		if i > 0 {
			addr = strings.Trim(addr, " ")
		}
		if addr == "" && len(all) > 1 {
			return "", "", nil, errEmpty
		}
		own, rest, given := strings.Cut(addr, "://")
		if !given {
			own, rest = scheme, addr
		}
		if i == 0 {
			if scheme = own; !given {
				scheme = "redis"
			}
		} else if own != scheme {
			return "", "", nil, errSchemes
		}
		switch scheme {
		case "unix":
			network, err = "unix", checkSocket(rest)
		case "redis", "rediss":
			network = "tcp"
			rest, err = parseTCP(rest)
		default:
			err = errScheme
		}
		if err == nil && !validName(rest) {
			err = errName
		}
		if err != nil {
			return "", "", nil, err
		}
		addresses = append(addresses, rest)
	}
	return scheme, network, addresses, nil
}

func checkSocket(path string) error {
	switch {
	case !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/"):
		return errSocket
	case strings.Contains(path, "?"):
		return errPath
	}
	return nil
}

func parseTCP(s string) (address string, err error) {
	s = strings.TrimSuffix(s, "/")
	switch {
	case strings.ContainsAny(s, "/?#"):
		return "", errPath
	case s == "":
		return "", errNoHost
	}
	host, port := s, defaultPort
	if inner, ok := unbracket(s); ok {
		host = inner
	} else if strings.Contains(s, ":") && !isIP(s) {
		if host, port, err = net.SplitHostPort(s); err != nil {
			return "", errHostPort
		}
		if host == "" {
			host = "127.0.0.1"
		}
	}
	if !isIP(host) && !isHostname(host) {
		return "", errHostPort
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", errPort
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}

// unbracket takes the brackets off an IPv6 address without a port.
func unbracket(s string) (string, bool) {
	inner, opened := strings.CutPrefix(s, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	return inner, opened && closed && isIP(inner)
}

// AnnouncedAddress makes host:port of what a server tells of another one; false =
// that is none. It is not trusted, and ends up in label values.
func AnnouncedAddress(host, port string) (string, bool) {
	if !isIP(host) && !isHostname(host) {
		return "", false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	address := net.JoinHostPort(host, strconv.FormatUint(n, 10))
	return address, err == nil && n > 0 && validName(address)
}

func isIP(s string) bool {
	ip, err := netip.ParseAddr(s)
	// A zone is the name of an interface; netip takes any text for one.
	return err == nil && (ip.Zone() == "" || isHostname(ip.Zone()))
}

func isHostname(s string) bool {
	for _, c := range s {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return s != ""
}

// validName tells whether a text may be a label value: one that is not UTF-8
// would cost every scrape, and a bidi character would deceive the reader.
func validName(s string) bool {
	return len(s) <= maxNameBytes && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}
