package main

import "fmt"

// scanner is how the exporter itself fares, and what it costs the servers.
func scanner(m metrics) dashboard {
	perScan := func(title, about, unit, expr string) *panel {
		return series(title, about, unit, query{expr, "{{node}}"})
	}
	process := func(name string) string { return fmt.Sprintf(`%s{job=~"$job", instance=~"$instance"}`, name) }
	age := fmt.Sprintf("time() - %s", m.last("scan_cycle_completed_timestamp_seconds"))
	coverage := m.last("scan_coverage_ratio")
	aborts := sum(fmt.Sprintf("increase(%s[$__range])", m.selector("scan_aborts_total")), "reason")
	yesNo := func(bad string) []object {
		return append(spoken(word{value: "1", text: "yes", colour: "green"}, word{value: "0", text: bad, colour: "orange"}), wide(120))
	}
	return dashboard{
		name: "scanner", title: "The scanner",
		about: "How far the scan is, what it costs the servers, and what it cannot do.",
		sections: []section{
			{panels: []*panel{
				stat("Nodes down", "Redis nodes that did not answer at the last contact.", "none", query{sum("1 - " + m.last("up")), ""}).steps("green", 1, "red"),
				stat("Oldest figures", "Age of the oldest node's figures. They come from complete cycles only.", "s", query{maximum(age), ""}).
					steps("green", 3600, "orange", 6*3600, "red").says(word{from: 1e9, text: "none yet", colour: "red"}).decimals(0),
				stat("Highest duty", "Share of one server core that the scan takes, on the node where it is most. --scan.max-duty is its limit.", "percentunit", query{maximum(m.own("scan_duty_ratio")), ""}).steps("green", 0.1, "orange", 0.3, "red").decimals(2),
				stat("Least coverage", "Names seen ÷ DBSIZE of the last complete cycle, of the node where it is least.", "percentunit", query{minimum(coverage), ""}).steps("red", 0.9, "orange", 0.98, "green").decimals(1),
				stat("Aborted cycles", "Cycles that ended early within the time range. They publish nothing and start over.", "locale", query{sum(aborts), ""}).steps("green", 0.5, "orange"),
				stat("Doubtful figures", "Nodes whose last complete cycle is suspect: the keyspace was flushed, or changed much under the scan.", "none", query{sum(m.last("snapshot_suspect")), ""}).steps("green", 1, "orange"),
				table("Nodes", "One row for each node and the exporter that scans it.", "-Age",
					broad(targetColumn()), nodeColumn(), label("Exporter", "instance", wide(150)),
					value("Up", "none", m.own("up"), append(spoken(word{value: "1", text: "yes", colour: "green"}, word{value: "0", text: "no", colour: "red"}), wide(60))...),
					value("Progress", "percentunit", m.own("scan_progress_ratio"), append(gauged("blue"), object{"id": "max", "value": 1}, wide(170), digits(0))...),
					value("Age", "s", "time() - "+m.own("scan_cycle_completed_timestamp_seconds"), object{"id": "mappings", "value": mappings([]word{{from: 1e9, text: "none yet", colour: "red"}})}, wide(90), digits(0)),
					value("Cycle", "s", m.own("scan_cycle_duration_seconds"), wide(90)),
					value("All measured in", "s", m.own("scan_full_measure_seconds"), wide(130)),
					value("Coverage", "percentunit", m.own("scan_coverage_ratio"), append(painted("red", 0.9, "orange", 0.98, "green"), wide(95), digits(1))...),
					value("Sizes", "percentunit", m.own("scan_sample_ratio"), wide(80), digits(0)),
					value("Details", "percentunit", m.own("scan_detail_ratio"), wide(80), digits(0)),
					value("Duty", "percentunit", m.own("scan_duty_ratio"), wide(80), digits(2)),
					value("Doubtful", "none", m.own("snapshot_suspect"), append(spoken(word{value: "1", text: "yes", colour: "orange"}, word{value: "0", text: "no", colour: "green"}), wide(90))...),
				).size(24, 7),
			}},
			{"Progress", []*panel{
				perScan("Progress of the cycle", "Share of the running cycle that is done. 1 between cycles, 0 after an aborted one.", "percentunit", m.last("scan_progress_ratio")).whole(),
				perScan("Keys scanned", "Names that SCAN returned, a second.", "cps", m.spent("scan_keys_total", "target", "node")),
				perScan("Duration of a cycle", "How long the last complete cycle took.", "s", m.last("scan_cycle_duration_seconds")),
				perScan("Coverage", "Names seen ÷ DBSIZE of the last complete cycle. Keys that come and go under the scan keep it from being exactly 1.", "percentunit", coverage),
				series("Cycles by result", "Cycles that ended, an hour, by how. Suspect: complete, but the keyspace was flushed or changed much.", "short",
					query{m.spent("scan_cycles_total", "result") + " * 3600", "{{result}}"}).colours("complete", "green", "suspect", "yellow", "aborted", "red"),
				perScan("Age of the figures", "Time since the last complete cycle of the node.", "s", fmt.Sprintf("time() - (%s > 0)", m.last("scan_cycle_completed_timestamp_seconds"))),
			}},
			{"Cost", []*panel{
				perScan("Duty", "Share of one server core that the scan takes, over the last seconds. --scan.max-duty is its limit.", "percentunit", m.own("scan_duty_ratio")),
				perScan("Server time", "Server time that the scan took, a second, as estimated from round trips.", "percentunit", m.spent("scan_busy_seconds_total", "target", "node")),
				series("Commands sent", "Commands of the scan by name, a second. Types, TTLs and lengths count as keyspace hits of the server.", "cps", query{m.spent("scan_probes_total", "command") + " > 0", "{{command}}"}),
				series("Exporter's CPU", "CPU time of the exporter, a second.", "percentunit", query{sum("rate("+process("process_cpu_seconds_total")+"[$__rate_interval])", "instance"), "{{instance}}"}),
				series("Exporter's memory", "Resident memory of the exporter. It does not grow with the number of keys.", "bytes", query{maximum(process("process_resident_memory_bytes"), "instance"), "{{instance}}"}),
				series("Scrape", "How long Prometheus waits for the exporter. A scrape never touches Redis.", "s", query{maximum(process("scrape_duration_seconds"), "instance"), "{{instance}}"}),
			}},
			{"Errors", []*panel{
				bars("Aborted cycles by reason", "Cycles that ended early within the time range, by reason.", "locale", query{fmt.Sprintf("sort_desc(%s >= 0.5)", aborts), "{{reason}}"}).coloured("orange").empty("No cycle was aborted"),
				series("Keys and pages that something befell", "By reason, a second. None of it ends a cycle; gone are keys that expired between SCAN and the probes.", "cps", query{m.spent("scan_errors_total", "reason") + " > 0", "{{reason}}"}).empty("Nothing"),
				stat("State of the exporter", "Series left out by --metrics.max-series, targets with more big keys than can be remembered, failed writes of the state file within the time range, and failed reads of the configuration.", "none",
					query{sum(m.own("series_dropped")), "series dropped"},
					query{sum(m.last("tracking_overflow")), "memory of big keys full"},
					query{sum(fmt.Sprintf("increase(%s[$__range])", m.selector("state_save_errors_total"))), "state not written"},
					query{sum("1 - " + m.own("config_last_reload_successful")), "bad configuration"}).steps("green", 0.5, "orange").decimals(0).size(8, 8),
			}},
			{"What it can and cannot do", []*panel{
				table("Commands", "Whether the account may use a command, as tried. What is denied leaves rules unjudged; the README has the ACL line.", "Allowed",
					label("Command", "command"), targetColumn(), nodeColumn(), value("Allowed", "none", m.last("capability"), yesNo("no")...),
				).size(12, 9),
				table("Rules that were not judged", "Rules that are off, that the server or the account does not allow, or that the node's role rules out. They have no figures anywhere.", "Rule",
					ruleColumn(), targetColumn(), nodeColumn(), value("Judged", "none", m.last("rule_evaluated")+" == 0", yesNo("no")...),
				).size(12, 9).empty("Every rule was judged"),
				table("Exporters", "What runs where, and since when its configuration holds.", "Exporter",
					label("Exporter", "instance"), label("Version", "version", wide(150)), label("Go", "goversion", wide(120)),
					value("Configured", "dateTimeFromNow", fmt.Sprintf("%s * 1000 * on (instance) group_right () %s", m.own("config_last_reload_success_timestamp_seconds"), maximum(process(namespace+"exporter_build_info"), "instance", "version", "goversion")), wide(150)),
				).size(24, 6),
			}},
		},
	}
}
