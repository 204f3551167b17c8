package integration

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/internal/topology"
)

// TestClusterRights: the documented account sees all of a cluster, breaks no ACL
// and sends nothing but what is on the list, to primaries and replicas.
func TestClusterRights(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 3, true)
	loadCluster(t, clusterClient(t, c), small("user", 300)...)
	servers := append(append([]*testredis.Server{}, c.Primaries...), c.Replicas...)
	for _, s := range servers {
		setUser(t, s.Client(t), append(fullRights, "resetkeys", "%R~*", "+cluster|slots", "+readonly")...)
		if err := s.Client(t).ConfigResetStat(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	f := newFleet(t, userFlags(c.Primaries[0].Addr()), nil)
	f.scanned(addresses(c.Primaries)...)
	sums := f.sums()
	if keys := sums[clusterTotals[0]]; keys != 300 {
		t.Errorf("%v keys", keys)
	}
	if n := sums[label("rule_evaluated", "rule=cmd_forbidden_enabled")]; n != 3 {
		t.Errorf("the primaries of %v shards were asked", n)
	}
	for i, s := range servers {
		client := s.Client(t)
		// A NO-TOUCH that is not there is no denial.
		if denied, err := client.Do(t.Context(), "ACL", "LOG").Slice(); err != nil || len(denied) != 0 {
			t.Errorf("server %d denied: %v, %v", i, denied, err)
		}
		known := map[string]bool{"hello": true, "auth": true, "config|resetstat": true, "acl|log": true, "ping": true, "replconf": true, "publish": true}
		for _, cmd := range keyspace.Commands() {
			known[cmd.String()] = true
		}
		for cmd := range commandCalls(t, client) {
			if !known[cmd] {
				t.Errorf("server %d was sent %s", i, cmd)
			}
		}
	}
}

// TestAnnouncedAddress: one that no server should have is not dialled, and says so;
// it is, where it is said which address it stands for.
func TestAnnouncedAddress(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 1, false)
	server := c.Primaries[0]
	loadCluster(t, clusterClient(t, c), small("user", 300)...)
	if err := server.Client(t).ConfigSet(t.Context(), "cluster-announce-ip", "169.254.169.254").Err(); err != nil {
		t.Fatal(err)
	}
	announced := net.JoinHostPort("169.254.169.254", strconv.Itoa(server.Port()))
	f := newFleet(t, flagsOf(server.Addr()), nil)
	eventually(t, "a refusal", func() bool {
		n := f.node(announced)
		return n != nil && n.Status.Aborts[fault.Config] > 0
	})
	if s := f.node(announced).Status; s.Up || !strings.Contains(s.LastFault.Error(), "is refused") {
		t.Errorf("up %v: %v", s.Up, s.LastFault)
	}
	f = newFleetAt(t, flagsOf(server.Addr()), topology.Options{Rewrite: map[string]string{announced: server.Addr()}}, nil)
	f.scanned(announced)
	if s := f.node(announced).Status; s.Info.Address != server.Addr() {
		t.Errorf("scanned is %s", s.Info.Address)
	}
}

// TestSentinelRights: so does the documented account of the sentinels.
func TestSentinelRights(t *testing.T) {
	t.Parallel()
	d := testredis.StartSentinels(t, 1, "")
	load(t, d.Servers[0].Client(t), 0, small("user", 300)...)
	for _, s := range d.Sentinels {
		setUser(t, s.Client(t), "resetchannels", "+sentinel|get-master-addr-by-name", "+sentinel|replicas")
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, config.RedisFlags{Addr: d.Sentinels[0].Addr(), SentinelMaster: testredis.MasterName, SentinelUser: "keyhealth", SentinelPasswordFile: file}, nil)
	f.scanned(d.Servers[0].Addr())
	if role := f.node(d.Servers[0].Addr()).Status.Info.Role; role != "replica" {
		t.Errorf("a %s is scanned", role)
	}
	if denied, err := d.Sentinels[0].Client(t).Do(t.Context(), "ACL", "LOG").Slice(); err != nil || len(denied) != 0 {
		t.Errorf("denied: %v, %v", denied, err)
	}
}
