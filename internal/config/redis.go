// Package config turns flags into settings that are valid: only the validated
// types travel further, so that nothing is checked twice or not at all.
package config

import (
	"cmp"
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

	Mode                                               string // "" = auto
	SentinelMaster, SentinelUser, SentinelPasswordFile string
	ReadFrom                                           string // "" = replica
}

// Mode is what kind of deployment is scanned.
type Mode string

// The modes.
const (
	Auto       Mode = "auto" // one server, or what that one turns out to be part of
	Standalone Mode = "standalone"
	Sentinel   Mode = "sentinel"
	Cluster    Mode = "cluster"
)

// Where a shard is read from.
const (
	fromReplica = "replica"
	fromPrimary = "primary"
)

// Redis is how one server is reached.
type Redis struct {
	Target  string // the label `target`
	Network string // tcp or unix
	Address string // host:port, or the path of a unix socket
	User    string
	TLS     *tls.Config // nil = plain text

	tlsServerName string // "" = the host of each address
	passwordFile  string
	password      *Secret // see Secret
}

// Deployment is what is scanned, and how it is found.
type Deployment struct {
	Redis    // its first address; credentials and TLS of its servers
	Mode     Mode
	Seeds    []Redis // what is asked for the topology: servers of a cluster, or sentinels
	Master   string  // the sentinels' name of it
	Replicas bool    // are read rather than primaries, where one is healthy
}

// Validate checks the flags and reads the files that they name.
func (f RedisFlags) Validate() (Deployment, error) {
	r := Redis{User: f.User, passwordFile: f.PasswordFile, password: &f.Password, tlsServerName: f.TLSServerName}
	scheme, network, addresses, err := parseAddresses(f.Addr)
	if err != nil {
		return Deployment{}, fmt.Errorf("--redis.addr: %w", err)
	}
	r.Network, r.Address = network, addresses[0]
	if r.Target = f.Name; r.Target == "" {
		r.Target = r.Address
	}
	if !validName(r.Target) {
		return Deployment{}, fmt.Errorf("--redis.name: %w", errName)
	}
	if f.PasswordFile != "" {
		if _, err := readPassword(f.PasswordFile); err != nil {
			return Deployment{}, fmt.Errorf("--redis.password-file: %w", err)
		}
	}
	if f.User != "" && f.PasswordFile == "" && f.Password == "" {
		return Deployment{}, errors.New("--redis.user: needs a password, from --redis.password-file or REDIS_PASSWORD")
	}
	if scheme == "rediss" {
		if r.TLS, err = f.tlsConfig(r.Address); err != nil {
			return Deployment{}, err
		}
	} else if name := f.anyTLSFlag(); name != "" {
		return Deployment{}, fmt.Errorf("%s: has no effect without TLS: write --redis.addr=rediss://host:port", name)
	}
	d := Deployment{Redis: r, Master: f.SentinelMaster, Replicas: f.ReadFrom != fromPrimary}
	if d.Mode, err = f.mode(len(addresses)); err != nil {
		return Deployment{}, err
	}
	asked := r
	if d.Mode == Sentinel {
		if asked, err = f.sentinel(r); err != nil {
			return Deployment{}, err
		}
	}
	for _, address := range addresses {
		seed := asked.At(address)
		seed.Network = network
		d.Seeds = append(d.Seeds, seed)
	}
	return d, nil
}

// mode settles what the flags leave open: several addresses are the seeds of a
// cluster, with a name of a master they are sentinels.
func (f RedisFlags) mode(addresses int) (Mode, error) {
	mode := Mode(cmp.Or(f.Mode, string(Auto)))
	switch mode {
	case Auto:
		switch {
		case f.SentinelMaster != "":
			mode = Sentinel
		case addresses > 1:
			mode = Cluster
		}
	case Standalone, Sentinel, Cluster:
	default:
		return "", fmt.Errorf("--redis.mode: %q is none of auto, standalone, sentinel and cluster", f.Mode)
	}
	switch from := cmp.Or(f.ReadFrom, fromReplica); {
	case from != fromReplica && from != fromPrimary:
		return "", fmt.Errorf("--redis.read-from: %q is neither replica nor primary", f.ReadFrom)
	case mode == Standalone && addresses > 1:
		return "", errors.New("--redis.addr: standalone takes one address; run one exporter for each server")
	case mode == Sentinel && f.SentinelMaster == "":
		return "", errors.New("--redis.mode: sentinel needs --redis.sentinel-master, the name under which the sentinels know the deployment")
	case !validName(f.SentinelMaster):
		return "", fmt.Errorf("--redis.sentinel-master: %w", errName)
	}
	if mode != Sentinel {
		for _, flag := range []struct{ name, value string }{
			{"--redis.sentinel-master", f.SentinelMaster},
			{"--redis.sentinel-user", f.SentinelUser},
			{"--redis.sentinel-password-file", f.SentinelPasswordFile},
		} {
			if flag.value != "" {
				return "", fmt.Errorf("%s: goes with --redis.mode=sentinel", flag.name)
			}
		}
	}
	return mode, nil
}

// sentinel is how the sentinels are reached: with credentials of their own, never
// with those of the servers.
func (f RedisFlags) sentinel(r Redis) (Redis, error) {
	r.User, r.passwordFile, r.password = f.SentinelUser, f.SentinelPasswordFile, nil
	if f.SentinelPasswordFile == "" {
		if f.SentinelUser != "" {
			return Redis{}, errors.New("--redis.sentinel-user: needs --redis.sentinel-password-file")
		}
		return r, nil
	}
	if _, err := readPassword(f.SentinelPasswordFile); err != nil {
		return Redis{}, fmt.Errorf("--redis.sentinel-password-file: %w", err)
	}
	return r, nil
}

// At is how another server of the deployment is reached, at host:port: with the
// same credentials, and a certificate for its own host, unless one name holds for
// all.
func (r Redis) At(address string) Redis {
	r.Network, r.Address = "tcp", address
	if r.TLS != nil && r.tlsServerName == "" {
		if host, _, err := net.SplitHostPort(address); err == nil {
			r.TLS = r.TLS.Clone()
			r.TLS.ServerName = host
		}
	}
	return r
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
