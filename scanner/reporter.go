package scanner

import (
	"strings"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/snapshot"
)

// logEvery is the least time between two lines about the same trouble of one
// node: a server that is down for a day must not fill a disk.
const logEvery = time.Minute

// reporter is the one place that logs what happens to a node.
type reporter struct {
	logger     log.Logger
	logged     map[string]time.Time // by reason
	suppressed int
	troubled   bool   // a line about trouble is out, the one about its end is not
	denied     string // commands, as last logged
}

// trouble logs a fault, what to do about it and when the next try is.
func (r *reporter) trouble(id keyspace.NodeID, msg string, err error, next time.Duration) {
	reason := fault.ReasonOf(err)
	r.troubled = r.limited(id, reason.String(), "msg", msg, "reason", reason, "err", err, "advice", reason.Advice(), "next_try", next.Round(time.Millisecond)) || r.troubled
}

// completed logs the end of trouble, and what of the cycle is doubtful or could
// not be had.
func (r *reporter) completed(id keyspace.NodeID, s *snapshot.Snapshot, capabilities [keyspace.NumCommands]snapshot.Capability) {
	if len(s.Suspect) > 0 {
		r.troubled = r.limited(id, snapshot.Suspect.String(), "msg", "suspect cycle: its figures raise no event", "why", strings.Join(s.Suspect, "; ")) || r.troubled
	} else {
		r.recovered(id, "scan works again")
	}
	if denied := deniedCommands(capabilities); denied != r.denied {
		r.denied = denied
		level.Info(r.logger).Log("msg", "commands that the server does not know or the user may not call; what needs them is left out",
			"target", id.Target, "node", id.Node, "commands", denied, "see", "capability and rule_evaluated in the metrics")
	}
	level.Debug(r.logger).Log("msg", "cycle ended", "target", id.Target, "node", id.Node,
		"duration", s.Completed.Sub(s.Started), "coverage", s.Coverage)
}

// recovered logs the end of trouble, if there was any.
func (r *reporter) recovered(id keyspace.NodeID, msg string) {
	if r.troubled {
		r.troubled = false
		level.Info(r.logger).Log("msg", msg, "target", id.Target, "node", id.Node)
	}
}

// unsaved logs that the state file could not be written.
func (r *reporter) unsaved(id keyspace.NodeID, err error) {
	r.limited(id, "state file", "msg", "the state file could not be written: a restart would begin with a new baseline", "err", err,
		"advice", "make room, or let the user write to the directory of --state.file")
}

// limited logs a line unless there was one about the same trouble just now, which
// it tells.
func (r *reporter) limited(id keyspace.NodeID, trouble string, keyvals ...any) (logged bool) {
	if at, ok := r.logged[trouble]; ok && time.Since(at) < logEvery {
		r.suppressed++
		return false
	}
	level.Warn(r.logger).Log(append(keyvals, "target", id.Target, "node", id.Node, "suppressed", r.suppressed)...)
	r.logged[trouble], r.suppressed = time.Now(), 0
	return true
}

// deniedCommands lists the commands that were denied.
func deniedCommands(capabilities [keyspace.NumCommands]snapshot.Capability) string {
	var denied []string
	for cmd, capability := range capabilities {
		if capability == snapshot.Denied {
			denied = append(denied, keyspace.Command(cmd).String())
		}
	}
	return strings.Join(denied, ",")
}
