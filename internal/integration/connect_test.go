package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/testredis"
)

func itoa(n int) string { return strconv.Itoa(n) }

// certificate makes a self-signed one for 127.0.0.1 and writes it to dir.
func certificate(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"redis.example"},
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestTLS: a verified server is scanned, with a client certificate where it asks
// for one; every mix-up fails closed under its reason.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir, "server")
	foreign, _ := certificate(t, dir, "foreign")
	secure := testredis.Start(t, "--port", "0", "--tls-port", "{port}", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
	plain := testredis.Start(t)
	good := config.RedisFlags{Addr: "rediss://" + secure.Addr(), TLSCAFile: cert, TLSCertFile: cert, TLSKeyFile: key}

	r := newRig(t, good, nil)
	r.cycle()
	if !r.status().Up {
		t.Error("not up")
	}
	for _, tc := range []struct {
		about  string
		change func(*config.RedisFlags)
		want   fault.Reason
	}{
		{"foreign CA", func(f *config.RedisFlags) { f.TLSCAFile = foreign }, fault.TLS},
		{"the system's CAs", func(f *config.RedisFlags) { f.TLSCAFile = "" }, fault.TLS},
		{"another name", func(f *config.RedisFlags) { f.TLSServerName = "other.example" }, fault.TLS},
		{"no client certificate", func(f *config.RedisFlags) { f.TLSCertFile, f.TLSKeyFile = "", "" }, fault.TLS},
		{"TLS to a plain port", func(f *config.RedisFlags) { f.Addr = "rediss://" + plain.Addr() }, fault.TLS},
		{"plain text to a TLS port", func(f *config.RedisFlags) { *f = config.RedisFlags{Addr: secure.Addr()} }, fault.ConnLost},
	} {
		flags := good
		tc.change(&flags)
		r := newRig(t, flags, nil)
		err := r.scanner.RunCycle(t.Context())
		if got := fault.ReasonOf(err); err == nil || got != tc.want {
			t.Errorf("%s: %v: %v, want %v", tc.about, got, err, tc.want)
		}
	}
	flags := good
	flags.TLSServerName = "redis.example"
	newRig(t, flags, nil).cycle()
}

// TestUnixSocket scans through one.
func TestUnixSocket(t *testing.T) {
	server := testredis.Start(t)
	load(t, server.Client(t), 0, small("user", 10)...)
	socket := filepath.Join(server.Dir(), testredis.SocketName)
	r := newRig(t, flagsOf("unix://"+socket), nil)
	r.cycle()
	if n := r.strings(0); n != 10 || r.status().Node.Node != socket {
		t.Errorf("%v keys of %q", n, r.status().Node.Node)
	}
}

// TestReplica: series carry the primary's address, wherever the scan reads.
func TestReplica(t *testing.T) {
	primary := testredis.Start(t)
	load(t, primary.Client(t), 0, small("user", 100)...)
	host, port, _ := net.SplitHostPort(primary.Addr())
	replica := testredis.Start(t, "--replicaof", host+" "+port)
	client := replica.Client(t)
	eventually(t, "the replica has its data", func() bool {
		n, err := client.DBSize(t.Context()).Result()
		return err == nil && n == 100
	})
	r := newRig(t, flagsOf(replica.Addr()), nil)
	r.cycle()
	st := r.status()
	if st.Node.Node != primary.Addr() || st.Info.Address != replica.Addr() || st.Info.Role != "replica" {
		t.Errorf("node %q, address %q, role %q", st.Node.Node, st.Info.Address, st.Info.Role)
	}
	if s := r.scanner.State().Snapshot; len(s.Suspect) > 0 || r.strings(0) != 100 {
		t.Errorf("%v keys, suspect %v", r.strings(0), s.Suspect)
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica notices", func() bool {
		r.cycle()
		return len(r.scanner.State().Snapshot.Suspect) > 0
	})
}
