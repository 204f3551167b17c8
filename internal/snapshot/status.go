package snapshot

import (
	"time"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
)

// CycleResult is how a cycle ended: the label `result` of scan_cycles_total.
type CycleResult uint8

// The results.
const (
	Complete CycleResult = iota
	Suspect
	Aborted
	NumCycleResults = iota
)

func (r CycleResult) String() string { return [...]string{"complete", "suspect", "aborted"}[r] }

// Capability tells whether a command may be used.
type Capability uint8

// The capabilities. Untried is not exposed.
const (
	Untried Capability = iota
	Allowed
	Denied
)

// Status is the state of a node's scan. It is a value: copying it under its
// owner's lock is all that a reader needs.
type Status struct {
	Node keyspace.NodeID
	Up   bool
	Info ServerInfo

	Placed   bool // the topology tells what the shard consists of:
	Replicas int  // besides the primary

	Keys      uint64 // names that SCAN returned
	Commands  [keyspace.NumCommands]uint64
	Cycles    [NumCycleResults]uint64
	Aborts    [fault.NumReasons]uint64
	KeyErrors [fault.NumKeyProblems]uint64
	Busy      time.Duration // server time spent on us

	StateErrors uint64 // failed writes of the state file

	Interval       time.Duration // least time between the starts of two cycles
	Scanning       bool
	Progress       float64 // of the running cycle, 0..1
	CycleStarted   time.Time
	CycleCompleted time.Time
	CycleDuration  time.Duration // of the last complete cycle
	Coverage       float64       // of the last complete cycle
	Duty           float64       // busy ÷ wall, over the last seconds
	SampleRatio    float64       // share of the keys whose bytes are measured in one cycle
	DetailRatio    float64       // share of the keys whose type and TTL are asked for

	Capabilities [keyspace.NumCommands]Capability
	Evaluated    []bool // by row of policy.Rules; replaced, never changed

	LastFault   error // why the last cycle or contact failed; nil after a success
	LastFaultAt time.Time
}

// ServerInfo is what INFO tells: exact, and refreshed between cycles too.
type ServerInfo struct {
	Address string // that is really talked to
	Role    string // primary, replica; "" = not known yet
	Server  string // redis, valkey, …
	Version string

	DBs          []DBInfo // those that hold keys, ascending; replaced, never changed
	HasMemory    bool     // the next three are known
	UsedBytes    int64
	MaxBytes     int64
	DatasetBytes int64

	EvictionPolicy string // maxmemory_policy; "" = not told
}

// Usage is what INFO commandstats tells of a command since the server's start,
// whoever called it.
type Usage struct {
	Calls int64
	Time  time.Duration // of executing it
}

// DBInfo is a row of INFO keyspace.
type DBInfo struct {
	DB            int
	Keys, Expires int64
}

// FullMeasure is the time in which every key gets measured at the present pace;
// false = nothing is known of it yet.
func (s *Status) FullMeasure() (time.Duration, bool) {
	cycle := s.CycleDuration
	if s.Scanning && s.Progress > 0 {
		cycle = time.Duration(float64(time.Since(s.CycleStarted)) / s.Progress)
	}
	return time.Duration(float64(cycle) / s.SampleRatio), cycle > 0
}
