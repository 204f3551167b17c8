package main

import "fmt"

// lifetimes is which keys expire when, and which never.
func lifetimes(m metrics) dashboard {
	findings := func(rule string) string { return sum(m.last("rule_violations", fmt.Sprintf("rule=%q", rule))) }
	count := func(title, about, rule, colour string) *panel {
		return stat(title, about, "locale", query{findings(rule), ""}).steps("green", 1, colour).empty("not judged")
	}
	ttl := m.last("ttl_seconds_bucket")
	return dashboard{
		name: "lifetimes", title: "Lifetimes",
		about: "Which keys expire when, which never, and whether too many expire at once.",
		sections: []section{
			{panels: []*panel{
				stat("Keys without TTL", "Keys that never expire, exact from INFO.", "locale", query{sum(m.last("keys_without_ttl")), ""}),
				count("TTL missing", "Keys without a TTL whose namespace is not exempted.", "ttl_missing", "orange"),
				count("TTL too long", "Keys that expire later than the policy allows, 30 days by default.", "ttl_too_long", "orange"),
				count("Expire at once", "Keys in minutes in which more than a tenth of a database's expiring keys expire.", "ttl_clustered", "red"),
				count("Big keys that expire", "Big collections with a TTL on a server that frees them in its main thread: it stands still meanwhile.", "ttl_big_key", "red"),
				count("Permanent and idle", "Keys without a TTL that nobody used for 30 days. Judged on primaries without an LFU policy.", "idle_permanent", "orange"),
			}},
			{"Keys that never expire", []*panel{
				series("Share without TTL", "Share of a database's keys that never expire, exact from INFO. Exemptions are not considered.", "percentunit", query{maximum(m.last("without_ttl_ratio"), "target", "db"), "{{target}} {{db}}"}).whole(),
				series("Keys without TTL", "Keys that never expire, exact from INFO. A steady slope is a leak.", "short", query{sum(m.last("keys_without_ttl"), "target", "db"), "{{target}} {{db}}"}),
				series("Idle time of permanent keys", "How long permanent keys have not been used, by quantiles of a fixed sample. Only where a primary is scanned, under a policy other than LFU.", "s",
					query{quantile("0.5", m.last("idle_seconds_bucket")), "half"},
					query{quantile("0.9", m.last("idle_seconds_bucket")), "90 %"},
					query{quantile("0.99", m.last("idle_seconds_bucket")), "99 %"}).empty("Not known: needs a scanned primary without an LFU policy").logarithmic(),
			}},
			{"Keys that expire", []*panel{
				distribution("Remaining lifetimes", "Keys with a TTL by what is left of it, now.", ttl, []bucket{
					{60, "1 minute"}, {600, "10 minutes"}, {3600, "1 hour"}, {86400, "1 day"}, {604800, "1 week"}, {2592000, "30 days"}, {},
				}),
				series("Lifetime quantiles", "The remaining lifetime that a share of the keys with a TTL stays below.", "s",
					query{quantile("0.1", ttl), "10 %"}, query{quantile("0.5", ttl), "half"}, query{quantile("0.9", ttl), "90 %"}).logarithmic(),
				series("Most keys that expire in one minute", "The fullest clock minute of the next 24 hours. Many keys that expire together stall the server, and then whatever they cached.", "short",
					query{maximum(m.last("expiring_keys_peak"), "target", "db"), "{{target}} {{db}}"}),
				table("Minutes in which most keys expire", "The fullest clock minute of the next 24 hours of each database, and the share of its expiring keys. Spread the lifetimes by a random part.", "-Keys",
					broad(targetColumn()), nodeColumn(), dbColumn(),
					value("Keys", "locale", m.last("expiring_keys_peak"), wide(90)),
					value("Share", "percentunit", fmt.Sprintf("%s / (%s > 0)", m.last("expiring_keys_peak"), m.last("ttl_seconds_count")), append(painted("text", 0.1, "red"), wide(90), digits(1))...),
					value("When", "dateTimeFromNow", m.last("expiring_keys_peak_timestamp_seconds")+" * 1000", wide(130)),
				).size(12, 8).empty("No key expires within 24 hours"),
				table("Largest keys that expire", "When the largest keys and collections go. On servers without lazy freeing that is when they stand still.", "Expires",
					keyColumn("RedisKeyHealthBigKeyWillExpire"),
					value("Expires", "dateTimeFromNow", m.last("top_key_expiry_timestamp_seconds")+" * 1000", wide(130)),
					value("Size", "bytes", fmt.Sprintf("%s and %s", m.last("top_key_memory_bytes"), m.last("top_key_expiry_timestamp_seconds")), wide(95)),
					typeColumn(), targetColumn(), dbColumn(),
				).size(12, 8).empty("None of the largest keys expires"),
			}},
			{"Rules", []*panel{
				table("Rules about lifetimes by namespace", "Keys by the rule they break, and who owns them.", "-Keys",
					ruleColumn(), levelColumn(), namespaceColumn(), ownerColumn(), targetColumn(),
					value("Keys", "locale", m.owned(sum(m.last("rule_violations", `rule=~"ttl_.*|idle_permanent"`), "target", "namespace", "rule", "level")+" > 0", "target", "namespace", "rule", "level"), wide(90)),
				).size(12, 9).empty("No rule is broken"),
				series("Rules about lifetimes", "Keys by the rule they break.", "short", query{sum(m.last("rule_violations", `rule=~"ttl_.*|idle_permanent"`), "rule"), "{{rule}}"}).size(12, 9).steep(),
			}},
		},
	}
}
