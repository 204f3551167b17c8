// Package snapshot holds what is known of a node: the findings of its last
// complete cycle, immutable once published, and the state of the scan itself.
// Every structure in it is bounded by construction, whatever the keyspace.
package snapshot

import (
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// Estimate is a figure with its standard error, which is 0 where every key was
// measured.
type Estimate struct {
	Value, Stderr float64
}

// Snapshot is the result of one complete cycle. Nobody changes it after Finish.
type Snapshot struct {
	Started, Completed time.Time
	Suspect            []string // why its figures are doubtful; empty = they are not
	Coverage           float64  // names seen ÷ DBSIZE
	Rules              []Rule   // by row of policy.Rules
	Evaluated          []bool   // by row: it was judged in this cycle
	DBs                []DB     // those that hold keys, ascending
	TopBytes           []Top    // largest first, over all dbs and types
	TopElements        []Top
	TopFrequency       []Top
	Server             Server
	Examples           [][]Example // by rule: some of the keys that break it, largest first
}

// Rule is how the cycle's policy applied a rule to the server, or to the keys
// that no namespace takes: the policy may be another one by now.
type Rule struct {
	Level    policy.Level
	Violated string // when it is broken, with the limits
}

// DB are the findings of one database.
type DB struct {
	DB           int
	Bytes        Estimate // of all types together
	Types        [keyspace.NumTypes]TypeStats
	Namespaces   []Namespace
	NamingBroken uint64     // keys that break a name rule of level mandatory or recommended
	Named        uint64     // keys whose name was judged
	TTL          *Histogram // seconds, of keys that have a TTL; nil where PTTL is denied
	Expiring     *Peak      // within the 24 hours behind the cycle's start; nil as TTL
	Idle         *Histogram // seconds, of keys that have none; nil where it cannot be told
}

// TypeStats are the findings of one type in one database. A pointer is nil where
// nothing can be said: the command is denied, or there is no such key.
type TypeStats struct {
	Keys     Estimate
	Bytes    *Estimate
	Memory   *Histogram // bytes
	Elements *Histogram // elements of collections
	Big      *[policy.NumSeverities]BigStats
	Encoded  *[keyspace.NumEncodings]float64 // keys by encoding, estimated
}

// BigStats are the big keys of one tier.
type BigStats struct {
	Keys, Bytes uint64
}

// Namespace are the findings of one policy namespace in one database.
type Namespace struct {
	Name       string
	Levels     []policy.Level // by rule: how binding it was for these keys
	Violations []Estimate     // by rule; unknown where it does not apply to these keys
}

// Keys is the number of keys in the database, all types together.
func (d *DB) Keys() float64 {
	var n float64
	for i := range d.Types {
		n += d.Types[i].Keys.Value
	}
	return n
}

// Top is an entry of a top list.
type Top struct {
	ID        bigkeys.ID
	Label     string // keyspace.Label of the name
	Namespace string
	Type      keyspace.Type
	Value     int64     // what it is ranked by: bytes, elements or LFU counter
	Bytes     int64     // -1 = not known
	Length    int64     // elements, of a string its bytes; -1 = not known
	Expires   time.Time // to the second; zero = never
	Absent    int       // cycles in a row in which it was not seen
}

// Example is a key that breaks a rule.
type Example struct {
	ID     bigkeys.ID
	Label  string
	Type   keyspace.Type
	Bytes  int64 // -1 = not known
	Length int64 // elements, of a string its bytes; -1 = not known
}

// NodeState is all that is known of a node at one moment.
type NodeState struct {
	Status   Status
	Snapshot *Snapshot     // nil before the first complete cycle
	BigKeys  *bigkeys.View // never nil
	Watched  []WatchedKey  // those of the policy's watch list that exist, by database; replaced, never changed
}

// WatchedKey is a key that the policy names to be watched.
type WatchedKey struct {
	DB        int
	Label     string // keyspace.Label of the name
	Namespace string
	Type      keyspace.Type
	Bytes     int64
	Elements  int64 // -1 = not known, or no collection
}
