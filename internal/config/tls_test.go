package config

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"

	"redis_keyhealth_exporter/internal/testredis"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := testredis.Certificate(t)
	r, err := RedisFlags{Addr: "rediss://cache:6380", TLSCAFile: cert, TLSCertFile: cert, TLSKeyFile: key}.Validate()
	if err != nil {
		t.Fatal(err)
	}
	if r.TLS.ServerName != "cache" || r.TLS.InsecureSkipVerify || r.TLS.MinVersion < tls.VersionTLS12 {
		t.Errorf("the server is not verified as it should: %q, %v, %x", r.TLS.ServerName, r.TLS.InsecureSkipVerify, r.TLS.MinVersion)
	}
	if r.TLS.RootCAs == nil || len(r.TLS.Certificates) != 1 {
		t.Errorf("a file is not used: authorities %v, %d certificates", r.TLS.RootCAs, len(r.TLS.Certificates))
	}

	r, err = RedisFlags{Addr: "rediss://10.0.0.1", TLSServerName: "cache.example"}.Validate()
	if err != nil || r.TLS.ServerName != "cache.example" {
		t.Fatalf("%v, %v", r.TLS, err)
	}
	if r.TLS.RootCAs != nil || r.TLS.Certificates != nil {
		t.Error("without files, the system's authorities and no certificate are to be used")
	}
}

func TestBadTLS(t *testing.T) {
	t.Parallel()
	cert, key := testredis.Certificate(t)
	_, otherKey := testredis.Certificate(t)
	missing := filepath.Join(t.TempDir(), "none")
	garbage := write(t, "garbage")
	for _, c := range []struct {
		name      string
		flags     RedisFlags
		flag, why string
	}{
		{"plain text", RedisFlags{Addr: "redis://cache", TLSCAFile: cert}, "--redis.tls-ca-file: ", "rediss://"},
		{"plain text", RedisFlags{Addr: "cache", TLSCertFile: cert}, "--redis.tls-cert-file: ", "rediss://"},
		{"plain text", RedisFlags{Addr: "cache", TLSKeyFile: key}, "--redis.tls-key-file: ", "rediss://"},
		{"socket", RedisFlags{Addr: "unix:///run/s", TLSServerName: "n"}, "--redis.tls-server-name: ", "rediss://host:port"},
		{"missing CA", RedisFlags{TLSCAFile: missing}, "--redis.tls-ca-file: ", "no such file"},
		{"garbage CA", RedisFlags{TLSCAFile: garbage}, "--redis.tls-ca-file: ", "no PEM certificate"},
		{"key as CA", RedisFlags{TLSCAFile: key}, "--redis.tls-ca-file: ", "no PEM certificate"},
		{"folder as CA", RedisFlags{TLSCAFile: t.TempDir()}, "--redis.tls-ca-file: ", "no regular file"},
		{"endless CA", RedisFlags{TLSCAFile: "/dev/zero"}, "--redis.tls-ca-file: ", "no regular file"},
		{"no key", RedisFlags{TLSCertFile: cert}, "--redis.tls-cert-file and --redis.tls-key-file: ", "both or none"},
		{"no certificate", RedisFlags{TLSKeyFile: key}, "--redis.tls-cert-file and --redis.tls-key-file: ", "both or none"},
		{"missing certificate", RedisFlags{TLSCertFile: missing, TLSKeyFile: key}, "--redis.tls-cert-file: ", "no such file"},
		{"missing key", RedisFlags{TLSCertFile: cert, TLSKeyFile: missing}, "--redis.tls-key-file: ", "no such file"},
		{"garbage certificate", RedisFlags{TLSCertFile: garbage, TLSKeyFile: key}, "--redis.tls-cert-file and --redis.tls-key-file: ", "PEM"},
		{"another's key", RedisFlags{TLSCertFile: cert, TLSKeyFile: otherKey}, "--redis.tls-cert-file and --redis.tls-key-file: ", "does not match"},
	} {
		if c.flags.Addr == "" {
			c.flags.Addr = "rediss://cache"
		}
		_, err := c.flags.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), c.flag) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v; want %s… %s", c.name, err, c.flag, c.why)
		}
	}
}
