// Package fault is the closed set of things that go wrong between the program
// and Redis. One table says of each what it means for `up`, how long to wait,
// and what the reader of the log can do about it.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Reason is why a cycle was aborted: the label `reason` of scan_aborts_total.
type Reason uint8

// The reasons.
const (
	Down Reason = iota
	ConnLost
	Timeout
	NotReady
	Busy
	Auth
	Permission
	Unsupported
	Restarted
	TLS
	Protocol
	Config
	Topology
	Shutdown
	NumReasons = iota
)

type row struct {
	name string
	// answered: the server was reached and let us in, so `up` stays 1.
	answered bool
	// wait is the least backoff. A refused password is not tried more often
	// than once a minute, since accounts get locked; what only a person can
	// mend is not tried hot either.
	wait   time.Duration
	advice string
}

var rows = [NumReasons]row{
	Down:        {"down", false, 0, "check that Redis runs and that --redis.addr is reachable from here"},
	ConnLost:    {"conn_lost", false, 0, "the server closed the connection: it restarted, its maxclients are used up, protected-mode refuses this host, a proxy stands between, or only one side speaks TLS (rediss://)"},
	Timeout:     {"timeout", false, 0, "Redis hangs, is overloaded, or expects the other of TLS and plain text; see its SLOWLOG and `redis-cli --latency`"},
	NotReady:    {"not_ready", true, 0, "Redis is loading its data or waits for its primary; the scan goes on by itself"},
	Busy:        {"busy", true, 0, "a script or function blocks Redis; see its log, SCRIPT KILL ends a read-only one"},
	Auth:        {"auth", false, time.Minute, "check --redis.user and --redis.password-file (or REDIS_PASSWORD)"},
	Permission:  {"permission", true, time.Minute, "grant the Redis user the missing right (README, \"Rights\"); the program only ever reads"},
	Unsupported: {"unsupported", true, time.Minute, "this server lacks a command without which no scan is possible: was it renamed, or is a proxy in between? Give the address of Redis itself"},
	Restarted:   {"restarted", true, 0, "another server process answers now; the scan started over"},
	TLS:         {"tls", false, 0, "check the certificates, --redis.tls-ca-file and --redis.tls-server-name, and that the port speaks TLS"},
	Protocol:    {"protocol", false, 15 * time.Second, "what answers there does not speak Redis' protocol; check --redis.addr"},
	Config:      {"config", true, time.Minute, "what is configured does not fit what is there, see err: --redis.addr, --redis.mode and --redis.sentinel-master, or the account lacks +select for a database that holds keys"},
	Topology:    {"topology", true, 0, "the deployment changed; the scan started over on its new nodes"},
	Shutdown:    {"shutdown", true, 0, "the program was told to end"},
}

func (r Reason) String() string { return rows[r].name }

// Answered tells whether the fault still means that the server was reached.
func (r Reason) Answered() bool { return rows[r].answered }

// Wait is the least time until the next try.
func (r Reason) Wait() time.Duration { return rows[r].wait }

// Advice says what the reader of a log line can do.
func (r Reason) Advice() string { return rows[r].advice }

// Error ends a cycle. It is wrapped once, where Redis was talked to.
type Error struct {
	Reason Reason
	Err    error
}

// New wraps err under a reason.
func New(r Reason, err error) *Error { return &Error{Reason: r, Err: err} }

// Newf is New with a formatted error.
func Newf(r Reason, format string, args ...any) *Error {
	return New(r, fmt.Errorf(format, args...))
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// ReasonOf is the reason that err carries. An error without one comes from
// the program itself or from a reply that no one foresaw: Protocol.
func ReasonOf(err error) Reason {
	if f := (*Error)(nil); errors.As(err, &f) {
		return f.Reason
	}
	return Protocol
}

// KeyProblem is what can befall one key or page without ending the cycle: the
// label `reason` of scan_errors_total.
type KeyProblem uint8

// The problems. NoProblem is no value of the label.
const (
	NoProblem KeyProblem = iota
	Gone
	WrongType
	Moved
	KeyPermission
	OversizedName
	PageBusy
	OddReply
	NumKeyProblems = iota
)

var problemNames = [NumKeyProblems]string{"", "gone", "wrong_type", "moved", "permission", "oversized_name", "busy", "odd_reply"}

func (p KeyProblem) String() string { return problemNames[p] }
