package collector

import (
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// Groups of docs/metrics.md.
const (
	groupResults = "Results of the last complete cycle"
	groupInfo    = "Exact from INFO, refreshed at least every 15 s"
	groupBigKeys = "New big keys"
	groupServer  = "Server and command hygiene (one probe a cycle, always on the primary)"
	groupScan    = "The scan itself"
	groupWatched = "Watched by policy"
	groupSelf    = "Self"
)

// families is THE metric table: a new metric is a row. Names, labels and
// meanings are a contract with dashboards and alerts.
func families() []family {
	return []family{
		{groupResults, "keys", "Keys by type.", gauge, perNode, []string{"db", "key_type"}, totals, eachType(sendKeys)},
		{groupResults, "keys_stderr", "Standard error of keys; 0 where every key was asked for its type.", gauge, perNode, []string{"db", "key_type"}, totals, eachType(sendKeysStderr)},
		{groupResults, "memory_bytes", "Sum of MEMORY USAGE by type; absent where that command is denied.", gauge, perNode, []string{"db", "key_type"}, totals, eachType(sendBytes)},
		{groupResults, "memory_bytes_stderr", "Standard error of memory_bytes; 0 where every key was measured.", gauge, perNode, []string{"db", "key_type"}, totals, eachType(sendBytesStderr)},
		{groupResults, "key_memory_bytes", "Keys by MEMORY USAGE. A snapshot: use histogram_quantile directly, never rate().", histogram, perNode, []string{"db", "key_type"}, breakdowns, eachType(sendMemoryHistogram)},
		{groupResults, "key_elements", "Collections by elements; those too small to be counted are in the first bucket, and not in the sum. A snapshot: use histogram_quantile directly, never rate().", histogram, perNode, []string{"db", "key_type"}, breakdowns, eachType(sendElementsHistogram)},
		{groupResults, "big_keys", "Keys that break big_string, many_elements, big_collection or big_element: each once, at its worst severity. With --scan.sample above 1 those that are known.", gauge, perNode, []string{"db", "key_type", "severity"}, totals, eachBig(func(b snapshot.BigStats) uint64 { return b.Keys })},
		{groupResults, "big_keys_memory_bytes", "Sum of MEMORY USAGE of the big keys.", gauge, perNode, []string{"db", "key_type", "severity"}, totals, eachBig(func(b snapshot.BigStats) uint64 { return b.Bytes })},
		{groupResults, "top_key_memory_bytes", "MEMORY USAGE of the largest keys of the node, over all databases.", gauge, perNode, []string{"db", "namespace", "key_type", "key"}, detail, eachTop(topBytes, sendTopValue)},
		{groupResults, "top_key_elements", "Elements of the collections of the node that have most, over all databases.", gauge, perNode, []string{"db", "namespace", "key_type", "key"}, detail, eachTop(topElements, sendTopValue)},
		{groupResults, "top_key_expiry_timestamp_seconds", "When a key of the two top lists expires, Unix seconds; absent = never.", gauge, perNode, []string{"db", "namespace", "key_type", "key"}, detail, eachTop(topBoth, sendTopExpiry)},
		{groupResults, "rule_violations", "Keys that break the rule. Absent where the rule was not evaluated, see rule_evaluated.", gauge, perNode, []string{"db", "rule", "level", "namespace"}, breakdowns, eachViolation(func(e snapshot.Estimate) float64 { return e.Value })},
		{groupResults, "rule_violations_stderr", "Standard error of rule_violations; 0 where every key was judged, as by the name rules.", gauge, perNode, []string{"db", "rule", "level", "namespace"}, breakdowns, eachViolation(func(e snapshot.Estimate) float64 { return e.Stderr })},
		{groupResults, "naming_violation_ratio", "Share of the keys that break a name_* rule of level mandatory or recommended.", gauge, perNode, []string{"db"}, totals, eachDB(sendNaming)},
		{groupResults, "ttl_seconds", "Remaining lifetime of the keys that have one. A snapshot: use histogram_quantile directly, never rate().", histogram, perNode, []string{"db"}, breakdowns, eachDB(sendTTL)},
		{groupResults, "expiring_keys_peak", "Most keys that expire within one clock minute of the 24 hours behind the cycle's start.", gauge, perNode, []string{"db"}, totals, eachDB(sendPeak)},
		{groupResults, "expiring_keys_peak_timestamp_seconds", "Start of that minute, Unix seconds; absent where nothing expires.", gauge, perNode, []string{"db"}, totals, eachDB(sendPeakTime)},
		{groupResults, "keys_by_encoding", "Keys by OBJECT ENCODING, estimated from a fixed 1/64 of the keys and from those that are large enough to break a rule.", gauge, perNode, []string{"db", "key_type", "encoding"}, breakdowns, eachType(sendEncodings)},
		{groupResults, "idle_seconds", "OBJECT IDLETIME of the keys without a TTL, estimated like keys_by_encoding; of a primary that does not evict by LFU. A snapshot: use histogram_quantile directly, never rate().", histogram, perNode, []string{"db"}, breakdowns, eachDB(sendIdle)},
		{groupResults, "hot_key_frequency", "Highest LFU counters (OBJECT FREQ, 0 to 255) of the node that were seen, over all databases: those of a fixed 1/64 of the keys, and of the keys that are large enough to break a rule; of a primary that evicts by LFU.", gauge, perNode, []string{"db", "namespace", "key_type", "key"}, detail, eachTop(topFrequency, sendTopValue)},
		{groupResults, "snapshot_suspect", "1 = the figures of the last complete cycle are doubtful: the keyspace was flushed, its coverage is off by more than 10 %, or slots moved.", gauge, perNode, nil, totals, sendSuspect},

		{groupInfo, "keys_without_ttl", "Keys without a TTL.", gauge, perNode, []string{"db"}, totals, eachInfoDB(func(db snapshot.DBInfo) float64 { return float64(db.Keys - db.Expires) })},
		{groupInfo, "without_ttl_ratio", "Share of the keys without a TTL, exemptions not considered; absent for an empty database.", gauge, perNode, []string{"db"}, totals, eachInfoDB(func(db snapshot.DBInfo) float64 { return float64(db.Keys-db.Expires) / float64(db.Keys) })},
		{groupInfo, "server_memory_bytes", "used_memory.", gauge, perNode, nil, totals, sendMemory(func(s *snapshot.ServerInfo) int64 { return s.UsedBytes })},
		{groupInfo, "server_maxmemory_bytes", "maxmemory; 0 = no limit.", gauge, perNode, nil, totals, sendMemory(func(s *snapshot.ServerInfo) int64 { return s.MaxBytes })},
		{groupInfo, "server_dataset_bytes", "used_memory_dataset.", gauge, perNode, nil, totals, sendMemory(func(s *snapshot.ServerInfo) int64 { return s.DatasetBytes })},

		{groupBigKeys, "new_big_keys_total", "Keys that entered this tier from below; critical alone where a key entered both.", counter, perNode, []string{"key_type", "severity"}, totals, sendNewBigKeys},
		{groupBigKeys, "resolved_big_keys_total", "Keys that left the tier they were in: shrank, deleted or expired. A key that comes and goes counts each time here, but in new_big_keys_total only once within 48 hours.", counter, perNode, []string{"key_type", "severity"}, totals, sendResolvedBigKeys},
		{groupBigKeys, "big_key_first_seen_timestamp_seconds", "When a big key that is not baseline entered its tier, Unix seconds: the newest 50, critical first.", gauge, perNode, []string{"db", "namespace", "key_type", "severity", "key"}, detail, eachListed(sendListedSince)},
		{groupBigKeys, "big_key_memory_bytes", "MEMORY USAGE of those keys.", gauge, perNode, []string{"db", "namespace", "key_type", "severity", "key"}, detail, eachListed(sendListedBytes)},
		{groupBigKeys, "big_key_elements", "Elements of those of them that are collections.", gauge, perNode, []string{"db", "namespace", "key_type", "severity", "key"}, detail, eachListed(sendListedElements)},

		{groupScan, "up", "1 = the last contact with the server, at most 15 s ago or at the last try, succeeded.", gauge, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return boolean(s.Up) })},
		{groupScan, "node_info", "What is really scanned; always 1.", gauge, perNode, []string{"address", "role", "server", "version"}, totals, sendNodeInfo},
		{groupScan, "scan_keys_total", "Names that SCAN returned.", counter, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return float64(s.Keys) })},
		{groupScan, "scan_probes_total", "Commands sent. Each type, pttl and length command is a keyspace hit, to be subtracted from the server's.", counter, perNode, []string{"command"}, totals, sendCommands},
		{groupScan, "scan_cycles_total", "Cycles by how they ended.", counter, perNode, []string{"result"}, totals, sendCycles},
		{groupScan, "scan_aborts_total", "Aborted cycles by reason.", counter, perNode, []string{"reason"}, totals, sendAborts},
		{groupScan, "scan_errors_total", "Keys and pages that something befell, by reason; none of it ends a cycle.", counter, perNode, []string{"reason"}, totals, sendKeyErrors},
		{groupScan, "scan_progress_ratio", "Share of the running cycle that is done; 1 between cycles, 0 after an aborted one.", gauge, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return s.Progress })},
		{groupScan, "scan_cycle_duration_seconds", "How long the last complete cycle took; absent before the first.", gauge, perNode, nil, totals, sendDuration},
		{groupScan, "scan_cycle_started_timestamp_seconds", "When the last cycle started, Unix seconds; 0 = never.", gauge, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return unix(s.CycleStarted) })},
		{groupScan, "scan_cycle_completed_timestamp_seconds", "When the last complete cycle ended, Unix seconds; 0 = never.", gauge, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return unix(s.CycleCompleted) })},
		{groupScan, "scan_interval_seconds", "Least time between the starts of two cycles, --scan.interval.", gauge, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return s.Interval.Seconds() })},
		{groupScan, "scan_coverage_ratio", "Names seen in the last complete cycle ÷ DBSIZE; absent before the first.", gauge, perNode, nil, totals, sendCoverage},
		{groupScan, "scan_sample_ratio", "Share of the keys whose bytes one cycle measures.", gauge, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return s.SampleRatio })},
		{groupScan, "scan_detail_ratio", "Share of the keys whose type and TTL are asked for.", gauge, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return s.DetailRatio })},
		{groupScan, "scan_full_measure_seconds", "In which every key gets measured at the present pace; absent before anything is known of it.", gauge, perNode, nil, totals, sendFullMeasure},
		{groupScan, "scan_busy_seconds_total", "Server time spent on this program, as estimated from round trips.", counter, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return s.Busy.Seconds() })},
		{groupScan, "scan_duty_ratio", "Server time spent on this program ÷ wall time, over the last seconds.", gauge, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return s.Duty })},
		{groupScan, "capability", "1 = the command may be used, 0 = it is denied or unknown to the server; absent = not tried yet.", gauge, perNode, []string{"command"}, totals, sendCapabilities},
		{groupScan, "rule_evaluated", "1 = the last complete cycle judged the rule; 0 = it could not, no key that the rule is about was in the sample, or the rule is not configured.", gauge, perNode, []string{"rule"}, totals, sendEvaluated},
		{groupScan, "topology_nodes", "Servers of the deployment by role, with those that are not scanned as far as they are known.", gauge, perTarget, []string{"role"}, totals, sendTopology},

		{groupServer, "server_rule_violation", "1 = the server breaks the rule. Absent where the rule was not evaluated, see rule_evaluated.", gauge, perNode, []string{"rule", "level"}, totals, sendServerRules},
		{groupServer, "forbidden_command_calls_total", "Calls of commands that should never be called, since the server's start: INFO commandstats.", counter, perNode, []string{"command"}, totals, eachCommand(policy.ForbiddenCommands(), calls)},
		{groupServer, "on_command_calls_total", "Calls of commands whose time grows with the size of a key, of transactions and scripts, since the server's start: INFO commandstats.", counter, perNode, []string{"command"}, breakdowns, eachCommand(policy.OnCommands(), calls)},
		{groupServer, "on_command_seconds_total", "Time that the server spent in those commands, since its start: INFO commandstats.", counter, perNode, []string{"command"}, breakdowns, eachCommand(policy.OnCommands(), func(u snapshot.Usage) float64 { return u.Time.Seconds() })},
		{groupServer, "multi_key_command_calls_total", "Calls of commands that work on several sets, sorted sets or lists at once, since the server's start: INFO commandstats.", counter, perNode, []string{"command"}, breakdowns, eachCommand(policy.MultiKeyCommands(), calls)},

		{groupWatched, "watched_key_memory_bytes", "MEMORY USAGE of the keys that the policy names under watch, as the last look found them; absent = there is no such key.", gauge, perNode, []string{"db", "namespace", "key_type", "key"}, breakdowns, sendWatchedBytes},
		{groupWatched, "watched_key_elements", "Elements of those of them that are collections.", gauge, perNode, []string{"db", "namespace", "key_type", "key"}, breakdowns, sendWatchedElements},

		{groupSelf, "tracked_big_keys", "Big keys remembered, those that left within 48 h included.", gauge, perTarget, nil, totals, sendTracked},
		{groupSelf, "watched_keys", "Big keys known by name, which are measured anew every --scan.watch-interval.", gauge, perTarget, nil, totals, sendWatched},
		{groupSelf, "tracking_overflow", "1 = there are more big keys than can be remembered: newcomers raise no event.", gauge, perTarget, nil, totals, sendOverflow},
		{groupSelf, "state_save_errors_total", "Failed writes of --state.file: a restart would begin with a new baseline.", counter, perNode, nil, totals, status(func(s *snapshot.Status) float64 { return float64(s.StateErrors) })},
		{groupSelf, "namespace_info", "Policy namespaces and their owners; always 1.", gauge, self, []string{"namespace", "owner"}, totals, sendNamespaces},
		{groupSelf, "config_last_reload_successful", "1 = the last configuration that was read was good.", gauge, self, nil, totals, func(_ *snapshot.NodeState, o *out) { o.send(boolean(!o.view.configuration.Failed)) }},
		{groupSelf, "config_last_reload_success_timestamp_seconds", "When the present configuration was taken over, Unix seconds.", gauge, self, nil, totals, func(_ *snapshot.NodeState, o *out) { o.send(unix(o.view.configuration.Loaded)) }},
		{groupSelf, "series_dropped", "Series left out of this scrape by --metrics.max-series: those of keys first, then histograms and rules, and of more than max-series / 80 databases those with fewest keys.", gauge, self, nil, totals, nil},
	}
}

