package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

var update = flag.Bool("update", false, "write the generated files anew")

// TestPolicyFile reads all that a file can say.
func TestPolicyFile(t *testing.T) {
	p, err := parsePolicy("p.yml", []byte(`# a comment
rules:
  big_string: {warning: 10KiB, critical: 5MiB}
  name_format: {min_segments: 3, level: mandatory}
  name_too_long: {enabled: false}
  name_unknown_prefix: {allowed_prefixes: [order, 010, no, "a b"]}
  ttl_too_long: {max: 30d}
namespaces:
  - name: sessions
    match: "sess:*"
    db: [0, 3]
    owner: identity-team
    rules:
      ttl_missing: {level: mandatory}
  - name: config
    match:
      - 'cfg:*'
      - "/^feature:\\d+$/"
    db: 1
    rules:
      ttl_missing: {exempt: true, approved_by: platform-review-42}
      name_too_long:
        enabled: true
        max_bytes: 100
watch:
  - queue:mail
  - {db: 3, name: "a\nb"}
  - !!binary /wA=
  - ""
`))
	if err != nil {
		t.Fatal(err)
	}
	mandatory, on, off := policy.Mandatory, true, false
	option := func(line int, name string, n int64, words ...string) policy.OptionSpec {
		return policy.OptionSpec{Name: name, Value: policy.Value{Number: n, Words: words}, Where: fmt.Sprint("p.yml:", line)}
	}
	want := policy.Spec{
		Rules: []policy.RuleSpec{
			{ID: "big_string", Options: []policy.OptionSpec{option(3, "warning", 10<<10), option(3, "critical", 5<<20)}, Where: "p.yml:3"},
			{ID: "name_format", Level: &mandatory, Options: []policy.OptionSpec{option(4, "min_segments", 3)}, Where: "p.yml:4"},
			{ID: "name_too_long", Enabled: &off, Where: "p.yml:5"},
			{ID: "name_unknown_prefix", Options: []policy.OptionSpec{option(6, "allowed_prefixes", 0, "order", "010", "no", "a b")}, Where: "p.yml:6"},
			{ID: "ttl_too_long", Options: []policy.OptionSpec{option(7, "max", int64(30*24*time.Hour))}, Where: "p.yml:7"},
		},
		Namespaces: []policy.NamespaceSpec{
			{
				Name: "sessions", Match: []policy.Pattern{{Text: "sess:*", Where: "p.yml:10"}}, DBs: []int{0, 3}, Owner: "identity-team", Where: "p.yml:9",
				Rules: []policy.RuleSpec{{ID: "ttl_missing", Level: &mandatory, Where: "p.yml:14"}},
			},
			{
				Name: "config", Match: []policy.Pattern{{Text: "cfg:*", Where: "p.yml:17"}, {Text: `/^feature:\d+$/`, Where: "p.yml:18"}}, DBs: []int{1}, Where: "p.yml:15",
				Rules: []policy.RuleSpec{
					{ID: "ttl_missing", Exempt: true, ApprovedBy: "platform-review-42", Where: "p.yml:21"},
					{ID: "name_too_long", Enabled: &on, Options: []policy.OptionSpec{option(24, "max_bytes", 100)}, Where: "p.yml:22"},
				},
			},
		},
		Watch: []policy.WatchedKey{
			{Name: "queue:mail", Where: "p.yml:26"}, {DB: 3, Name: "a\nb", Where: "p.yml:27"}, {Name: "\xff\x00", Where: "p.yml:28"}, {Where: "p.yml:29"},
		},
	}
	if got, want := fmt.Sprintf("%+v", deep(p.Spec())), fmt.Sprintf("%+v", deep(want)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// deep replaces pointers by what they point at, for people and to compare.
func deep(s policy.Spec) any {
	rules := func(specs []policy.RuleSpec) (flat []string) {
		for _, r := range specs {
			text := fmt.Sprintf("%s %v %q %+v %s", r.ID, r.Exempt, r.ApprovedBy, r.Options, r.Where)
			if r.Level != nil {
				text += " level " + r.Level.String()
			}
			if r.Enabled != nil {
				text += fmt.Sprint(" enabled ", *r.Enabled)
			}
			flat = append(flat, text)
		}
		return flat
	}
	all := []any{rules(s.Rules)}
	for _, n := range s.Namespaces {
		all = append(all, n.Name, n.Match, n.DBs, n.Owner, n.Where, rules(n.Rules))
	}
	return append(all, fmt.Sprintf("%+v", s.Watch))
}

// TestBadPolicyFile: each mistake is an error of its own, with the line and what
// is allowed. "<" stands for the file's name and a colon.
func TestBadPolicyFile(t *testing.T) {
	namespace := func(lines string) string { return "namespaces:\n- name: n\n  match: a\n" + lines }
	for _, c := range []struct{ about, content, want string }{
		{"empty", "", "<1: is empty; {} stands for the defaults"},
		{"comments only", "# rules:\n# big_string: {}\n", "<1: is empty"},
		{"null", "~\n", "<1: a policy file is a mapping with the keys rules, namespaces, watch; this is nothing"},
		{"list", "\n- rules\n", "<2: a policy file is a mapping with the keys rules, namespaces, watch; this is a list"},
		{"word", "rules", `<1: a policy file is a mapping with the keys rules, namespaces, watch; this is "rules"`},
		{"unknown key", "rules: {}\nrule: {}\n", `<2: unknown key "rule" in a policy file; allowed are rules, namespaces, watch`},
		{"key twice", "rules: {}\n\nrules: {}\n", `<3: "rules" is there twice, first in line 1`},
		{"odd key", "[a]: 1\n", "<1: a key must be a word; this is a list"},
		{"two documents", "rules: {}\n---\nrules: {}\n", "<2: a second document begins; one is allowed"},
		{"anchor", "rules:\n  ttl_missing: &x {}\n", "<2: anchors, aliases and merge keys are not allowed"},
		{"alias", "rules: &x {}\nwatch: *x\n", "<1: anchors, aliases"},
		{"unknown alias", "rules: {}\nwatch: *x\n", "<2: anchors, aliases"},
		{"merge key", "rules:\n  <<: {}\n", "<2: anchors, aliases and merge keys"},
		{"depth", "rules: " + strings.Repeat("[", 30) + strings.Repeat("]", 30), "<1: nests too deep"},
		{"great depth", "rules: " + strings.Repeat("[", 20000), "<1: exceeded max depth"},
		{"tab", "rules:\n\tttl_missing: {}\n", "<2: found character that cannot start any token"},
		{"unclosed brace", "rules:\n  ttl_missing: {level: mandatory\nwatch: []\n", "<2: did not find expected ',' or '}'"},
		{"unclosed brace at once", "{", "<1: did not find expected node content"},
		{"unclosed quote", "rules: {}\nwatch: [\"a]\n", "<2: found unexpected end of stream"},
		{"list in a mapping", "rules: {}\n- a\n", "<2: did not find expected key"},
		{"second colon", "rules: a: b\n", "<1: mapping values are not allowed in this context"},
		{"escape", "rules: {}\nwatch: [\"\\z\"]\n", "<2: found unknown escape character"},
		{"no UTF-8", "rules: {}\nwatch: [\xff]\n", "<2: is no UTF-8"},
		{"control character", "rules: {}\nwatch: [\x01]\n", `<2: holds the control character U+0001; write it in double quotes, as "\x01"`},
		{"binary", "\x00\x01\x02", "<1: holds the control character U+0000"},

		{"rules: nothing", "rules:\n", "<1: rules is a mapping of rules, such as big_string: {warning: 10KiB}; this is nothing"},
		{"rules: list", "rules: [ttl_missing]\n", "<1: rules is a mapping of rules"},
		{"unknown rule", "rules:\n  big_strings: {}\n", `<2: there is no rule "big_strings"; the rules are name_format, `},
		{"rule: nothing", "rules:\n  big_string:\n", "<2: big_string is a mapping with the keys level, enabled, warning, critical; this is nothing"},
		{"rule: word", "rules:\n  ttl_missing: mandatory\n", `<2: ttl_missing is a mapping with the keys level, enabled; this is "mandatory"`},
		{"rule twice", "rules:\n  ttl_missing: {}\n  ttl_missing: {}\n", `<3: "ttl_missing" is there twice, first in line 2`},
		{"unknown option", "rules:\n  big_string:\n    warnings: 1\n", `<3: unknown key "warnings" in big_string; allowed are level, enabled, warning, critical`},
		{"level", "rules:\n  ttl_missing: {level: must}\n", `<2: level is one of mandatory, recommended, advisory, not "must"`},
		{"level: list", "rules:\n  ttl_missing: {level: [mandatory]}\n", "<2: level is one of mandatory, recommended, advisory; this is a list"},
		{"enabled", "rules:\n  ttl_missing: {enabled: yes}\n", `<2: enabled is true or false, not "yes"`},
		{"exempt everywhere", "rules:\n  ttl_missing: {exempt: true}\n", `<2: unknown key "exempt" in ttl_missing; allowed are level, enabled`},
		{"size", "rules:\n  big_string: {warning: 10KB}\n", `<2: warning: "10KB" is not a size above 0 in bytes, such as 10KiB, 5MiB or 10240`},
		{"size: nothing", "rules:\n  big_string: {warning: }\n", "<2: warning is a size above 0 in bytes, such as 10KiB, 5MiB or 10240; this is nothing"},
		{"count", "rules:\n  name_format: {min_segments: three}\n", `<2: min_segments: "three" is not a whole number from 1 to 20`},
		{"count too large", "rules:\n  name_format: {min_segments: 21}\n", `<2: min_segments: "21" is not a whole number from 1 to 20`},
		{"duration", "rules:\n  ttl_too_long: {max: 30}\n", `<2: max: "30" is not a duration of at least 1s, such as 90s, 1h30m or 30d`},
		{"words: one", "rules:\n  name_unknown_prefix: {allowed_prefixes: order}\n", `<2: allowed_prefixes is a list of at most 1000 words of 1 to 256 bytes; this is "order"`},
		{"words: nothing in it", "rules:\n  name_unknown_prefix: {allowed_prefixes: [a, ~]}\n", "<2: allowed_prefixes is a list of at most 1000 words of 1 to 256 bytes; this is nothing"},
		{"words: empty", "rules:\n  name_unknown_prefix: {allowed_prefixes: [a, '']}\n", "<2: name_unknown_prefix: allowed_prefixes: [a, ] is not a list of at most 1000 words"},
		{"tag", "rules:\n  big_string: {warning: !size 10KiB}\n", "<2: warning is a size above 0 in bytes, such as 10KiB, 5MiB or 10240; the tag !size is not allowed"},
		{"tiers", "rules:\n  big_string:\n    warning: 6MiB\n", "<3: big_string: warning 6MiB is above critical 5MiB; set both"},

		{"namespaces: mapping", "namespaces: {n: a}\n", "<1: namespaces is a list of mappings with name and match; this is a mapping"},
		{"namespace: word", "namespaces:\n- n\n", `<2: a namespace is a mapping with the keys name, match, db, owner, rules; this is "n"`},
		{"namespace: unknown key", namespace("  matches: a\n"), `<4: unknown key "matches" in a namespace; allowed are name, match, db, owner, rules`},
		{"no name", "namespaces:\n- match: a\n", "<2: the name of a namespace must be 1 to 64 bytes of printable UTF-8"},
		{"name: list", "namespaces:\n- name: []\n", "<2: name is a word, the value of the label namespace; this is a list"},
		{"reserved", "namespaces:\n- name: default\n  match: a\n", `<2: the namespace "default" is reserved`},
		{"name twice", namespace("- name: n\n  match: b\n"), `<4: the namespace "n" is there twice`},
		{"no match", "namespaces:\n- name: n\n", `<2: the namespace "n" needs a match: a glob such as "sess:*"`},
		{"match: nothing", "namespaces:\n- name: n\n  match:\n", "<3: match is a glob, a regular expression between slashes, or a list of these; this is nothing"},
		{"match: empty list", "namespaces:\n- name: n\n  match: []\n", `<2: the namespace "n" needs a match`},
		{"match: list of lists", "namespaces:\n- name: n\n  match: [[a]]\n", "<3: match is a glob, a regular expression between slashes, or a list of these; this is a list"},
		{"glob", "namespaces:\n- name: n\n  match:\n  - ok\n  - 'a[b'\n", `<5: match: "a[b": a [ is not closed`},
		{"regexp", "namespaces:\n- name: n\n  match: '/^(/'\n", "<3: match: \"/^(/\": error parsing regexp: missing closing ): `^(`; the syntax is RE2's"},
		{"db", namespace("  db: [0, x]\n"), `<4: db is a number of a database, 0 or more, not "x"`},
		{"db: negative", namespace("  db: -1\n"), `<4: db is a number of a database, 0 or more, not "-1"`},
		{"db: empty", namespace("  db: []\n"), "<4: db is a list of numbers of databases, such as [0, 3]; this is empty"},
		{"owner", namespace("  owner: {}\n"), "<4: owner is a text, such as the name of a team; this is a mapping"},
		{"owner: newline", namespace("  owner: \"a\\nb\"\n"), `<2: the owner of "n" must be at most 200 bytes of printable UTF-8`},
		{"exempt without approval", namespace("  rules:\n    ttl_missing: {exempt: true}\n"), "<5: ttl_missing: an exemption needs approved_by"},
		{"approval without exemption", namespace("  rules:\n    ttl_missing: {approved_by: me}\n"), "<5: ttl_missing: approved_by goes with exempt: true"},
		{"off in a namespace", namespace("  rules:\n    ttl_missing: {enabled: false}\n"), "<5: ttl_missing: a namespace may switch a rule on"},
		{"unknown rule in a namespace", namespace("  rules:\n    ttl: {}\n"), `<5: there is no rule "ttl"`},
		{"201 namespaces", "namespaces:\n" + numbered(201, "- {name: n%d, match: a}\n"), "<202: a policy has at most 200 namespaces"},
		{"1001 patterns", "namespaces:\n- name: n\n  match:\n" + numbered(1001, "  - a%d\n"), "<1004: match: a policy has at most 1000 patterns"},
		{"101 expressions", "namespaces:\n- name: n\n  match:\n" + numbered(101, "  - /a%d/\n"), "<104: match: a policy has at most 1000 patterns, 100 of them regular expressions"},

		{"watch: word", "watch: a\n", `<1: watch is a list of names of keys; this is "a"`},
		{"watch: list", "watch:\n- [a]\n", "<2: a watched key is a mapping with the keys db, name; this is a list"},
		{"watch: nothing", "watch:\n-\n", "<2: watch lists names of keys, or mappings such as {db: 3, name: queue}; this is nothing"},
		{"watch: no name", "watch:\n- {db: 3}\n", "<2: a watched key needs a name"},
		{"watch: unknown key", "watch:\n- {key: a}\n", `<2: unknown key "key" in a watched key; allowed are db, name`},
		{"watch: base64", "watch:\n- !!binary '?'\n", "<2: watch lists names of keys, or mappings such as {db: 3, name: queue}; this is no base64"},
		{"watched twice", "watch:\n- a\n- {db: 0, name: a}\n", `<3: watch: "a" of db0 is there twice`},
		{"101 watched", "watch:\n" + numbered(101, "- a%d\n"), "<102: watch: takes at most 100 keys"},
	} {
		t.Run(c.about, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "policy.yml")
			if err := os.WriteFile(name, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := LoadPolicy(name)
			if want := strings.Replace(c.want, "<", name+":", 1); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
			if p != nil {
				t.Error("there is a policy, too")
			}
		})
	}
	for about, name := range map[string]string{"missing": "/none", "folder": t.TempDir(), "device": "/dev/zero", "huge": write(t, strings.Repeat("#", maxPolicyBytes+1))} {
		if _, err := LoadPolicy(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", about, err)
		}
	}
}

func numbered(n int, line string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line, i)
	}
	return b.String()
}

