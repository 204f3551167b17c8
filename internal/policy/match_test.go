package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
)

func TestGlob(t *testing.T) {
	for pattern, c := range map[string]struct{ yes, no []string }{
		"sess:*":     {[]string{"sess:", "sess:1", "sess:*", "sess:\xff\n"}, []string{"", "sess", "xsess:1", "Sess:1"}},
		"a":          {[]string{"a"}, []string{"", "aa", "b"}},
		"*":          {[]string{"", "a", "\x00"}, nil},
		"**a**":      {[]string{"a", "xax"}, []string{"", "b"}},
		"?":          {[]string{"a", "\xff", "*"}, []string{"", "ab", "ä"}},
		"a?c*":       {[]string{"abc", "a?cd"}, []string{"ac", "abd"}},
		"*:cart":     {[]string{":cart", "u:1:cart", ":cart:cart"}, []string{"cart", "u:cart:1"}},
		"a*b*c":      {[]string{"abc", "axbxbxc", "abcbc"}, []string{"ab", "acb", "abcx"}},
		"[abc]x":     {[]string{"ax", "cx"}, []string{"x", "dx", "ab"}},
		"[^abc]x":    {[]string{"dx", "^x"}, []string{"ax", "x"}},
		"[a-c0-9]":   {[]string{"a", "b", "c", "5"}, []string{"d", "-", ""}},
		"[-a]":       {[]string{"-", "a"}, []string{"b"}},
		`[\]\-]`:     {[]string{"]", "-"}, []string{`\`, "a"}},
		`\*\?\[\\x*`: {[]string{`*?[\x`, `*?[\xy`}, []string{`*?[x`, "ab[x"}},
		`\/a/`:       {[]string{"/a/"}, []string{"a", `\/a/`}},
		"/a":         {[]string{"/a"}, []string{"a"}},
		`a\bc`:       {[]string{"abc"}, []string{`a\bc`}},
		"{a}*":       {[]string{"{a}:1"}, []string{"a"}},
		`/^s:\d+$/`:  {[]string{"s:1", "s:12"}, []string{"s:", "s:1a", "xs:1", "s:1\n"}},
		"/bc/":       {[]string{"abcd", "bc"}, []string{"b"}},
		"/(?i)^ab/":  {[]string{"AB", "abc"}, []string{"b"}},
		"/^(a|b):/":  {[]string{"a:", "b:1"}, []string{"c:"}},
		"/^a|^b/":    {[]string{"a", "b1"}, []string{"c"}},
		"/^\ufffd$/": {[]string{"\xff", "\ufffd"}, []string{"a"}},
	} {
		p, err := New(Spec{Namespaces: []NamespaceSpec{{Name: "n", Match: globs(pattern)}}})
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		for want, names := range map[bool][]string{true: c.yes, false: c.no} {
			for _, name := range names {
				k := named(name)
				if got := p.NamespaceOf(&k) == 1; got != want {
					t.Errorf("%s matches %q: %v", pattern, name, got)
				}
			}
		}
	}
}

// TestFirstNamespaceWins: also where a later one says more of the name, or is
// cheaper to decide.
func TestFirstNamespaceWins(t *testing.T) {
	p, err := New(Spec{Namespaces: []NamespaceSpec{
		{Name: "numbers", Match: globs(`/^\w+:\d+$/`)},
		{Name: "db3", Match: globs("sess:*"), DBs: []int{3, 7}},
		{Name: "admin", Match: globs("sess:admin:*", "root:*")},
		{Name: "all", Match: globs("sess:*")},
		{Name: "late", Match: globs("sess:admin:very:*", "sess:x", "*:late", "/^late:/")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		db         int
		name, want string
		by         string
	}{
		{0, "sess:1", "numbers", `/^\w+:\d+$/`},
		{3, "sess:1", "numbers", `/^\w+:\d+$/`},
		{3, "sess:a", "db3", "sess:*"},
		{7, "sess:admin:a", "db3", "sess:*"},
		{0, "sess:a", "all", "sess:*"},
		{0, "sess:admin:very:a", "admin", "sess:admin:*"},
		{0, "root:a", "admin", "root:*"},
		{0, "sess:x", "all", "sess:*"},
		{0, "x:late", "late", "*:late"},
		{0, "late:a", "late", "/^late:/"},
		{0, "other", "default", ""},
		{0, "", "default", ""},
	} {
		k := named(c.name)
		k.DB = c.db
		if got := p.Namespaces()[p.NamespaceOf(&k)].Name; got != c.want {
			t.Errorf("%q of db%d is in %s, want %s", c.name, c.db, got, c.want)
		}
		if by, ok := p.MatchedBy(&k); by.Text != c.by || ok != (c.by != "") {
			t.Errorf("%q is matched by %v", c.name, by)
		}
	}
}

func TestLiteralPrefix(t *testing.T) {
	for pattern, want := range map[string]string{
		"sess:*": "sess:", `a\*b?`: "a*b", "*": "", "[a]b": "", `/^sess:\d+$/`: "sess:", "/^sess/": "sess", "/^a*/": "", "/sess:/": "",
		"/(?i)^sess/": "", "/(?m)^sess/": "", "/^(sess)/": "", "/^a\ufffdb/": "a", "/^sess$/": "sess", "/^ab?c/": "a", "/^订单:/": "订单:",
	} {
		e, err := newEntry(pattern, nil, 1)
		if err != nil || e.prefix != want {
			t.Errorf("%s: prefix %q, %v; want %q", pattern, e.prefix, err, want)
		}
	}
}

// slowMatch is stringmatchlen of Redis' util.c, word by word, for patterns that
// newEntry takes.
func slowMatch(p, s string) bool {
	for p != "" && s != "" {
		switch p[0] {
		case '*':
			for len(p) > 1 && p[1] == '*' {
				p = p[1:]
			}
			if len(p) == 1 {
				return true
			}
			for i := range len(s) + 1 {
				if slowMatch(p[1:], s[i:]) {
					return true
				}
			}
			return false
		case '?':
			s = s[1:]
		case '[':
			p = p[1:]
			not := p[0] == '^'
			if not {
				p = p[1:]
			}
			match := false
			for ; p[0] != ']'; p = p[1:] {
				switch {
				case p[0] == '\\' && len(p) >= 2:
					p = p[1:]
					match = match || p[0] == s[0]
				case len(p) >= 3 && p[1] == '-':
					match = match || p[0] <= s[0] && s[0] <= p[2]
					p = p[2:]
				default:
					match = match || p[0] == s[0]
				}
			}
			if match == not {
				return false
			}
			s = s[1:]
		default:
			if p[0] == '\\' && len(p) >= 2 {
				p = p[1:]
			}
			if p[0] != s[0] {
				return false
			}
			s = s[1:]
		}
		p = p[1:]
	}
	return strings.Trim(p, "*") == "" && s == ""
}

// FuzzGlob compares with the slow way of Redis.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{{"sess:*", "sess:1"}, {"a*b*c", "abcbc"}, {`[^a-c\]]?*`, "xyz"}, {"*a*a*a*b", "aaaaaaaaaaaaac"}, {`\*`, "*"}, {"[-a]", "-"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 20 || len(name) > 40 {
			t.Skip("the slow way takes exponential time")
		}
		if _, isRegexp := cutSlashes(pattern); isRegexp {
			t.Skip("no glob")
		}
		p, err := New(Spec{Namespaces: []NamespaceSpec{{Name: "n", Match: globs(pattern)}}})
		if err != nil {
			t.Skip(err)
		}
		k := named(name)
		if got, want := p.NamespaceOf(&k) == 1, slowMatch(pattern, name); got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
	})
}

// TestMatcherAgainstLoop: the trie finds what trying every pattern in turn finds.
func TestMatcherAgainstLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	text := func(alphabet string, n int) string {
		var b strings.Builder
		for range rng.IntN(n) {
			b.WriteByte(alphabet[rng.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range 300 {
		var entries []entry
		for i := range 1 + rng.IntN(30) {
			pattern := text("ab:*?", 6) + "*"
			if rng.IntN(5) == 0 {
				pattern = "/^" + text("ab:.", 5) + "$/"
			}
			e, err := newEntry(pattern, nil, 1+i/2)
			if err != nil {
				t.Fatal(err)
			}
			if rng.IntN(4) == 0 {
				e.dbs = []int{0, 2}
			}
			entries = append(entries, e)
		}
		m := newMatcher(entries)
		for range 200 {
			name, db, want := text("ab:", 8), rng.IntN(3), none
			for _, e := range entries {
				if rest, ok := strings.CutPrefix(name, e.prefix); ok && e.matches(name, rest, db) {
					want = min(want, e.namespace)
				}
			}
			if got := m.find(name, db); got != want {
				t.Fatalf("%q of db%d is in %d, want %d: %+v", name, db, got, want, entries)
			}
		}
	}
}

// manyNamespaces are as many as there may be: prefixes, globs with more behind
// the prefix, and expressions.
func manyNamespaces() Spec {
	var s Spec
	for i := range MaxNamespaces {
		n := NamespaceSpec{Name: fmt.Sprint("n", i), Match: globs(fmt.Sprintf("app%d:*", i), fmt.Sprintf("{app%d}:*", i)), Rules: []RuleSpec{
			{ID: "ttl_missing", Level: pointer(Mandatory)},
			{ID: "many_elements", Options: []OptionSpec{number("warning", 500)}},
		}}
		switch i % 10 {
		case 7:
			n.Match = globs(fmt.Sprintf("app%d:*:[0-9]*", i))
		case 8:
			n.Match = globs(fmt.Sprintf(`/^app%d:\d+$/`, i))
		}
		s.Namespaces = append(s.Namespaces, n)
	}
	return s
}

func TestMatchingDoesNotAllocate(t *testing.T) {
	p, err := New(manyNamespaces())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app1:x:1", "app198:12345", "app197:cart:9", "other:1", "app", "{app5}:x"} {
		k := named(name)
		p.Check(&k)
		if n := testing.AllocsPerRun(100, func() { p.Check(&k) }); n != 0 {
			t.Errorf("%q: %v allocations", name, n)
		}
	}
}

// BenchmarkCheckNamespaces judges healthy keys of all kinds under 200 namespaces.
func BenchmarkCheckNamespaces(b *testing.B) {
	p, err := New(manyNamespaces())
	if err != nil {
		b.Fatal(err)
	}
	var keys []keyspace.Key
	for i := range 1000 {
		k := sized(keyspace.String, 100, 10, time.Hour)
		k.Name = fmt.Sprintf("app%d:order:%d", i%250, i)
		if i%3 == 0 {
			k.Name = fmt.Sprintf("app%d:%d", i%250, i)
		}
		k.NameBytes = int64(len(k.Name))
		keys = append(keys, k)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if v := p.Check(&keys[i%len(keys)]); v.Rules != 0 {
			b.Fatalf("%q: %+v", keys[i%len(keys)].Name, v)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "keys/s")
}