func sendNodeInfo(n *snapshot.NodeState, o *out) {
	i := &n.Status.Info
	o.send(1, i.Address, i.Role, i.Server, i.Version)
}

// status is a family with one series a node, straight from its status.
func status(value func(*snapshot.Status) float64) func(*snapshot.NodeState, *out) {
	return func(n *snapshot.NodeState, o *out) { o.send(value(&n.Status)) }
}

func sendCommands(n *snapshot.NodeState, o *out) {
	for _, cmd := range keyspace.Commands() {
		o.send(float64(n.Status.Commands[cmd]), cmd.String())
	}
}

func sendCycles(n *snapshot.NodeState, o *out) {
	for r := range snapshot.CycleResult(snapshot.NumCycleResults) {
		o.send(float64(n.Status.Cycles[r]), r.String())
	}
}

func sendAborts(n *snapshot.NodeState, o *out) {
	for r := range fault.Reason(fault.NumReasons) {
		o.send(float64(n.Status.Aborts[r]), r.String())
	}
}

func sendKeyErrors(n *snapshot.NodeState, o *out) {
	for p := fault.NoProblem + 1; p < fault.NumKeyProblems; p++ {
		o.send(float64(n.Status.KeyErrors[p]), p.String())
	}
}

func sendDuration(n *snapshot.NodeState, o *out) {
	if n.Snapshot != nil {
		o.send(n.Status.CycleDuration.Seconds())
	}
}

