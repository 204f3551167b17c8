package policy

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated docs anew")

// TestDocs keeps docs/rules.md equal to the rulebook.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString(docsHead)
	var group Group
	for _, r := range Rules() {
		if r.Group != group {
			group = r.Group
			who := "key"
			if r.AboutServer() {
				who = "server"
			}
			fmt.Fprintf(&b, "\n## %s\n\n| rule | a %s breaks it by | critical | level | options | source |\n|---|---|---|---|---|---|\n", group, who)
		}
		violated, critical := r.Words(r.Defaults())
		fmt.Fprintf(&b, "| [`%s`](rules/%[1]s.md) | %s | %s | %s | %s | %s |\n", r.ID, violated, cmp.Or(critical, "–"), r.Level, cmp.Or(strings.Join(optionList(&r), "; "), "–"), r.Source)
	}
	const path = "../../docs/rules.md"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, []byte(b.String())) {
		t.Error(path + " differs from the rulebook: make generate writes it anew")
	}
}

const docsHead = `# Rules

<!-- Generated from internal/policy/rules.go by make generate. -->

Distilled from five sets of Redis key conventions:
**A** "Redis键值设计" (key and value design) · **B** "Redis注意事项及常见优化" (notes and common optimisations) ·
**C** "避免大 Key 热 Key 实践指南" (avoiding big and hot keys) · **D** "Redis 规范" (Redis conventions) ·
**E** "键值设计 / 命令使用 / 客户端使用" (key and value design, use of commands, use of clients).
"Ours" marks a figure that no document gives.

Levels follow the documents: *mandatory* (强制, 必须, 禁止), *recommended* (推荐, 建议, 不建议), *advisory* (a hint).
A key counts once for a rule, whatever the tier. The rules under "big keys" decide what a big key is: it counts there once, at its
worst severity. A rule is judged on a key only when the facts that it needs are known; where a command is denied, the rules that
need it are not evaluated. A policy file changes levels, limits and exemptions: [policy.md](policy.md). Each rule has a page: why it is there, an example, how to fix a key, how to exempt it.

**On MEMORY USAGE.** A advises against calling it on every key; C recommends it, in the place of DEBUG OBJECT. It is called here, on
every key or on one in so many (--scan.sample), because it is the cheapest and least intrusive probe that there is. With its default of five samples it
took 4 to 36 µs even on collections of two million elements (Redis 7.0 and 8.0, Valkey 9.1). It leaves no trace: neither LRU nor LFU change, no
keyspace hit is counted, and an expired key is not deleted by it. DEBUG OBJECT serialises the whole value, and Redis 7.0 and later refuse it by default.
What it costs in all is bounded: --scan.max-duty limits the share of a core that the whole scan takes, and a replica can be scanned instead.
The price is that sizes of collections are estimates: it looks at the first elements only, so one huge element behind many small ones is
not seen. SAMPLES 0 would see it and blocks the server for up to seconds (1.5 s for a hash of two million fields); it is never used. A stream
with hundreds of thousands of consumers takes 8 to 28 ms whatever the samples (Redis 7 and 8; not Valkey since 8.1).

**On lengths.** STRLEN, LLEN, HLEN, SCARD, ZCARD and XLEN reset a key's idle time on servers without CLIENT NO-TOUCH (before Redis 7.2).
They are sent only to candidates: keys whose MEMORY USAGE says that they may break a rule.

**On servers.** The rules about servers and commands are judged once a cycle, when it is complete, and on a primary alone: of a replica none of them is evaluated.
Calls are the server's own statistics, whoever called; refused calls do not count. After a restart, or CONFIG RESETSTAT, calls since then are known, but that there were
none is not: the rule is not evaluated until the next cycle. What counts as a business is the first segment of a name that is not id-like and not the last.
`
