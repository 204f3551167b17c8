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
	errSeveral  = errors.New("takes one address; run one exporter for each server")
	errPath     = errors.New("takes no path or query: every database is scanned")
	errNoHost   = errors.New("the host is missing, as in redis://127.0.0.1:6379")
	errHostPort = errors.New("is no host:port; an IPv6 address with a port is written [::1]:6379")
	errPort     = errors.New("the port is no number from 1 to 65535")
	errName     = errors.New("must be printable UTF-8 of at most 200 bytes")
)

// parseAddress reads redis://, rediss://, unix:// and plain host:port.
func (r *Redis) parseAddress(addr string) (scheme string, err error) {
	if strings.Contains(addr, "@") {
		return "", errUserInfo
	}
	scheme, rest, ok := strings.Cut(addr, "://")
	if !ok {
		scheme, rest = "redis", addr
	}
	switch scheme {
	case "unix":
		r.Network, r.Address, err = "unix", rest, checkSocket(rest)
	case "redis", "rediss":
		r.Network = "tcp"
		r.Address, err = parseTCP(rest)
	default:
		err = errScheme
	}
	if err == nil && !validName(r.Address) {
		err = errName
	}
	return scheme, err
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
	case strings.Contains(s, ","):
		return "", errSeveral
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
