package scanner

import (
	"context"
	"time"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// Topology tells which nodes of a deployment there are to scan. Package topology
// provides it.
type Topology interface {
	// ID names the deployment while none of its nodes is known: by the first
	// address that is configured.
	ID() keyspace.NodeID
	// Nodes asks for the nodes, one for each part of the keyspace. One about which
	// nothing changed is the very same as before. It serves one goroutine. Errors
	// are *fault.Error: nothing is known to have changed.
	Nodes(ctx context.Context) ([]Node, error)
}

// Shard is the place of a node in its topology. It may change while the node is
// scanned.
type Shard struct {
	Slots    *keyspace.Slots // that it holds; nil = every key
	Role     string          // primary, replica; "" = the topology does not tell, INFO does
	Replicas int             // of the shard, where Role is known
}

// Node is one Redis process that can be scanned. Package topology provides it.
type Node interface {
	ID() keyspace.NodeID
	// Address is what is really dialled.
	Address() string
	Shard() Shard
	// Primary makes a node of a replica's primary, for what only that one tells, to
	// be closed; nil = it is none, or the topology does not know.
	Primary() Node
	// Open dials and greets the server. Errors are *fault.Error.
	Open(ctx context.Context) (Session, error)
	// Close interrupts what is in flight on every session, from any goroutine:
	// cancelling a context does not end a read that has begun.
	Close()
}

// Session is one connection, never silently replaced by another: a cursor dies
// with its connection. It serves one goroutine. Errors are *fault.Error; after
// one that is not fault.Busy the session is not used again.
type Session interface {
	// Ping returns the time of one round trip.
	Ping(ctx context.Context) (time.Duration, error)
	// Info asks for the server's state. Where INFO is denied, its Denied is set
	// and only DBs is filled.
	Info(ctx context.Context) (Info, error)
	// Select changes the database.
	Select(ctx context.Context, db int) error
	// Page inspects keys and fetches the names of the next page.
	Page(ctx context.Context, p *Page) error
	// Inspect fetches the facts that some keys of one database lack, in place, and
	// sets problems beside them. FactLength and FactHead are only fetched of keys
	// whose type is known.
	Inspect(ctx context.Context, keys []*keyspace.Key, facts keyspace.Facts, problems []fault.KeyProblem) error
	// KnownCommands tells which of the commands the server knows, whoever may
	// call them; nil = it does not tell.
	KnownCommands(ctx context.Context, names []string) (map[string]bool, error)
	// Config reads the settings that server rules judge; nil = it may not.
	Config(ctx context.Context) (*policy.ServerConfig, error)
	// SlowKeys names keys that others used slowly of late, newest first and each
	// once, as the slow log has it: without their database. What was named in an
	// earlier session is not named again.
	SlowKeys(ctx context.Context) ([]string, error)
	// Sent counts the commands sent since Open.
	Sent() [keyspace.NumCommands]uint64
	// Capabilities tells what was allowed and denied since Open. A command that
	// is denied once is not sent again.
	Capabilities() [keyspace.NumCommands]snapshot.Capability
	Close()
}

// Page is one pipeline: probes of the keys, and last in it the SCAN that fetches
// the next page, so that a page costs one round trip. The caller owns and
// reuses it.
type Page struct {
	DB       int
	Keys     []keyspace.Key     // facts are filled in, in place
	Wants    []keyspace.Facts   // what to fetch of each key; neither FactLength nor FactHead is among them
	Problems []fault.KeyProblem // one for each key, set by the session

	Scan   bool // send the SCAN, too
	Cursor uint64
	Count  int

	Next       []keyspace.Key // names that the SCAN returned; an oversized one is cut
	NextCursor uint64

	RoundTrips int // pipelines that were sent: one for each 500 keys
}

// Info is what INFO tells of a server.
type Info struct {
	snapshot.ServerInfo
	Denied bool

	Cluster         bool            // the server is part of a Redis Cluster
	Sentinel        bool            // it is no server of data at all
	Slots           *keyspace.Slots // of its shard, where the topology knows the node as one of a cluster's
	RunID           string
	Loading         bool
	PrimaryAddress  string // of a replica: host:port of its primary; "" where the topology knows it
	PrimaryLinkDown bool   // of a replica
	Syncing         bool   // of a replica: its data is being replaced
	ExpiredKeys     int64  // since the server's start
	EvictedKeys     int64
	Usage           [keyspace.NumCommands]snapshot.Usage // by all clients, since the server's start
	Calls           map[string]snapshot.Usage            // the same of policy.ServerCommands; nil = not told
	Flushes         int64                                // calls of FLUSHALL, FLUSHDB and SWAPDB since the server's start
}

// keys is the number of keys of all databases; false where a DBSIZE is missing.
func (i *Info) keys() (int64, bool) {
	var n int64
	for _, db := range i.DBs {
		if db.Keys < 0 {
			return 0, false
		}
		n += db.Keys
	}
	return n, true
}
