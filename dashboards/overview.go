package main

import "fmt"

// overview is the health at a glance, for each target.
func overview(m metrics) dashboard {
	const (
		completed = "scan_cycle_completed_timestamp_seconds"
		never     = 1e9 // seconds: an age that counts from 1970
	)
	age := "time() - " + m.last(completed)
	down := "1 - " + m.last("up")
	weight := sum(m.last("keys"), "target", "node", "db")
	badNames := fmt.Sprintf("%s * on (target, node, db) %s", m.last("naming_violation_ratio"), weight)
	newKeys := m.increase("new_big_keys_total", "$__range")
	mandatory := m.last("rule_violations", `level="mandatory"`)
	share := func(part, of string, by ...string) string {
		return fmt.Sprintf("%s / (%s > 0)", sum(part, by...), sum(of, by...))
	}
	big := func(severity string) string { return m.last("big_keys", fmt.Sprintf("severity=%q", severity)) }

	return dashboard{
		name: "overview", title: "Overview",
		about: "The health of the keys of every Redis target at a glance. Names of targets lead to their keys.",
		sections: []section{
			{panels: []*panel{
				stat("Nodes down", "Redis nodes that did not answer at the last contact.", "none", query{sum(down), ""}).
					steps("green", 1, "red").leads(board("The scan", "scanner")),
				stat("Oldest figures", "Age of the oldest node's figures. They come from complete cycles only.", "s", query{maximum(age), ""}).
					steps("green", 3600, "orange", 6*3600, "red").says(word{from: never, text: "none yet", colour: "red"}).decimals(0).leads(board("The scan", "scanner")),
				stat("Critical big keys", "Keys that break a limit of the critical tier.", "locale", query{sum(big("critical")), ""}).
					steps("green", 1, "red").leads(board("Big keys", "big-keys")),
				stat("New big keys", "Keys that became big within the time range, both tiers.", "locale", query{sum(newKeys), ""}).
					steps("green", 0.5, "red").leads(board("Big keys", "big-keys")),
				stat("Keys without TTL", "Share of the keys that never expire, whether the policy exempts them or not.", "percentunit", query{"clamp_max(" + share(m.last("keys_without_ttl"), m.last("keys")) + ", 1)", ""}).
					steps("green", 0.3, "orange", 0.6, "red").decimals(1).leads(board("Lifetimes", "lifetimes")),
				stat("Names that break rules", "Share of the keys whose name breaks a mandatory or recommended rule.", "percentunit", query{share(badNames, m.last("keys")), ""}).
					steps("green", 0.01, "orange", 0.1, "red").decimals(1).leads(board("Naming and namespaces", "naming")),
				table("Targets", "One row for each Redis deployment. The name of a target leads to its big keys. Counts of new keys are for the time range; the share without TTL knows no exemptions.", "-Critical",
					broad(targetColumn()),
					value("Nodes", "none", "count by (target) ("+m.last("up")+")", wide(65)),
					value("Down", "none", sum(down, "target"), append(painted("green", 1, "red"), wide(65))...),
					value("Age", "s", maximum(age, "target"), append(painted("text", 3600, "orange", 6*3600, "red"), wide(85), digits(0),
						object{"id": "mappings", "value": mappings([]word{{from: never, text: "none yet", colour: "red"}})})...),
					value("Keys", "locale", sum(m.last("keys"), "target"), wide(110)),
					value("Memory", "bytes", sum(m.last("server_memory_bytes"), "target"), wide(100)),
					value("Critical", "locale", sum(big("critical"), "target"), append(painted("green", 1, "red"), wide(80))...),
					value("Warning", "locale", sum(big("warning"), "target"), append(painted("green", 1, "orange"), wide(85))...),
					value("New", "locale", sum(newKeys, "target"), append(painted("green", 0.5, "red"), wide(65))...),
					value("Without TTL", "percentunit", "clamp_max("+share(m.last("keys_without_ttl"), m.last("keys"), "target")+", 1)", append(painted("green", 0.3, "orange", 0.6, "red"), wide(110), digits(1))...),
					value("Bad names", "percentunit", share(badNames, m.last("keys"), "target"), append(painted("green", 0.01, "orange", 0.1, "red"), wide(105), digits(1))...),
					value("Mandatory rules broken", "locale", sum(mandatory, "target"), append(painted("green", 1, "red"), wide(180))...),
					value("Server rules broken", "none", sum(m.last("server_rule_violation"), "target"), append(painted("green", 1, "orange"), wide(160))...),
				).size(24, 6),
				newBigKeys(m, "What became big since the exporter first looked, newest first: at most 50 keys a node. The key leads to its remedy, the target to all of its big keys.").size(24, 7),
			}},
			{"Keys", []*panel{
				series("Big keys by tier", "Keys that break a limit for big keys, each once, at its worst tier.", "short", query{sum(m.last("big_keys"), "severity"), "{{severity}}"}).bySeverity(),
				series("Memory by type", "MEMORY USAGE of all keys by type, as of the last complete cycle.", "bytes", query{sum(m.last("memory_bytes"), "key_type") + " > 0", "{{key_type}}"}).stacked().byType(),
				series("Keys by type", "Keys by type, as of the last complete cycle.", "short", query{sum(m.last("keys"), "key_type") + " > 0", "{{key_type}}"}).stacked().byType(),
				series("Keys without TTL", "Share of the keys that never expire, exact from INFO.", "percentunit", query{"clamp_max(" + share(m.last("keys_without_ttl"), m.last("keys"), "target") + ", 1)", "{{target}}"}).whole(),
				series("Names that break rules", "Share of the keys whose name breaks a mandatory or recommended rule.", "percentunit", query{share(badNames, m.last("keys"), "target"), "{{target}}"}),
				series("Age of the figures", "Time since the last complete cycle of the node that waits longest. A saw tooth is healthy: it rises while a cycle runs.", "s", query{maximum(fmt.Sprintf("time() - (%s > 0)", m.last(completed)), "target"), "{{target}}"}),
			}},
			{"Rules", []*panel{
				brokenRules(m, "Rules that keys break", "Keys by the rule they break, by level. A key counts for each rule it breaks. A rule that could not be judged is absent, see the scanner.").size(12, 12),
				series("Rules broken by level", "Sum of the keys over the rules of a level.", "short", query{sum(m.last("rule_violations"), "level"), "{{level}}"}).size(12, 12).byLevel().steep(),
			}},
		},
	}
}

// newBigKeys names the keys that became big.
func newBigKeys(m metrics, about string) *panel {
	return table("New big keys", about, "-Since",
		severityColumn(),
		keyColumn("RedisKeyHealthNewBigKey"),
		value("Size", "bytes", m.owned(m.last("big_key_memory_bytes"), m.labels("big_key_memory_bytes")...), wide(95)),
		value("Elements", "locale", m.last("big_key_elements"), wide(100)),
		typeColumn(),
		targetColumn(),
		nodeColumn(),
		dbColumn(),
		namespaceColumn(),
		ownerColumn(),
		value("Since", "dateTimeFromNow", m.last("big_key_first_seen_timestamp_seconds")+" * 1000", wide(150)),
	).empty("No key became big since the first cycle")
}

// brokenRules are the rules that match, or all, by how many keys break them.
func brokenRules(m metrics, title, about string, matchers ...string) *panel {
	return table(title, about, "-Keys",
		ruleColumn(),
		levelColumn(),
		value("Keys", "locale", sum(m.last("rule_violations", matchers...), "rule", "level")+" > 0", append(gauged("blue"), wide(170))...),
	).size(8, 8).empty("No rule is broken")
}
