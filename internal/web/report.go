package web

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-kit/log/level"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// Report is the last findings, for a person (/report) and a program
// (/report.json). Names are encoded as keyspace.Label does; sizes are bytes and
// durations seconds.
type Report struct {
	Generated time.Time    `json:"generated"`
	Version   string       `json:"version"`
	Nodes     []NodeReport `json:"nodes"`
}

// NodeReport is the report of one node.
type NodeReport struct {
	Target  string `json:"target"`
	Node    string `json:"node"`
	Address string `json:"address"`
	Role    string `json:"role,omitempty"`
	Server  string `json:"server,omitempty"`
	Up      bool   `json:"up"`

	Problem string `json:"problem,omitempty"` // reason of the last fault, while it lasts
	Error   string `json:"error,omitempty"`
	Advice  string `json:"advice,omitempty"`

	Scanning    bool       `json:"scanning"`
	Progress    float64    `json:"progress"` // 0..1
	Started     *time.Time `json:"cycle_started,omitempty"`
	Completed   *time.Time `json:"cycle_completed,omitempty"` // the findings are of this time
	Duration    float64    `json:"cycle_seconds"`
	Coverage    float64    `json:"coverage"`
	Duty        float64    `json:"duty"`
	Suspect     []string   `json:"suspect,omitempty"`
	Denied      []string   `json:"denied_commands,omitempty"`
	Sample      float64    `json:"sample_ratio"` // share of the keys whose bytes one cycle measures
	Detail      float64    `json:"detail_ratio"` // share of the keys that are asked for type and TTL
	Interval    float64    `json:"interval_seconds"`
	KeysScanned uint64     `json:"keys_scanned_total"`

	Keys            float64          `json:"keys"`
	Bytes           float64          `json:"bytes"`
	BigKeys         uint64           `json:"big_keys"`
	CriticalKeys    uint64           `json:"critical_big_keys"`
	WithoutTTL      int64            `json:"keys_without_ttl"` // exact; -1 = not known
	WithoutTTLRatio float64          `json:"without_ttl_ratio"`
	NamingRatio     float64          `json:"naming_violation_ratio"`
	Types           []TypeReport     `json:"types"`
	Rules           []RuleReport     `json:"rules"`
	NotEvaluated    []string         `json:"rules_not_evaluated,omitempty"`
	ServerRules     []ServerReport   `json:"server_rules"`
	NewBigKeys      []BigKeyReport   `json:"new_big_keys"`
	TopBytes        []KeyReport      `json:"top_by_bytes"`
	TopElements     []KeyReport      `json:"top_by_elements"`
	Databases       []DatabaseReport `json:"databases"`
}

// TypeReport sums up a type in one database.
type TypeReport struct {
	DB    string  `json:"db"`
	Type  string  `json:"type"`
	Keys  float64 `json:"keys"`
	Bytes float64 `json:"bytes"` // -1 = not known
}

// DatabaseReport is exact, from INFO.
type DatabaseReport struct {
	DB         string `json:"db"`
	Keys       int64  `json:"keys"`
	WithoutTTL int64  `json:"keys_without_ttl"`
}

// RuleReport sums up a rule that was evaluated.
type RuleReport struct {
	ID       string      `json:"rule"`
	Doc      string      `json:"doc"` // URL of the page about the rule
	Level    string      `json:"level"`
	Violated string      `json:"violated_when"`
	Keys     float64     `json:"keys"`
	Stderr   float64     `json:"keys_stderr"` // standard error of keys; 0 = every key was judged
	Share    float64     `json:"share"`
	Examples []KeyReport `json:"examples"`
}

// Broken are the rules that keys break: the most binding first, then those that
// most keys break.
func (report *NodeReport) Broken() []RuleReport {
	broken := slices.DeleteFunc(slices.Clone(report.Rules), func(r RuleReport) bool { return r.Keys == 0 })
	slices.SortStableFunc(broken, func(a, b RuleReport) int {
		return cmp.Or(cmp.Compare(binding(b.Level), binding(a.Level)), cmp.Compare(b.Keys, a.Keys))
	})
	return broken
}

// Kept are the rules that no key breaks.
func (report *NodeReport) Kept() []RuleReport {
	return slices.DeleteFunc(slices.Clone(report.Rules), func(r RuleReport) bool { return r.Keys > 0 })
}

