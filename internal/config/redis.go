// Package config turns flags into settings that are valid: only the validated
// types travel further, so that nothing is checked twice or not at all.
package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

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
	password     *Secret // see Secret
}

// Validate checks the flags and reads the files that they name.
func (f RedisFlags) Validate() (Redis, error) {
	r := Redis{User: f.User, passwordFile: f.PasswordFile, password: &f.Password}
	scheme, err := r.parseAddress(f.Addr)
	if err != nil {
		return Redis{}, fmt.Errorf("--redis.addr: %w", err)
	}
	if r.Target = f.Name; r.Target == "" {
		r.Target = r.Address
	}
	if !validName(r.Target) {
		return Redis{}, fmt.Errorf("--redis.name: %w", errName)
	}
	if f.PasswordFile != "" {
		if _, err := readPassword(f.PasswordFile); err != nil {
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
		return Redis{}, fmt.Errorf("%s: has no effect without TLS: write --redis.addr=rediss://host:port", name)
	}
	return r, nil
}

// Password is read anew for each connection, so that a rotated one is taken up
// without a restart. Trailing line ends are not part of it.
func (r *Redis) Password() (Secret, error) {
	if r.passwordFile != "" {
		return readPassword(r.passwordFile)
	}
	if r.password == nil {
		return "", nil
	}
	return *r.password, nil
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
		return nil, fmt.Errorf("--redis.addr: %w", errHostPort)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if f.TLSServerName != "" {
		cfg.ServerName = f.TLSServerName
	}
	if f.TLSCAFile != "" {
		pem, err := readFile(f.TLSCAFile, maxPEMBytes)
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
		cert, err := f.clientCertificate()
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}

func (f RedisFlags) clientCertificate() (tls.Certificate, error) {
	cert, err := readFile(f.TLSCertFile, maxPEMBytes)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("--redis.tls-cert-file: %w", err)
	}
	key, err := readFile(f.TLSKeyFile, maxPEMBytes)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("--redis.tls-key-file: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("--redis.tls-cert-file and --redis.tls-key-file: %w", err)
	}
	return pair, nil
}
