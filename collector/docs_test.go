package collector

import (
	"fmt"
	"strings"
	"testing"
)

// TestDocs keeps docs/metrics.md equal to the table.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString(docsHead)
	group := ""
	for _, f := range families() {
		if f.group != group {
			group = f.group
			fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", group)
		}
		labels := strings.Join(f.allLabels(), ", ")
		if labels == "" {
			labels = "–"
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s |\n", namespace, f.name, f.kind, labels, strings.ReplaceAll(f.help, "|", `\|`))
	}
	golden(t, "../docs/metrics.md", []byte(b.String()))
}

const docsHead = `# Metrics

<!-- Generated from collector/families.go by make generate. -->

| label | values |
|---|---|
| target | the name of the deployment, ` + "`--redis.name`" + `; by default its host:port |
| node | host:port of the primary of a shard, also when the scan reads a replica |
| db | db0, db1, … as redis_exporter spells it |
| key_type | string, hash, list, set, zset, stream, module, unknown (TYPE is denied, or the name is over 16 KiB and must not be sent) |
| rule, level | an id of [rules.md](rules.md); mandatory, recommended or advisory |
| severity | warning, critical; a key that breaks both tiers is critical |
| namespace | a policy namespace, or ` + "`default`" + ` |
| command | as INFO commandstats spells it: ` + "`memory\\|usage`, `client\\|no-touch`" + ` |
| encoding | as OBJECT ENCODING spells it, such as listpack; ` + "`other`" + ` is one that is not known here |
| key | an encoded key name, see below |

**Key names.** A printable name is its own label. ` + "`\\`" + ` is written ` + "`\\\\`" + `, the empty name ` + "`\\e`" + `, and every byte that is not UTF-8 or
belongs to a control, format or separator character ` + "`\\xHH`" + `. A label longer than 200 bytes is cut and ends in ` + "`#`" + ` and 32 hex
digits of the SHA-256 of the name. No two names share a label.

**0 and absent.** Results come from complete cycles only: before the first one there are none. A rule that could not be judged
has ` + "`rule_evaluated`" + ` 0 and no ` + "`rule_violations`" + `; where a command is denied, what needs it is absent. A 0 was counted.

**Suspect.** A cycle during which the keyspace was flushed, or that saw over 10 %, and over 100, more or fewer names than the server
counts keys (beyond what expired or was evicted), is published with ` + "`snapshot_suspect`" + ` 1 and raises no event.

**Exact or estimated.** With ` + "`--scan.sample=1`" + ` and ` + "`--scan.detail=1`" + ` every key is looked at in every cycle and all standard errors are 0. ` + "`--scan.detail=auto`" + `
does that up to 131,071 keys a node; beyond, TYPE and PTTL are asked of a fixed sample of the keys and of every key that may be big, so that what needs them (keys
and memory by type, ttl_* rules, ttl_seconds) is an estimate with a standard error. Names, bytes in all and big keys stay exact. With ` + "`--scan.sample=k`" + ` bytes
are estimates, too, and big_keys counts the ones that are known: all of them after k cycles. Estimates are over the names that the cycle saw.

**Baseline.** What the first cycle finds (of each of the k classes, the first that measures it) was there before anyone watched: it is never new. A key that left and comes back within
48 hours is not new either.
`
