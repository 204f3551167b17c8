package main

import "fmt"

// naming is what names and namespaces look like, and who is to mend them.
func naming(m metrics) dashboard {
	const names = `rule=~"name_.*"`
	byRule := []string{"target", "namespace", "rule", "level"}
	named := sum(m.last("rule_violations", names), "rule")
	weighted := fmt.Sprintf("%s * on (target, node, db) %s", m.last("naming_violation_ratio"), sum(m.last("keys"), "target", "node", "db"))
	level := func(title, about, level, colour string) *panel {
		return stat(title, about, "locale", query{sum(m.last("rule_violations", fmt.Sprintf("level=%q", level))), ""}).steps("green", 1, colour).empty("not judged")
	}
	return dashboard{
		name: "naming", title: "Naming and namespaces",
		about: "Which rules keys break, by namespace and by the team that owns it.",
		sections: []section{
			{panels: []*panel{
				stat("Names that break rules", "Share of the keys whose name breaks a mandatory or recommended rule.", "percentunit",
					query{fmt.Sprintf("%s / (%s > 0)", sum(weighted), sum(m.last("keys"))), ""}).steps("green", 0.01, "orange", 0.1, "red").decimals(1),
				stat("Keys with such names", "Keys whose name breaks a mandatory or recommended rule.", "locale", query{sum(weighted), ""}).steps("green", 1, "orange"),
				level("Mandatory", "Sum of the keys over the mandatory rules that they break.", "mandatory", "red"),
				level("Recommended", "Sum of the keys over the recommended rules that they break.", "recommended", "orange"),
				level("Advisory", "Sum of the keys over the advisory rules that they break.", "advisory", "blue"),
				stat("Namespaces", "Namespaces of the policy, the default one included.", "none", query{"count(" + maximum(m.selector("namespace_info"), "namespace") + ")", ""}),
			}},
			{"Names", []*panel{
				brokenRules(m, "Rules about names", "Keys by the rule that their name breaks, by level.", names),
				series("Rules about names over time", "Keys by the rule that their name breaks.", "short", query{named, "{{rule}}"}).steep(),
				series("Share of bad names", "Share of the keys whose name breaks a mandatory or recommended rule.", "percentunit", query{maximum(m.last("naming_violation_ratio"), "target", "db"), "{{target}} {{db}}"}),
			}},
			{"Namespaces and owners", []*panel{
				table("Rules broken, by namespace and owner", "Keys by the rule they break, with their namespace and who owns it. Growth is over the least number within the time range. Levels are those that the policy gives the namespace.", "-Keys",
					ruleColumn(), levelColumn(), namespaceColumn(), ownerColumn(), targetColumn(),
					value("Keys", "locale", m.owned(sum(m.last("rule_violations"), byRule...)+" > 0", byRule...), wide(110)),
					value("Growth", "locale", fmt.Sprintf("%s and %s > 0", sum(m.growth("rule_violations"), byRule...), sum(m.last("rule_violations"), byRule...)),
						append(painted("text", 1, "red"), wide(100))...),
				).size(16, 12).empty("No rule is broken"),
				bars("Who has most to mend", "Sum of the keys over the mandatory and recommended rules.", "locale",
					query{fmt.Sprintf("sort_desc(%s)", m.owned(sum(m.last("rule_violations", `level=~"mandatory|recommended"`), "namespace")+" > 0", "namespace")), "{{namespace}} {{owner}}"}).
					size(8, 12).empty("No rule is broken"),
				series("Rules broken, by namespace", "Sum of the keys over all rules.", "short", query{sum(m.last("rule_violations"), "namespace"), "{{namespace}}"}).steep().size(12, 8),
				series("Rules broken, by level", "Sum of the keys over the rules of a level.", "short", query{sum(m.last("rule_violations"), "level"), "{{level}}"}).byLevel().steep().size(12, 8),
			}},
		},
	}
}
