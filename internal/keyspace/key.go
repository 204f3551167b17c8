// Package keyspace is the vocabulary of the program: a key and the facts that
// are known of it. It knows neither Redis' wire protocol nor Prometheus.
package keyspace

import (
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
)

// MaxNameBytes is the longest name that is ever sent back to a server
// (rules.md name_oversized). A longer one is judged by its name alone: echoing
// a 200 MB name in three commands would triple the server's memory.
const MaxNameBytes = 16384

// Key is what one SCAN reply and its probes told about one key.
//
// The zero value of a field means nothing unless Known has its bit: a TTL of 0
// that was never asked for is not a TTL of 0.
type Key struct {
	DB        int
	Name      string // raw bytes; of an oversized name only the first MaxNameBytes
	NameBytes int64  // length of the whole name
	Hash      uint64 // HashName of the whole name

	Known  Facts
	Type   Type          // needs FactType
	Bytes  int64         // MEMORY USAGE; needs FactBytes
	Length int64         // elements, of a string its bytes; needs FactLength
	TTL    time.Duration // remaining lifetime, or NoTTL; needs FactTTL

	Encoding  Encoding      // needs FactEncoding
	Idle      time.Duration // since the last access; needs FactIdle
	Frequency uint8         // LFU counter; needs FactFrequency
	Head      byte          // first byte of a string's value, 0 of an empty one; needs FactHead
}

// NoTTL is the TTL of a key that never expires.
const NoTTL time.Duration = -1

// Oversized tells whether the name must not be sent back to the server.
func (k *Key) Oversized() bool { return k.NameBytes > MaxNameBytes }

// Has tells whether every fact of f is known.
func (k *Key) Has(f Facts) bool { return k.Known&f == f }

// HashName is the fingerprint of a name: stable over processes, restarts and
// machines, since sampling classes and the big-key memory are built on it.
func HashName(name string) uint64 { return xxhash.Sum64String(name) }

// Facts is a set of the things that can be known of a key beyond its name.
type Facts uint8

// The facts, each with the command that tells it.
const (
	FactBytes  Facts = 1 << iota // MEMORY USAGE
	FactType                     // TYPE
	FactTTL                      // PTTL
	FactLength                   // STRLEN, LLEN, HLEN, SCARD, ZCARD, XLEN

	// Those of the fixed detail sample and of candidates.
	FactEncoding  // OBJECT ENCODING
	FactIdle      // OBJECT IDLETIME, of a primary that does not count LFU
	FactFrequency // OBJECT FREQ, of a primary that counts LFU
	FactHead      // GETRANGE key 0 0: only where json_string asks for it
)

// Available tells, of each type, which facts can be had: a command may be
// denied, and some types have no length.
type Available [NumTypes]Facts

// NodeID names one Redis node in series, logs and reports.
type NodeID struct {
	Target string // configured name of the deployment
	Node   string // host:port of the shard's primary
}

// DBLabel spells a database as redis_exporter does, so that series join.
func DBLabel(db int) string { return "db" + strconv.Itoa(db) }
