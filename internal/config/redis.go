// Package config turns flags into settings that are valid: only the validated
// types travel further, so that nothing is checked twice or not at all.
package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

const (
	defaultPort = "6379"

	// maxPasswordBytes bounds a password file: who names a device or a log by
	// mistake is told so.
	maxPasswordBytes = 64 << 10
)

// Secret is text that never prints.
type Secret string

// String hides the secret from fmt, logs and errors.
func (Secret) String() string { return "<secret>" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "<secret>" }

// MarshalText hides the secret from JSON and YAML.
func (Secret) MarshalText() ([]byte, error) { return []byte("<secret>"), nil }

// RedisFlags are the --redis.* flags as given.
type RedisFlags struct {
	Addr, Name, User, PasswordFile                    string
	TLSCAFile, TLSCertFile, TLSKeyFile, TLSServerName string
	Password                                          Secret // from REDIS_PASSWORD
}

// Redis is how one server is reached.
type Redis struct {
	Target  string // the label `target`
	Network string // tcp or unix
	Address string // host:port, or the path of a unix socket
	User    string
	TLS     *tls.Config // nil = plain text

	passwordFile string
	password     Secret
}

// Validate checks the flags and reads the files that they name.
func (f RedisFlags) Validate() (Redis, error) {
	r := Redis{User: f.User, passwordFile: f.PasswordFile, password: f.Password}
	scheme, err := r.parseAddress(f.Addr)
	if err != nil {
		return Redis{}, fmt.Errorf("--redis.addr: %w", err)
	}
	if r.Target = f.Name; r.Target == "" {
		r.Target = r.Address
	}
	if f.PasswordFile != "" {
		if _, err := r.Password(); err != nil {
			return Redis{}, fmt.Errorf("--redis.password-file: %w", err)
		}
	}
	if f.User != "" && f.PasswordFile == "" && f.Password == "" {
		return Redis{}, errors.New("--redis.user: needs a password, from --redis.password-file or REDIS_PASSWORD")
	}
	if scheme == "rediss" {
		if r.TLS, err = f.tlsConfig(r.Address); err != nil {
			return Redis{}, err
		}
	} else if name := f.anyTLSFlag(); name != "" {
		return Redis{}, fmt.Errorf("%s: has no effect without TLS: write --redis.addr=rediss://%s", name, r.Address)
	}
	return r, nil
}

// Password is read anew for each connection, so that a rotated one is taken up
// without a restart. Trailing line ends are not part of it.
func (r *Redis) Password() (Secret, error) {
	if r.passwordFile == "" {
		return r.password, nil
	}
	info, err := os.Stat(r.passwordFile)
	if err != nil {
		return "", err
	}
	if info.Size() > maxPasswordBytes || info.IsDir() {
		return "", fmt.Errorf("%s: is no file of at most %d bytes", r.passwordFile, maxPasswordBytes)
	}
	content, err := os.ReadFile(r.passwordFile)
	if err != nil {
		return "", err
	}
	return Secret(strings.TrimRight(string(content), "\r\n")), nil
}

// parseAddress reads redis://, rediss://, unix:// and plain host:port. What it
// says of a bad address never repeats one that may hold a password.
func (r *Redis) parseAddress(addr string) (scheme string, err error) {
	if strings.Contains(addr, "@") {
		return "", errors.New("must not hold a user or password: use --redis.user and --redis.password-file")
	}
	scheme, rest, ok := strings.Cut(addr, "://")
	if !ok {
		scheme, rest = "redis", addr
	}
	switch scheme {
	case "unix":
		if !strings.HasPrefix(rest, "/") {
			return "", fmt.Errorf("%q: the socket's path must be absolute, as in unix:///run/redis.sock", addr)
		}
		r.Network, r.Address = "unix", rest
		return scheme, nil
	case "redis", "rediss":
	default:
		return "", fmt.Errorf("%q: unknown scheme %q, use redis://, rediss:// (TLS), unix:// or host:port", addr, scheme)
	}
	if strings.Contains(rest, ",") {
		return "", fmt.Errorf("%q: takes one address; run one exporter for each server", addr)
	}
	rest = strings.TrimSuffix(rest, "/")
	if strings.ContainsAny(rest, "/?") {
		return "", fmt.Errorf("%q: takes no path or query, every database is scanned", addr)
	}
	host, port, err := splitHostPort(rest)
	if err != nil {
		return "", fmt.Errorf("%q: %w", addr, err)
	}
	r.Network, r.Address = "tcp", net.JoinHostPort(host, port)
	return scheme, nil
}

func splitHostPort(s string) (host, port string, err error) {
	if s == "" {
		return "", "", errors.New("the host is missing, as in redis://127.0.0.1:6379")
	}
	bare := strings.Trim(s, "[]")
	if net.ParseIP(bare) != nil || !strings.Contains(s, ":") {
		return bare, defaultPort, nil
	}
	host, port, err = net.SplitHostPort(s)
	if err != nil {
		return "", "", errors.New("is no host:port")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", "", fmt.Errorf("the port %q is no number from 1 to 65535", port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if strings.ContainsAny(host, " \t\r\n\"'\\") {
		return "", "", errors.New("is no host:port")
	}
	return host, port, nil
}

func (f RedisFlags) anyTLSFlag() string {
	for _, flag := range []struct{ name, value string }{
		{"--redis.tls-ca-file", f.TLSCAFile},
		{"--redis.tls-cert-file", f.TLSCertFile},
		{"--redis.tls-key-file", f.TLSKeyFile},
		{"--redis.tls-server-name", f.TLSServerName},
	} {
		if flag.value != "" {
			return flag.name
		}
	}
	return ""
}

// tlsConfig always verifies: a monitor that accepts any certificate hands its
// password to anyone.
func (f RedisFlags) tlsConfig(address string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--redis.addr: %w", err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if f.TLSServerName != "" {
		cfg.ServerName = f.TLSServerName
	}
	if f.TLSCAFile != "" {
		pem, err := os.ReadFile(f.TLSCAFile)
		if err != nil {
			return nil, fmt.Errorf("--redis.tls-ca-file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--redis.tls-ca-file: %s: holds no PEM certificate", f.TLSCAFile)
		}
	}
	if (f.TLSCertFile == "") != (f.TLSKeyFile == "") {
		return nil, errors.New("--redis.tls-cert-file and --redis.tls-key-file: give both or none")
	}
	if f.TLSCertFile != "" {
		cert, err := tls.LoadX509KeyPair(f.TLSCertFile, f.TLSKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--redis.tls-cert-file, --redis.tls-key-file: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}
