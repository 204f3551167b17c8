package main

import (
	"fmt"
	"slices"
)

// bigKeys names the keys that are too large, and those that are used too much.
func bigKeys(m metrics) dashboard {
	critical, warning := `severity="critical"`, `severity="warning"`
	keyLabels := m.labels("top_key_memory_bytes")
	withOwner := func(name string) string { return m.owned(m.last(name), m.labels(name)...) }
	// The lists differ: one tells of the keys of another only what it has.
	of := func(list, expr string) string { return fmt.Sprintf("%s and %s", expr, m.last(list)) }
	since := maximum(m.selector("big_key_first_seen_timestamp_seconds"), keyLabels...) + " * 1000"
	expiry := m.last("top_key_expiry_timestamp_seconds") + " * 1000"

	topKeys := func(title, about, order string, list string, first, second column) *panel {
		return table(title, about, order,
			keyColumn("RedisKeyHealthBigKeysPresent"), first, second, typeColumn(),
			value("Growth", "bytes", of(list, m.growth("top_key_memory_bytes")), wide(95)),
			value("Expires", "dateTimeFromNow", of(list, expiry), wide(120), absent("never")),
			value("New since", "dateTimeFromNow", of(list, since), wide(150)),
			targetColumn(), nodeColumn(), dbColumn(), namespaceColumn(), ownerColumn(),
		).size(24, 10)
	}

	return dashboard{
		name: "big-keys", title: "Big keys",
		about: "Which keys are too large or too hot, since when, and how they grow. Names of keys lead to their remedies.",
		sections: []section{
			{panels: []*panel{
				stat("Critical", "Keys that break a limit of the critical tier.", "locale", query{sum(m.last("big_keys", critical)), ""}).steps("green", 1, "red"),
				stat("Warning", "Keys that break a limit of the warning tier only.", "locale", query{sum(m.last("big_keys", warning)), ""}).steps("green", 1, "orange"),
				stat("Their memory", "MEMORY USAGE of all big keys.", "bytes", query{sum(m.last("big_keys_memory_bytes")), ""}),
				stat("Share of all memory", "MEMORY USAGE of the big keys as a share of that of all keys.", "percentunit",
					query{fmt.Sprintf("%s / (%s > 0)", sum(m.last("big_keys_memory_bytes")), sum(m.last("memory_bytes"))), ""}).decimals(1),
				stat("New", "Keys that became big within the time range.", "locale", query{sum(m.increase("new_big_keys_total", "$__range")), ""}).steps("green", 0.5, "red"),
				stat("Resolved", "Keys that left their tier within the time range: shrank, were deleted or expired.", "locale", query{sum(m.increase("resolved_big_keys_total", "$__range")), ""}),
				newBigKeys(m, "What became big since the exporter first looked, newest first: at most 50 keys a node. The key leads to its remedy.").size(24, 8),
				topKeys("Largest keys", "The largest keys of each node by MEMORY USAGE. Growth is over the least size within the time range. No expiry: the key stays for ever.", "-Size",
					"top_key_memory_bytes",
					value("Size", "bytes", withOwner("top_key_memory_bytes"), wide(95)),
					value("Elements", "locale", of("top_key_memory_bytes", m.last("top_key_elements")), wide(100))),
				topKeys("Collections with most elements", "The collections of each node that have most elements. Growth is of their size, where they are among the largest too.", "-Elements",
					"top_key_elements",
					value("Elements", "locale", withOwner("top_key_elements"), wide(100)),
					value("Size", "bytes", of("top_key_elements", m.last("top_key_memory_bytes")), wide(95))),
			}},
			{"Over time", []*panel{
				series("Big keys by tier", "Keys that break a limit, each once, at its worst tier. A known big key stays counted until a cycle finds it gone.", "short", query{sum(m.last("big_keys"), "severity"), "{{severity}}"}).bySeverity(),
				series("Big keys by type", "Keys of both tiers by type.", "short", query{sum(m.last("big_keys"), "key_type") + " > 0", "{{key_type}}"}).stacked().byType(),
				series("Rules about big keys", "Keys by the rule they break, both tiers. A key may break several.", "short", query{sum(m.last("rule_violations", `rule=~"big_.*|many_elements"`), "rule"), "{{rule}}"}),
				series("Came and went", "Keys that became big, and keys that were big and left their tier.", "short",
					query{sum(m.increase("new_big_keys_total", "$__rate_interval")), "new"},
					query{sum(m.increase("resolved_big_keys_total", "$__rate_interval")), "resolved"}).drawn("bars").colours("new", "red", "resolved", "green"),
				series("Largest keys", "The ten largest keys. A slope is a key that nobody trims.", "bytes", query{"topk(10, " + maximum(m.selector("top_key_memory_bytes"), "target", "db", "key") + ")", "{{key}} ({{target}} {{db}})"}).size(16, 8).listed(),
			}},
			{"Sizes", []*panel{
				distribution("Keys by size", "Keys by MEMORY USAGE, now. The limits are those of the rulebook, among others.", m.last("key_memory_bytes_bucket"), []bucket{
					{128, "128 B"},
					{512, "512 B"},
					{1024, "1 KiB"},
					{4096, "4 KiB"},
					{10240, "10 KiB"},
					{102400, "100 KiB"},
					{1048576, "1 MiB"},
					{5242880, "5 MiB"},
					{10485760, "10 MiB"},
					{104857600, "100 MiB"},
					{},
				}).size(8, 10),
				distribution("Collections by elements", "Collections by their number of elements, now. Those too small to be counted are in the first bar.", m.last("key_elements_bucket"), []bucket{
					{1000, "1,000"}, {5000, "5,000"}, {10000, "10,000"}, {100000, "100,000"}, {1000000, "1,000,000"}, {},
				}).size(8, 10),
				series("Size quantiles", "The size that a share of the keys stays below.", "bytes",
					query{quantile("0.5", m.last("key_memory_bytes_bucket")), "half"},
					query{quantile("0.9", m.last("key_memory_bytes_bucket")), "90 %"},
					query{quantile("0.99", m.last("key_memory_bytes_bucket")), "99 %"},
					query{quantile("0.999", m.last("key_memory_bytes_bucket")), "99.9 %"}).size(8, 10).logarithmic(),
			}},
			{"Structure", []*panel{
				brokenRules(m, "Rules about structure", "Keys that would be cheaper in another form.", `rule=~"loose_encoding|json_string|scattered_fields"`).size(8, 9),
				table("Encodings", "Keys by type and encoding, estimated from a fixed sample. hashtable and skiplist cost several times what listpack does.", "-Keys",
					typeColumn(), label("Encoding", "encoding", wide(140)),
					value("Keys", "locale", sum(m.last("keys_by_encoding"), "key_type", "encoding")+" > 0", gauged("blue")...),
				).size(16, 9),
			}},
			{"Hot keys", []*panel{
				table("Hottest keys", "Keys with the highest LFU counters seen: 255 is the most there is, from 200 on a key is hot. Needs an LFU eviction policy and a scanned primary.", "-LFU counter",
					keyColumn("RedisKeyHealthHotBigKey"), value("LFU counter", "none", m.owned(m.last("hot_key_frequency"), m.labels("hot_key_frequency")...), append(painted("text", 200, "red"), wide(120))...),
					typeColumn(), targetColumn(), nodeColumn(), dbColumn(), namespaceColumn(), ownerColumn(),
				).size(16, 8).empty("No counters: they need an LFU eviction policy"),
				brokenRules(m, "Rules about hot keys", "Keys that are used very often, and those of them that are big at once.", `rule=~"hot_.*"`),
			}},
			{"Keys watched by policy", []*panel{
				table("Watched keys", "The keys that the policy names under watch, whatever their size.", "-Size",
					keyColumn("RedisKeyHealthBigKeysPresent"),
					value("Size", "bytes", m.owned(m.last("watched_key_memory_bytes"), slices.Clone(keyLabels)...), wide(95)),
					value("Elements", "locale", m.last("watched_key_elements"), wide(90)),
					value("Growth", "bytes", m.growth("watched_key_memory_bytes"), wide(95)),
					typeColumn(), targetColumn(), dbColumn(), namespaceColumn(),
				).size(16, 8).empty("The policy watches no key, or none of them exists"),
				series("Watched keys over time", "MEMORY USAGE of the keys that the policy names.", "bytes", query{maximum(m.selector("watched_key_memory_bytes"), "target", "db", "key"), "{{key}}"}).
					empty("The policy watches no key, or none of them exists"),
			}},
		},
	}
}