// TestDefaultPolicy keeps policies/default.yml equal to the rulebook.
func TestDefaultPolicy(t *testing.T) {
	p, err := LoadPolicy("")
	if err != nil {
		t.Fatal(err)
	}
	want, err := FormatPolicy(p)
	if err != nil {
		t.Fatal(err)
	}
	want = append([]byte(defaultHead), want...)
	const path = "../../policies/default.yml"
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error(path + " differs from the rulebook: make generate writes it anew")
	}
	if p, err = LoadPolicy(path); err != nil {
		t.Fatal(err)
	}
	again, err := FormatPolicy(p)
	if err != nil || !bytes.HasSuffix(want, again) {
		t.Errorf("it makes another policy than the defaults (%v):\n%s", err, again)
	}
}

const defaultHead = `# The defaults of every rule, each with what breaks it: what holds without a policy
# file, or for what a policy file does not say. docs/policy.md explains the format.
# Generated from internal/policy/rules.go by make generate.
`

// TestExamplePolicies: each does what it says.
func TestExamplePolicies(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		file, name string
		typ        keyspace.Type
		bytes, n   int64
		ttl        time.Duration
		namespace  string
		broken     []string
		big        policy.Severity
	}{
		{"strict", "order:item:1", keyspace.String, 5000, 4096, day, "default", nil, policy.Healthy},
		{"strict", "order:1", keyspace.String, 5000, 4097, 8 * day, "default", []string{"name_format", "big_string", "ttl_too_long"}, policy.Warning},
		{"strict", "shop:item:1", keyspace.String, 9, 9, keyspace.NoTTL, "default", []string{"name_unknown_prefix", "ttl_missing"}, policy.Healthy},
		{"strict", "ugc:post:1", keyspace.Hash, 20_000, 501, day, "default", []string{"many_elements", "ttl_big_key"}, policy.Warning},
		{"strict", "ugc:post:1", keyspace.Hash, 20_000, 5000, day, "default", []string{"many_elements", "ttl_big_key"}, policy.Critical},
		{"strict", "config:a:b", keyspace.Hash, 200, 5, keyspace.NoTTL, "config", nil, policy.Healthy},
		{"cache", "page:1", keyspace.String, 100, 10, day, "default", nil, policy.Healthy},
		{"cache", "page:1", keyspace.String, 100, 10, day + time.Second, "default", []string{"ttl_too_long"}, policy.Healthy},
		{"cache", "page:1", keyspace.String, 100, 10, keyspace.NoTTL, "default", []string{"ttl_missing"}, policy.Healthy},
		{"cache", "sess:1", keyspace.String, 100, 10, 7 * day, "sessions", nil, policy.Healthy},
		{"cache", "{sess:1}:cart", keyspace.String, 100, 10, 8 * day, "sessions", []string{"ttl_too_long"}, policy.Healthy},
		{"cache", "sess:1", keyspace.String, 100, 10, keyspace.NoTTL, "sessions", []string{"ttl_missing"}, policy.Healthy},
		{"queue", "queue:mail", keyspace.List, 10 << 20, 100_000, keyspace.NoTTL, "queues", nil, policy.Healthy},
		{"queue", "mail:queue", keyspace.List, 10 << 20, 100_001, keyspace.NoTTL, "queues", []string{"many_elements"}, policy.Warning},
		{"queue", "stream:orders", keyspace.Stream, 1 << 30, 1000, keyspace.NoTTL, "queues", []string{"big_collection"}, policy.Critical},
		{"queue", "stream:orders:1", keyspace.Stream, 100_000, 1001, keyspace.NoTTL, "default", []string{"many_elements", "ttl_missing"}, policy.Warning},
	} {
		p, err := LoadPolicy("../../policies/" + c.file + ".yml")
		if err != nil {
			t.Fatal(err)
		}
		k := keyspace.Key{
			Name: c.name, NameBytes: int64(len(c.name)), Type: c.typ, Bytes: c.bytes, Length: c.n, TTL: c.ttl,
			Known: keyspace.FactBytes | keyspace.FactType | keyspace.FactTTL | keyspace.FactLength,
		}
		v := p.Check(&k)
		var broken []string
		for i, r := range p.Rules() {
			if v.Rules>>i&1 == 1 {
				broken = append(broken, r.ID)
			}
		}
		if namespace := p.Namespaces()[v.Namespace].Name; namespace != c.namespace || v.Big != c.big || !slices.Equal(slices.Sorted(slices.Values(broken)), slices.Sorted(slices.Values(c.broken))) {
			t.Errorf("%s: %+v: in %s, %v, broken %v", c.file, c, namespace, v.Big, broken)
		}
	}
	level := func(file, namespace, rule string) policy.Level {
		p, err := LoadPolicy("../../policies/" + file + ".yml")
		if err != nil {
			t.Fatal(err)
		}
		n := slices.IndexFunc(p.Namespaces(), func(n policy.Namespace) bool { return n.Name == namespace })
		r, err := policy.Find(p.Rules(), rule)
		if err != nil {
			t.Fatal(err)
		}
		return p.Settings(n, r).Level
	}
	for _, c := range [][3]string{{"strict", "default", "ttl_missing"}, {"strict", "default", "name_format"}, {"cache", "default", "ttl_missing"}, {"cache", "sessions", "ttl_too_long"}} {
		if l := level(c[0], c[1], c[2]); l != policy.Mandatory {
			t.Errorf("%v is %v", c, l)
		}
	}
	p, err := LoadPolicy("../../policies/queue.yml")
	if err != nil || len(p.Watch()) != 3 || p.Watch()[2].DB != 1 || p.Watch()[2].Name != "stream:orders" {
		t.Errorf("%v, %+v", err, p.Watch())
	}
	files, err := filepath.Glob("../../policies/*.yml")
	if err != nil || len(files) != 4 {
		t.Errorf("%v, %v: an example without a test?", files, err)
	}
}