func sendCoverage(n *snapshot.NodeState, o *out) {
	if n.Snapshot != nil {
		o.send(n.Status.Coverage)
	}
}

func sendFullMeasure(n *snapshot.NodeState, o *out) {
	if d, ok := n.Status.FullMeasure(); ok {
		o.send(d.Seconds())
	}
}

func sendCapabilities(n *snapshot.NodeState, o *out) {
	for _, cmd := range keyspace.Commands() {
		if c := n.Status.Capabilities[cmd]; c != snapshot.Untried {
			o.send(boolean(c == snapshot.Allowed), cmd.String())
		}
	}
}

func sendEvaluated(n *snapshot.NodeState, o *out) {
	for i, r := range policy.Rules() {
		o.send(boolean(n.Status.Evaluated[i]), r.ID)
	}
}

// sendTopology counts all nodes of the target, of which it is handed the first.
func sendTopology(first *snapshot.NodeState, o *out) {
	roles := map[string]int{"primary": 0, "replica": 0, "unknown": 0}
	for i := range o.view.nodes {
		if s := &o.view.nodes[i].Status; s.Node.Target == first.Status.Node.Target {
			switch {
			case s.Placed:
				roles["primary"]++
				roles["replica"] += s.Replicas
			case s.Info.Role == "":
				roles["unknown"]++
			default:
				roles[s.Info.Role]++
			}
		}
	}
	for role, n := range roles {
		o.send(float64(n), role)
	}
}

func sendNamespaces(_ *snapshot.NodeState, o *out) {
	for _, n := range o.view.configuration.Namespaces {
		o.send(1, n.Name, n.Owner)
	}
}

func sendTracked(n *snapshot.NodeState, o *out) { o.send(float64(n.BigKeys.Tracked)) }

func sendWatched(n *snapshot.NodeState, o *out) { o.send(float64(n.BigKeys.Watched)) }

func sendOverflow(n *snapshot.NodeState, o *out) { o.send(boolean(n.BigKeys.Overflow)) }