func binding(level string) policy.Level {
	for _, l := range []policy.Level{policy.Mandatory, policy.Recommended} {
		if l.String() == level {
			return l
		}
	}
	return policy.Advisory
}

// KeyReport names a key.
type KeyReport struct {
	DB      string     `json:"db"`
	Key     string     `json:"key"`
	Type    string     `json:"type"`
	Bytes   int64      `json:"bytes"`  // -1 = not known
	Length  int64      `json:"length"` // elements, of a string its bytes; -1 = not known
	Expires *time.Time `json:"expires,omitempty"`
}

// BigKeyReport names a big key that is not baseline.
type BigKeyReport struct {
	KeyReport
	Severity string    `json:"severity"`
	Since    time.Time `json:"since"`
}

//go:embed report.html.tmpl
var reportHTML string

// reports serves both forms.
type reports struct {
	opts Options
	page *template.Template
}

func newReports(o Options) *reports {
	return &reports{opts: o, page: template.Must(template.New("report").Funcs(helpers()).Parse(reportHTML))}
}

func (r *reports) build(now time.Time) Report {
	report := Report{Generated: now, Version: r.opts.Version, Nodes: []NodeReport{}}
	for _, n := range r.opts.Source.States() {
		report.Nodes = append(report.Nodes, r.node(&n))
	}
	return report
}

func (r *reports) json(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r.build(time.Now())); err != nil {
		level.Debug(r.opts.Logger).Log("msg", "report was not sent", "err", err)
	}
}

