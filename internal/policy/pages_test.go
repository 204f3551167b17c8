package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redis_keyhealth_exporter/internal/keyspace"
)

const pagesDir = "../../docs/rules"

const (
	blockStart = "<!-- generated -->\n"
	blockEnd   = "<!-- /generated -->\n"
)

// sections are what every page has, in this order.
var sections = []string{"Why", "Example", "How to fix", "How to exempt", "Source"}

var (
	heading = regexp.MustCompile(`(?m)^## (.*)$`)
	link    = regexp.MustCompile(`\]\(([^)#]+)#?([^)]*)\)`)
)

// TestDocsPages keeps a page for each rule, and the head of it equal to its row.
func TestDocsPages(t *testing.T) {
	var known []string
	for _, r := range Rules() {
		known = append(known, r.ID)
		path := filepath.Join(pagesDir, r.ID+".md")
		page, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		want, err := withBlock(string(page), pageHead(&r))
		switch {
		case err != nil:
			t.Errorf("%s: %v", path, err)
		case *update:
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		case want != string(page):
			t.Errorf("%s differs from its row of the rulebook: make generate writes its head anew", path)
		}
	}
	files, err := filepath.Glob(filepath.Join(pagesDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		id, ok := strings.CutSuffix(filepath.Base(path), ".md")
		if !ok || !slices.Contains(known, id) {
			t.Errorf("%s is about no rule", path)
			continue
		}
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range pageProblems(id, string(page)) {
			t.Errorf("%s: %s", path, problem)
		}
	}
}

// pageProblems is what is wrong with what was written by hand.
func pageProblems(id, page string) (problems []string) {
	if !strings.HasPrefix(page, "# "+id+"\n\n"+blockStart) {
		problems = append(problems, "does not begin with the id of its rule and the generated head")
	}
	var found []string
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		found = append(found, h[1])
	}
	if !slices.Equal(found, sections) {
		problems = append(problems, fmt.Sprintf("has the sections %q, not %q", found, sections))
	}
	for _, l := range link.FindAllStringSubmatch(page, -1) {
		target, err := os.ReadFile(filepath.Join(pagesDir, l[1]))
		if anchor := strings.ReplaceAll(l[2], "-", " "); err != nil || !strings.Contains(strings.ToLower(string(target)), "\n## "+anchor) {
			problems = append(problems, "links to "+l[0]+", which is not there")
		}
	}
	return problems
}

// withBlock is the page with another generated block.
func withBlock(page, block string) (string, error) {
	before, rest, ok := strings.Cut(page, blockStart)
	_, after, closed := strings.Cut(rest, blockEnd)
	if !ok || !closed {
		return "", fmt.Errorf("there is no block between %q and %q", blockStart, blockEnd)
	}
	return before + blockStart + block + blockEnd + after, nil
}

// pageHead is what the row says.
func pageHead(r *Rule) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "- **%s:** %s\n", name, text)
		}
	}
	violated, critical := r.Words(r.Defaults())
	line("Level", r.Level.String())
	line("Broken by", violated)
	line("Critical", critical)
	line("Options", strings.Join(optionList(r), ", "))
	line("Judged", judged(r))
	line("Facts", strings.Join(facts(r), ", "))
	line("Metric", fmt.Sprintf("`redis_keyhealth_%s{rule=%q}`", family(r), r.ID))
	line("Documents", r.Source+"; see [rules](../rules.md)")
	return b.String()
}

// optionList are the options as a policy writes them, with their defaults.
func optionList(r *Rule) (options []string) {
	for _, o := range r.Options {
		options = append(options, "`"+o.Name+": "+o.Format(o.Default)+"`")
	}
	return options
}

// judged tells on which keys, and how exactly.
func judged(r *Rule) string {
	switch basis := r.Basis(); {
	case r.AboutServer():
		return "once a cycle, on the primary"
	case basis == OnNames:
		return "on every name, exactly"
	case basis == OnSizes:
		return "exactly; with `--scan.sample` above 1 a lower bound until every key was measured once"
	case basis == OnFixed:
		return "on the keys large enough to break a rule by size and a fixed 1/64 of the others, estimated"
	default:
		return "exactly with `--scan.detail=1`, otherwise estimated from the keys that are asked for their TTL"
	}
}

// family is the metric that counts violations.
func family(r *Rule) string {
	if r.AboutServer() {
		return "server_rule_violation"
	}
	return "rule_violations"
}

// facts are the commands whose answers the rule looks at.
func facts(r *Rule) (commands []string) {
	for _, f := range []struct {
		fact     keyspace.Facts
		commands []string
	}{
		{keyspace.FactType, []string{"TYPE"}},
		{keyspace.FactBytes, []string{"MEMORY USAGE"}},
		{keyspace.FactTTL, []string{"PTTL"}},
		{keyspace.FactLength, lengths(r.Types)},
		{keyspace.FactEncoding, []string{"OBJECT ENCODING"}},
		{keyspace.FactIdle, []string{"OBJECT IDLETIME"}},
		{keyspace.FactFrequency, []string{"OBJECT FREQ"}},
		{keyspace.FactHead, []string{"GETRANGE"}},
	} {
		if r.Needs&f.fact != 0 {
			commands = append(commands, f.commands...)
		}
	}
	return commands
}

func lengths(of typeSet) (commands []string) {
	for _, t := range keyspace.Types() {
		if cmd, ok := keyspace.LengthCommand(t); ok && of.has(t) {
			commands = append(commands, strings.ToUpper(cmd.String()))
		}
	}
	return commands
}
