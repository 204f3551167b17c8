package main

import "fmt"

// server is how Redis is set up and used.
func server(m metrics) dashboard {
	calls := m.increase("on_command_calls_total", "$__range")
	seconds := m.increase("on_command_seconds_total", "$__range")
	forbidden := m.increase("forbidden_command_calls_total", "$__range")
	multi := m.increase("multi_key_command_calls_total", "$__range")
	byCommand := []string{"target", "node", "command"}
	broken := m.last("server_rule_violation")
	commands := func(title, about, expr, none string) *panel {
		return bars(title, about, "locale", query{fmt.Sprintf("sort_desc(topk(10, %s >= 0.5))", sum(expr, "command")), "{{command}}"}).coloured("orange").empty(none).size(8, 9)
	}
	return dashboard{
		name: "server", title: "Server and commands",
		about: "How the servers are set up, and which commands their clients use. Commands are counted by Redis itself, over all of its clients.",
		sections: []section{
			{panels: []*panel{
				stat("Server rules broken", "Rules about the server and its commands that are broken now, over all nodes.", "none", query{sum(broken), ""}).steps("green", 1, "orange"),
				stat("Forbidden calls", "KEYS, FLUSHALL, FLUSHDB, MONITOR and DEBUG within the time range.", "locale", query{sum(forbidden), ""}).steps("green", 0.5, "red"),
				stat("Calls over several keys", "Set and list commands over several keys within the time range.", "locale", query{sum(multi), ""}).steps("green", 0.5, "orange"),
				stat("Time in O(N) commands", "Share of one core that the watched O(N) commands take, over all nodes.", "percentunit", query{sum(m.rate("on_command_seconds_total")), ""}).steps("green", 0.2, "orange", 0.5, "red").decimals(1),
				stat("Memory", "used_memory of all nodes.", "bytes", query{sum(m.last("server_memory_bytes")), ""}),
				stat("Fullest node", "Memory ÷ maxmemory of the fullest node, of those that have a limit.", "percentunit",
					query{maximum(fmt.Sprintf("%s / (%s > 0)", m.last("server_memory_bytes"), m.last("server_maxmemory_bytes"))), ""}).steps("green", 0.8, "orange", 0.9, "red").decimals(1).empty("no maxmemory"),
			}},
			{"Rules", []*panel{
				table("Server rules", "Rules about the server and its commands, by node. Rules that could not be judged, or need rights that the account does not have, are absent.", "-State",
					ruleColumn(), levelColumn(), targetColumn(), nodeColumn(),
					value("State", "none", broken, append(spoken(word{value: "1", text: "broken", colour: "red"}, word{value: "0", text: "kept", colour: "green"}), wide(90))...),
				).size(12, 9),
				timeline("Server rules over time", "When a rule was broken, on any node of the target.",
					query{maximum(broken, "target", "rule"), "{{target}} {{rule}}"},
					word{value: "1", text: "broken", colour: "red"}, word{value: "0", text: "kept", colour: "green"}).size(12, 9),
			}},
			{"Commands", []*panel{
				commands("Forbidden commands", "Calls within the time range. Rename or close them by ACL.", forbidden, "None was called"),
				commands("Commands over several keys", "Calls within the time range of set and list commands that read or write several keys.", multi, "None was called"),
				commands("O(N) commands", "Calls within the time range of commands whose cost grows with the key.", calls, "None was called"),
				series("Forbidden commands over time", "Calls a second.", "cps", query{sum(m.rate("forbidden_command_calls_total"), "command") + " > 0", "{{command}}"}).drawn("bars").empty("None was called"),
				series("Time in O(N) commands", "Share of one core by command, over all nodes.", "percentunit", query{sum(m.rate("on_command_seconds_total"), "command") + " > 0", "{{command}}"}).stacked().empty("None was called"),
				series("Mean time of a call", "Server time of one call by command. It grows with the keys.", "s",
					query{fmt.Sprintf("%s / (%s > 0)", sum(m.rate("on_command_seconds_total"), "command"), sum(m.rate("on_command_calls_total"), "command")), "{{command}}"}).drawn("points").empty("None was called"),
				table("O(N) commands by node", "Calls and server time within the time range.", "-Time",
					label("Command", "command"), targetColumn(), nodeColumn(),
					value("Calls", "locale", sum(calls, byCommand...)+" >= 0.5", wide(120)),
					value("Time", "s", fmt.Sprintf("%s and %s >= 0.5", sum(seconds, byCommand...), sum(calls, byCommand...)), wide(100)),
					value("Mean", "s", fmt.Sprintf("%s / (%s >= 0.5)", sum(seconds, byCommand...), sum(calls, byCommand...)), append(painted("text", 0.001, "orange", 0.01, "red"), wide(90))...),
				).size(12, 9).empty("None was called"),
				series("Memory by node", "used_memory. A limit, where there is one, is on the cluster's dashboard.", "bytes", query{m.last("server_memory_bytes"), "{{node}}"}).size(12, 9),
			}},
		},
	}
}
