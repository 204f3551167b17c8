package integration

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/testredis"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestTLS: a verified server is scanned, with a client certificate where it asks
// for one; every mix-up fails closed under its reason.
func TestTLS(t *testing.T) {
	cert, key := testredis.Certificate(t)
	foreign, _ := testredis.Certificate(t)
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
	// Whether a key is used shows on the primary alone, how it is held on both.
	evaluated(t, r.metrics(), "name_unknown_prefix", "json_string", "ttl_big_key", "hot_key", "hot_and_big", "idle_permanent")
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
