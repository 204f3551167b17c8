package collector

import (
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

func sendServerRules(n *snapshot.NodeState, o *out) {
	if n.Snapshot == nil {
		return
	}
	rules := policy.Rules()
	for i, finding := range n.Snapshot.Server.Findings {
		if finding != policy.NotJudged {
			o.send(boolean(finding == policy.Violated), rules[i].ID, n.Snapshot.Rules[i].Level.String())
		}
	}
}

// eachCommand is a family with one series for each command of a closed list, 0
// before its first call.
func eachCommand(commands []string, value func(snapshot.Usage) float64) func(*snapshot.NodeState, *out) {
	return func(n *snapshot.NodeState, o *out) {
		if n.Snapshot == nil || n.Snapshot.Server.Calls == nil {
			return
		}
		for _, cmd := range commands {
			o.send(value(n.Snapshot.Server.Calls[cmd]), cmd)
		}
	}
}

func calls(u snapshot.Usage) float64 { return float64(u.Calls) }