func (r *reports) html(w http.ResponseWriter, _ *http.Request) {
	// Half a page must not look like a whole one.
	var page bytes.Buffer
	if err := r.page.Execute(&page, r.build(time.Now())); err != nil {
		level.Error(r.opts.Logger).Log("msg", "report was not made", "err", err)
		http.Error(w, "the report could not be made; see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := page.WriteTo(w); err != nil {
		level.Debug(r.opts.Logger).Log("msg", "report was not sent", "err", err)
	}
}

func (r *reports) node(n *snapshot.NodeState) NodeReport {
	s := &n.Status
	report := NodeReport{
		Target: s.Node.Target, Node: s.Node.Node, Address: s.Info.Address, Role: s.Info.Role,
		Server: strings.TrimSpace(s.Info.Server + " " + s.Info.Version), Up: s.Up,
		Scanning: s.Scanning, Progress: s.Progress, Started: moment(s.CycleStarted), Completed: moment(s.CycleCompleted),
		Duration: s.CycleDuration.Seconds(), Coverage: s.Coverage, Duty: s.Duty, Sample: s.SampleRatio, Detail: s.DetailRatio,
		Interval: r.opts.Interval.Seconds(), KeysScanned: s.Keys,
		// A program finds an empty list more often than it checks for null.
		Types: []TypeReport{}, Rules: []RuleReport{}, NewBigKeys: []BigKeyReport{},
		ServerRules: []ServerReport{}, TopBytes: []KeyReport{}, TopElements: []KeyReport{}, Databases: []DatabaseReport{},
	}
	if s.LastFault != nil {
		reason := fault.ReasonOf(s.LastFault)
		report.Problem, report.Error, report.Advice = reason.String(), s.LastFault.Error(), reason.Advice()
	}
	for cmd, c := range s.Capabilities {
		if c == snapshot.Denied {
			report.Denied = append(report.Denied, keyspace.Command(cmd).String())
		}
	}
	report.addInfo(&s.Info)
	for _, k := range n.BigKeys.Listed {
		report.NewBigKeys = append(report.NewBigKeys, bigKeyReport(&k))
	}
	if n.Snapshot != nil {
		report.addFindings(n.Snapshot)
	}
	return report
}

func (report *NodeReport) addInfo(info *snapshot.ServerInfo) {
	var keys int64
	for _, db := range info.DBs {
		without := int64(-1)
		if db.Expires >= 0 {
			without = db.Keys - db.Expires
			report.WithoutTTL += without
			keys += db.Keys
		}
		report.Databases = append(report.Databases, DatabaseReport{keyspace.DBLabel(db.DB), db.Keys, without})
	}
	switch {
	case keys > 0:
		report.WithoutTTLRatio = float64(report.WithoutTTL) / float64(keys)
	case len(info.DBs) > 0 || info.Role == "":
		report.WithoutTTL = -1 // INFO is denied, or was not asked yet
	}
}

func (report *NodeReport) addFindings(s *snapshot.Snapshot) {
	report.Suspect = s.Suspect
	violations := make([]snapshot.Estimate, len(s.Evaluated))
	var broken, named uint64
	for i := range s.DBs {
		db := &s.DBs[i]
		broken, named = broken+db.NamingBroken, named+db.Named
		for _, t := range keyspace.Types() {
			stats := &db.Types[t]
			if stats.Keys.Value == 0 {
				continue
			}
			row := TypeReport{keyspace.DBLabel(db.DB), t.String(), stats.Keys.Value, -1}
			if stats.Bytes != nil {
				row.Bytes = stats.Bytes.Value
				report.Bytes += row.Bytes
			}
			if stats.Big != nil {
				report.CriticalKeys += stats.Big[policy.Critical].Keys
				report.BigKeys += stats.Big[policy.Warning].Keys + stats.Big[policy.Critical].Keys
			}
			report.Types = append(report.Types, row)
		}
		for _, ns := range db.Namespaces {
			for i, v := range ns.Violations {
				if v.Known() {
					violations[i] = violations[i].Plus(v)
				}
			}
		}
	}
	report.Keys = float64(named)
	if named > 0 {
		report.NamingRatio = float64(broken) / float64(named)
	}
	for i, rule := range policy.Rules() {
		applied := &s.Rules[i]
		if rule.AboutServer() {
			report.ServerRules = append(report.ServerRules, ServerReport{rule.ID, docOf(rule.ID), applied.Level.String(), applied.Violated, s.Server.Findings[i].String()})
			continue
		}
		if !s.Evaluated[i] {
			report.NotEvaluated = append(report.NotEvaluated, rule.ID)
			continue
		}
		row := RuleReport{ID: rule.ID, Doc: docOf(rule.ID), Level: worstLevel(s, i).String(), Violated: applied.Violated, Keys: violations[i].Value, Stderr: violations[i].Stderr, Examples: []KeyReport{}}
		if named > 0 {
			row.Share = violations[i].Value / float64(named)
		}
		for _, e := range s.Examples[i] {
			row.Examples = append(row.Examples, KeyReport{DB: keyspace.DBLabel(e.ID.DB), Key: e.Label, Type: e.Type.String(), Bytes: e.Bytes, Length: e.Length})
		}
		report.Rules = append(report.Rules, row)
	}
	for i := range s.TopBytes {
		report.TopBytes = append(report.TopBytes, topReport(&s.TopBytes[i]))
	}
	for i := range s.TopElements {
		report.TopElements = append(report.TopElements, topReport(&s.TopElements[i]))
	}
}

// worstLevel is the most binding level of a rule among the namespaces where keys
// break it; where none does, among all, and without any that of the policy.
func worstLevel(s *snapshot.Snapshot, rule int) policy.Level {
	var all, broken []policy.Level
	for i := range s.DBs {
		for _, ns := range s.DBs[i].Namespaces {
			if v := ns.Violations[rule]; v.Known() {
				all = append(all, ns.Levels[rule])
				if v.Value > 0 {
					broken = append(broken, ns.Levels[rule])
				}
			}
		}
	}
	switch {
	case len(broken) > 0:
		return slices.Max(broken)
	case len(all) > 0:
		return slices.Max(all)
	}
	return s.Rules[rule].Level
}

func topReport(t *snapshot.Top) KeyReport {
	return KeyReport{DB: keyspace.DBLabel(t.ID.DB), Key: t.Label, Type: t.Type.String(), Bytes: t.Bytes, Length: t.Length, Expires: moment(t.Expires)}
}

func bigKeyReport(k *bigkeys.Listed) BigKeyReport {
	return BigKeyReport{
		KeyReport: KeyReport{DB: keyspace.DBLabel(k.DB), Key: k.Label, Type: k.Type.String(), Bytes: k.Bytes, Length: k.Elements},
		Severity:  k.Severity.String(),
		Since:     k.Since,
	}
}

// moment is nil for "never", which JSON leaves out.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
