package web

import (
	"slices"

	"redis_keyhealth_exporter/internal/policy"
)

// ServerReport is the judgement of the server by one rule.
type ServerReport struct {
	ID       string `json:"rule"`
	Doc      string `json:"doc"` // URL of the page about the rule
	Level    string `json:"level"`
	Violated string `json:"violated_when"`
	Finding  string `json:"finding"` // violated, kept, not judged
}

// ServerBroken, ServerKept and ServerNotJudged are the server rules by finding.
func (report *NodeReport) ServerBroken() []ServerReport    { return report.server(policy.Violated) }
func (report *NodeReport) ServerKept() []ServerReport      { return report.server(policy.Kept) }
func (report *NodeReport) ServerNotJudged() []ServerReport { return report.server(policy.NotJudged) }

func (report *NodeReport) server(finding policy.Finding) []ServerReport {
	return slices.DeleteFunc(slices.Clone(report.ServerRules), func(r ServerReport) bool { return r.Finding != finding.String() })
}
