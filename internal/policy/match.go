package policy

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxPatternBytes = 1024
	maxRegexpBytes  = 256
	maxRegexps      = 100 // of all namespaces together

	// maxRegexpSize bounds the program of a regular expression: matching takes as
	// many steps at most for each byte of a name.
	maxRegexpSize = 1000
)

// entry is a pattern of a namespace.
type entry struct {
	namespace int
	prefix    string // that every match begins with
	dbs       []int  // nil = all
	rest      glob   // behind the prefix; of a glob
	regexp    *regexp.Regexp
}

// newEntry compiles a pattern.
func newEntry(pattern string, dbs []int, namespace int) (e entry, err error) {
	e = entry{namespace: namespace, dbs: dbs}
	if expr, isRegexp := cutSlashes(pattern); isRegexp {
		e.regexp, e.prefix, err = parseRegexp(expr)
		return e, err
	}
	switch {
	case pattern == "" || len(pattern) > maxPatternBytes:
		return e, fmt.Errorf("a pattern has 1 to %d bytes", maxPatternBytes)
	case strings.HasPrefix(pattern, "/^"):
		return e, fmt.Errorf(`a regular expression ends in a slash, too; a glob for names that begin with /^ is written \/^`)
	}
	e.prefix, e.rest, err = parseGlob(pattern)
	return e, err
}

func cutSlashes(pattern string) (string, bool) {
	if len(pattern) < 2 || pattern[0] != '/' || pattern[len(pattern)-1] != '/' {
		return "", false
	}
	return pattern[1 : len(pattern)-1], true
}

// parseRegexp compiles an expression and finds what every match begins with.
func parseRegexp(expr string) (*regexp.Regexp, string, error) {
	if expr == "" || len(expr) > maxRegexpBytes {
		return nil, "", fmt.Errorf("a regular expression has 1 to %d bytes", maxRegexpBytes)
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, "", fmt.Errorf("%w; the syntax is RE2's", err)
	}
	prefix := literalPrefix(tree)
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, "", err
	}
	if len(program.Inst) > maxRegexpSize {
		return nil, "", fmt.Errorf("the regular expression compiles to more than %d steps; repeat less", maxRegexpSize)
	}
	compiled, err := regexp.Compile(expr)
	return compiled, prefix, err
}

// literalPrefix is the text that stands behind the ^ that an expression begins
// with. U+FFFD ends it, as that matches bytes that are not UTF-8, too.
func literalPrefix(tree *syntax.Regexp) string {
	if tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	literal := tree.Sub[1]
	if literal.Op != syntax.OpLiteral || literal.Flags&syntax.FoldCase != 0 {
		return ""
	}
	text, _, _ := strings.Cut(string(literal.Rune), string(utf8.RuneError))
	return text
}

// matches decides on a name that begins with the prefix; rest is what follows.
func (e *entry) matches(name, rest string, db int) bool {
	switch {
	case e.dbs != nil && !slices.Contains(e.dbs, db):
		return false
	case e.regexp != nil:
		return e.regexp.MatchString(name)
	case len(e.rest) == 0:
		return rest == ""
	}
	return e.rest.match(rest)
}

// matcher finds the namespace of a name: the first one of which a pattern
// matches. Only patterns are tried whose literal prefix the name has, and
// regular expressions only where they could still bring an earlier namespace.
type matcher struct {
	globs, regexps *node
}

// none is behind every namespace.
const none = math.MaxInt

// newMatcher takes the entries of all namespaces.
func newMatcher(entries []entry) matcher {
	var globs, regexps []entry
	for _, e := range entries {
		if e.regexp != nil {
			regexps = append(regexps, e)
		} else {
			globs = append(globs, e)
		}
	}
	return matcher{newNode(globs, 0), newNode(regexps, 0)}
}

// find returns the index of the namespace, or none. It does not allocate.
func (m *matcher) find(name string, db int) int {
	return m.regexps.find(name, db, m.globs.find(name, db, none))
}

// node is a node of a trie of literal prefixes.
type node struct {
	prefix   string // from the parent to here
	entries  []entry
	first    string // of each child, the first byte of its prefix
	children []*node
	least    int // namespace of all entries from here on; none = there are none
}

// newNode makes the trie of entries that have their first depth bytes in common.
func newNode(entries []entry, depth int) *node {
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(a.prefix, b.prefix) })
	n := &node{least: none}
	for len(entries) > 0 && len(entries[0].prefix) == depth {
		n.entries, entries = append(n.entries, entries[0]), entries[1:]
	}
	slices.SortStableFunc(n.entries, func(a, b entry) int { return a.namespace - b.namespace })
	if len(n.entries) > 0 {
		n.least = n.entries[0].namespace
	}
	for len(entries) > 0 {
		first := entries[0].prefix
		same := slices.IndexFunc(entries, func(e entry) bool { return e.prefix[depth] != first[depth] })
		if same < 0 {
			same = len(entries)
		}
		// The entries are sorted: what the first and last have in common, all have.
		last, end := entries[same-1].prefix, depth
		for end < len(first) && end < len(last) && first[end] == last[end] {
			end++
		}
		child := newNode(entries[:same], end)
		child.prefix = first[depth:end]
		n.first += first[depth : depth+1]
		n.children = append(n.children, child)
		n.least = min(n.least, child.least)
		entries = entries[same:]
	}
	return n
}

// find returns the first namespace of which a pattern matches, if that comes
// before the one that is known already.
func (n *node) find(name string, db, known int) int {
	rest := name
	for {
		for i := range n.entries {
			e := &n.entries[i]
			if e.namespace >= known {
				break
			}
			if e.matches(name, rest, db) {
				known = e.namespace
			}
		}
		if rest == "" {
			return known
		}
		child := strings.IndexByte(n.first, rest[0])
		if child < 0 {
			return known
		}
		n = n.children[child]
		if n.least >= known || !strings.HasPrefix(rest, n.prefix) {
			return known
		}
		rest = rest[len(n.prefix):]
	}
}
