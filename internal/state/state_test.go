package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

func example() *State {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tracker := bigkeys.New()
	tracker.Commit(tracker.Begin(at, 0, 1), at)
	finds := tracker.Begin(at, 0, 1)
	finds.Add(&keyspace.Key{Name: "a:1", NameBytes: 3, Hash: keyspace.HashName("a:1"), Type: keyspace.Hash, Bytes: 1 << 30}, "default", policy.Critical, at)
	tracker.Commit(finds, at.Add(time.Hour))
	return &State{Target: "orders", BigKeys: tracker.State(), Program: program(), Nodes: []Node{{
		New: tracker.View().New, Address: "10.0.0.1:6379", ID: keyspace.NodeID{Target: "orders", Node: "10.0.0.1:6379"}, Class: 3, Duration: time.Minute,
		Snapshot: exampleSnapshot(at),
	}}}
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for range 2 { // made, then replaced
		if err := Save(path, example()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(path, "orders")
	if err != nil || !reflect.DeepEqual(got, example()) {
		t.Errorf("%+v, %v", got, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// exampleSnapshot is what a cycle makes, of keys of each kind: a zero behind a
// pointer must stay apart from none.
func exampleSnapshot(at time.Time) *snapshot.Snapshot {
	rules, err := policy.New(policy.Spec{})
	if err != nil {
		panic(err)
	}
	b := snapshot.NewBuilder(rules, bigkeys.New().Begin(at, 0, 1), 5, nil, at)
	for i, typ := range keyspace.Types() {
		name := fmt.Sprint("key:", i)
		b.Add(&keyspace.Key{
			DB: i % 2, Name: name, NameBytes: int64(len(name)), Hash: keyspace.HashName(name), Type: typ,
			Known: keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL | keyspace.FactLength,
			Bytes: 1 << (2 * i), Length: int64(i), TTL: time.Duration(i) * time.Hour,
		}, snapshot.Measured|snapshot.Detailed, at)
	}
	var available keyspace.Available
	for i := range available {
		available[i] = keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL | keyspace.FactLength
	}
	return b.Finish(snapshot.Outcome{Completed: at, Suspect: []string{"flushed"}, Coverage: 0.5, Available: available})
}

// TestOtherProgram: a snapshot of a program with another rulebook is not read,
// what is known of big keys is.
func TestOtherProgram(t *testing.T) {
	var content bytes.Buffer
	old := example()
	old.Program = "0.0.1"
	if err := gob.NewEncoder(&content).Encode(old); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content.Bytes())
	got, err := decode(slices.Concat([]byte(magic), content.Bytes(), sum[:]))
	if err != nil || len(got.Nodes) != 1 || got.Nodes[0].Snapshot != nil || got.Nodes[0].New != old.Nodes[0].New || !reflect.DeepEqual(got.BigKeys, old.BigKeys) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestNode: the server that was scanned, or else the shard.
func TestNode(t *testing.T) {
	id := func(node string) keyspace.NodeID { return keyspace.NodeID{Target: "t", Node: node} }
	s := &State{Nodes: []Node{{Address: "a", ID: id("primary-1")}, {Address: "b", ID: id("primary-2")}}}
	for _, tc := range []struct{ address, node, want string }{
		{"a", "primary-1", "a"},
		{"b", "primary-1", "b"},
		{"c", "primary-2", "b"},
		{"c", "primary-3", ""},
	} {
		got := ""
		if n := s.Node(tc.address, id(tc.node)); n != nil {
			got = n.Address
		}
		if got != tc.want {
			t.Errorf("%s of %s is %q, want %q", tc.address, tc.node, got, tc.want)
		}
	}
}

func TestNoFile(t *testing.T) {
	if s, err := Load(filepath.Join(t.TempDir(), "none"), "orders"); s != nil || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// TestSetAside: what is not whole or not ours is kept, out of the way.
func TestSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := Save(path, example()); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-5] ^= 1
	for about, tc := range map[string]struct {
		content []byte
		target  string
	}{
		"empty":                 {nil, "orders"},
		"cut":                   {good[:len(good)-1], "orders"},
		"cut in the head":       {good[:10], "orders"},
		"a flipped bit":         {flipped, "orders"},
		"somebody else's":       {[]byte("<html>"), "orders"},
		"of another target":     {good, "sessions"},
		"of another version":    {append([]byte("redis_keyhealth_exporter state 9\n"), good[len(magic):]...), "orders"},
		"checksum of the empty": {good[:len(magic)+32], "orders"},
	} {
		if err := os.WriteFile(path, tc.content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Load(path, tc.target)
		if s != nil || !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, %v", about, s, err)
		}
		if aside, err := os.ReadFile(path + ".corrupt"); err != nil || string(aside) != string(tc.content) {
			t.Errorf("%s: not set aside: %v", about, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: still there", about)
		}
	}
}

// TestCannotSave: an error, and nothing of the old file or a temporary one.
func TestCannotSave(t *testing.T) {
	dir := t.TempDir()
	if err := Save(filepath.Join(dir, "no", "such", "state"), example()); err == nil {
		t.Error("saved into no directory")
	}
	path := filepath.Join(dir, "state")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Save(path, example()); err == nil {
		t.Error("saved over a directory")
	}
	if left, _ := filepath.Glob(path + ".tmp*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := Load(path, "orders"); err == nil || errors.Is(err, ErrCorrupt) {
		t.Errorf("a directory is %v", err)
	}
}

// FuzzDecode: any bytes are a state or ErrCorrupt, and a state can be used.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(magic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := decode(content)
		if (s == nil) != errors.Is(err, ErrCorrupt) {
			t.Fatalf("%v, %v", s, err)
		}
		if s != nil {
			bigkeys.Restore(s.BigKeys)
		}
	})
}
