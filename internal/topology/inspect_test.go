package topology

import (
	"fmt"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/snapshot"
	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/scanner"
)

// TestDetailFacts: what OBJECT and GETRANGE tell, of keys that are there and of
// one that is not.
func TestDetailFacts(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	for _, cmd := range [][]any{
		{"SET", "int", 512345}, // up to 9999 keys share one object, idle time and all
		{"SET", "json", `{"a":1}`},
		{"RPUSH", "list", "a"},
		{"HSET", "hash", "f", "v"},
		{"SADD", "set", 1, 2},
		{"XADD", "stream", "*", "f", "v"},
	} {
		if err := client.Do(t.Context(), cmd...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	dump, err := client.Dump(t.Context(), "int").Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), "RESTORE", "old", 0, dump, "IDLETIME", 5000).Err(); err != nil {
		t.Fatal(err)
	}
	s := open(t, config.RedisFlags{Addr: server.Addr()})
	const facts = keyspace.FactEncoding | keyspace.FactIdle
	for _, tc := range []struct {
		name     string
		typ      keyspace.Type
		encoding keyspace.Encoding
		head     byte
		problem  fault.KeyProblem
	}{
		{"int", keyspace.String, keyspace.EncodingInt, '5', fault.NoProblem},
		{"json", keyspace.String, keyspace.EncodingEmbstr, '{', fault.NoProblem},
		{"list", keyspace.List, keyspace.EncodingQuicklist, 0, fault.NoProblem}, // a listpack as of Redis 7.2
		{"hash", keyspace.Hash, keyspace.EncodingListpack, 0, fault.NoProblem},
		{"set", keyspace.Set, keyspace.EncodingIntset, 0, fault.NoProblem},
		{"stream", keyspace.Stream, keyspace.EncodingStream, 0, fault.NoProblem},
		{"old", keyspace.String, keyspace.EncodingInt, '5', fault.NoProblem},
		{"gone", keyspace.Hash, 0, 0, fault.Gone},
		{"hash", keyspace.String, keyspace.EncodingListpack, 0, fault.WrongType}, // replaced since its TYPE
	} {
		k := &keyspace.Key{Name: tc.name, Type: tc.typ, Known: keyspace.FactType}
		problems := []fault.KeyProblem{fault.NoProblem}
		if err := s.Inspect(t.Context(), []*keyspace.Key{k}, facts|keyspace.FactHead, problems); err != nil {
			t.Fatal(err)
		}
		if problems[0] != tc.problem {
			t.Errorf("%s: problem %v", tc.name, problems[0])
		}
		if tc.problem == fault.Gone {
			continue
		}
		if !k.Has(facts) || k.Encoding != tc.encoding && tc.name != "list" || k.Head != tc.head || k.Has(keyspace.FactHead) != (tc.head != 0) {
			t.Errorf("%s: %+v", tc.name, k)
		}
		if old := k.Idle >= 5000*time.Second; old != (tc.name == "old") || k.Idle > 5100*time.Second {
			t.Errorf("%s: idle for %v", tc.name, k.Idle)
		}
	}
}

// TestFrequency: FREQ works under an LFU policy, IDLETIME under the others; when
// the policy changes within a cycle, the cycle ends.
func TestFrequency(t *testing.T) {
	server := testredis.Start(t, "--maxmemory-policy", "allkeys-lfu")
	client := server.Client(t)
	if err := client.Set(t.Context(), "user:1", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s := open(t, config.RedisFlags{Addr: server.Addr()})
	ask := func(facts keyspace.Facts) (*keyspace.Key, error) {
		k := &keyspace.Key{Name: "user:1"}
		problems := make([]fault.KeyProblem, 1)
		err := s.Inspect(t.Context(), []*keyspace.Key{k}, facts, problems)
		return k, err
	}
	if k, err := ask(keyspace.FactFrequency); err != nil || !k.Has(keyspace.FactFrequency) || k.Frequency != 5 {
		t.Errorf("%+v, %v", k, err)
	}
	if k, err := ask(keyspace.FactIdle); err != nil || k.Has(keyspace.FactIdle) || s.capabilities[keyspace.CmdObjectIdletime] != snapshot.Denied {
		t.Errorf("%+v, %v", k, err)
	}
	if info, err := s.Info(t.Context()); err != nil || info.EvictionPolicy != "allkeys-lfu" {
		t.Errorf("policy %q, %v", info.EvictionPolicy, err)
	}
	if err := client.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(keyspace.FactFrequency); fault.ReasonOf(err) != fault.Unsupported {
		t.Errorf("err = %v", err)
	}
}

// TestRareCommandGoesAlone: a command that only some keys of a page need is
// tried with one of them, and costs no round trip for each of the others.
func TestRareCommandGoesAlone(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	page := &scanner.Page{}
	for i := range 200 {
		name := fmt.Sprint("user:", i)
		if err := client.Set(t.Context(), name, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		wants := keyspace.FactBytes
		if i == 60 || i == 120 || i == 180 {
			wants |= keyspace.FactEncoding
		}
		page.Keys = append(page.Keys, keyspace.Key{Name: name, NameBytes: int64(len(name))})
		page.Wants = append(page.Wants, wants)
	}
	s := open(t, config.RedisFlags{Addr: server.Addr()})
	for _, want := range []int{3, 1} { // the first key; up to the first encoding; the rest
		if err := s.Page(t.Context(), page); err != nil {
			t.Fatal(err)
		}
		if page.RoundTrips != want {
			t.Errorf("%d round trips, want %d", page.RoundTrips, want)
		}
		for i, k := range page.Keys {
			if !k.Has(page.Wants[i]) || k.Known != page.Wants[i] {
				t.Fatalf("key %d: %b, want %b", i, k.Known, page.Wants[i])
			}
		}
	}
}
