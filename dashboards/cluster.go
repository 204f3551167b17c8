package main

import "fmt"

// cluster is how evenly the nodes of a target are loaded.
func cluster(m metrics) dashboard {
	memory := m.last("server_memory_bytes")
	keys := sum(m.last("keys"), "target", "node")
	bigMemory := sum(m.last("big_keys_memory_bytes"), "target", "node")
	// A node ÷ the mean of its peers: of the others, without itself.
	skew := func(x string) string {
		return fmt.Sprintf("%[1]s * on (target) group_left () (count by (target) (%[1]s) - 1 > 0) / (sum by (target) (%[1]s) - on (target) group_right () %[1]s > 0)", x)
	}
	used := fmt.Sprintf("%s / (%s > 0)", memory, m.last("server_maxmemory_bytes"))
	const alone = "A target with one node has no skew"
	worst := func(title, about, x string) *panel {
		return stat(title, about, "none", query{maximum(skew(x)), ""}).steps("green", 1.2, "orange", 1.5, "red").decimals(2).empty(alone)
	}
	nodeSeries := func(title, about, unit, expr string) *panel {
		return series(title, about, unit, query{expr, "{{node}}"})
	}
	ratio := append(painted("green", 1.2, "orange", 1.5, "red"), digits(2), wide(110))
	return dashboard{
		name: "cluster", title: "Cluster",
		about: "How evenly keys and memory lie on the nodes of a target. Skew is a node's figure ÷ the mean of its peers: 1 is even, above 1.5 is too much.",
		sections: []section{
			{panels: []*panel{
				stat("Nodes", "Redis nodes that are scanned.", "none", query{"count(" + m.last("up") + ")", ""}),
				stat("Nodes down", "Redis nodes that did not answer at the last contact.", "none", query{sum("1 - " + m.last("up")), ""}).steps("green", 1, "red"),
				worst("Worst memory skew", "The node with most memory ÷ the mean of its peers.", memory),
				worst("Worst skew of keys", "The node with most keys ÷ the mean of its peers.", keys),
				stat("Fullest node", "Memory ÷ maxmemory of the fullest node, of those that have a limit.", "percentunit", query{maximum(used), ""}).
					steps("green", 0.8, "orange", 0.9, "red").decimals(1).empty("no maxmemory"),
				stat("Most big keys on a node", "Critical big keys of the node that has most.", "locale", query{maximum(sum(m.last("big_keys", `severity="critical"`), "target", "node")), ""}).steps("green", 1, "red"),
				table("Nodes", "One row for each node. Skew is against the mean of the other nodes of the same target.", "-Memory",
					broad(targetColumn()), nodeColumn(), label("Scanned at", "address", wide(150)), label("Role", "role", wide(80)), label("Server", "server", wide(80)), label("Version", "version", wide(90)),
					value("Up", "none", fmt.Sprintf("%s * on (target, node) group_left () %s", m.last("node_info"), m.last("up")),
						append(spoken(word{value: "1", text: "yes", colour: "green"}, word{value: "0", text: "no", colour: "red"}), wide(60))...),
					value("Keys", "locale", keys, wide(110)),
					value("Skew of keys", "none", skew(keys), ratio...),
					value("Memory", "bytes", memory, wide(100)),
					value("Memory skew", "none", skew(memory), ratio...),
					value("Of maxmemory", "percentunit", used, append(painted("green", 0.8, "orange", 0.9, "red"), digits(1), wide(120))...),
					value("Big keys", "locale", sum(m.last("big_keys"), "target", "node"), wide(90)),
					value("Their memory", "bytes", bigMemory, wide(115)),
				).size(24, 8),
			}},
			{"Skew", []*panel{
				nodeSeries("Memory skew", "Memory of a node ÷ the mean of its peers. 1 is even; the line is what the rulebook allows.", "none", skew(memory)).limit(1.5).decimals(2).empty(alone),
				nodeSeries("Skew of keys", "Keys of a node ÷ the mean of its peers. Memory alone out of balance points to big keys, both to hash tags.", "none", skew(keys)).limit(1.5).decimals(2).empty(alone),
				nodeSeries("Memory in big keys", "MEMORY USAGE of the big keys as a share of that of all keys of the node: what cannot be spread over nodes.", "percentunit", fmt.Sprintf("%s / (%s > 0)", bigMemory, sum(m.last("memory_bytes"), "target", "node"))),
			}},
			{"Nodes", []*panel{
				nodeSeries("Memory", "used_memory of every node.", "bytes", memory),
				nodeSeries("Keys", "Keys of every node, as of its last complete cycle.", "short", keys),
				nodeSeries("Big keys", "Keys of both tiers on every node.", "short", sum(m.last("big_keys"), "target", "node")),
				nodeSeries("Memory and its limit", "used_memory as a share of maxmemory, where there is a limit.", "percentunit", used).whole().limit(0.9).empty("No node has a maxmemory"),
				nodeSeries("Keys that expire in one minute", "The fullest clock minute of the next 24 hours of every node.", "short", maximum(m.last("expiring_keys_peak"), "target", "node")),
				nodeSeries("Age of the figures", "Time since the last complete cycle. Nodes are compared at different times if this differs much.", "s", fmt.Sprintf("time() - (%s > 0)", m.last("scan_cycle_completed_timestamp_seconds"))),
			}},
		},
	}
}