// FuzzPolicyFile: nothing panics or takes long, an error names a line, and what
// loads is written as a file that loads as the same policy.
func FuzzPolicyFile(f *testing.F) {
	files, err := filepath.Glob("../../policies/*.yml")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add([]byte("namespaces: [{name: n, match: ['/^a/', 'b[c-d]*'], db: [1], rules: {ttl_missing: {exempt: true, approved_by: x}}}]\nwatch: [!!binary /w==, {db: 1, name: \"\\x01\"}]"))
	f.Add([]byte("rules: {big_string: {warning: 1, critical: 2TiB}, ttl_too_long: {max: 1d1s, level: advisory}}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > 10_000 {
			t.Skip("more of the same")
		}
		start := time.Now()
		p, err := parsePolicy("p.yml", content)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "p.yml:") {
				t.Errorf("no place: %v", err)
			}
			return
		}
		text, err := FormatPolicy(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parsePolicy("p.yml", text)
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		second, err := FormatPolicy(again)
		if err != nil || !bytes.Equal(text, second) || again.BigKeys() != p.BigKeys() {
			t.Errorf("%v\n%s\nreads as\n%s", err, text, second)
		}
		k := keyspace.Key{Name: "a:b", NameBytes: 3}
		if p.Check(&k) != again.Check(&k) {
			t.Error("they judge differently")
		}
	})
}

// TestPoliciesInDocs: what the documentation shows as a policy is one. Pages about
// rules that are not in the rulebook yet are left out.
func TestPoliciesInDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/rules/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	pages = slices.DeleteFunc(pages, func(page string) bool {
		_, err := policy.Find(policy.Rules(), strings.TrimSuffix(filepath.Base(page), ".md"))
		return err != nil
	})
	examples := 0
	for _, page := range append(pages, "../../docs/policy.md") {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(content), "\n```yaml\n")[1:] {
			examples++
			example, _, _ := strings.Cut(block, "```")
			if _, err := parsePolicy(filepath.Base(page), []byte(example)); err != nil {
				t.Errorf("%v in\n%s", err, example)
			}
		}
	}
	if examples < 10 {
		t.Errorf("%d examples", examples)
	}
}
