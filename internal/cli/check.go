package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// asked is what one run of check is about.
type asked struct {
	key     string
	given   bool // there is a key; it may be empty
	db      int
	dbGiven bool
}

// check validates the configuration and prints the policy that it makes, or what
// that means for one name.
func check(f *flags, stdout io.Writer) error {
	if _, err := f.validate(); err != nil {
		return err
	}
	switch a := &f.asked; {
	case a.dbGiven && !a.given:
		return errors.New("--db: goes with --key")
	case a.db < 0:
		return fmt.Errorf("--db: %d is no number of a database", a.db)
	}
	p, err := loadPolicy(f.policyFile)
	if err != nil {
		return err
	}
	if f.asked.given {
		return explain(p, &f.asked, stdout)
	}
	text, err := config.FormatPolicy(p)
	if err == nil {
		_, err = stdout.Write(text)
	}
	return err
}

// explain tells which namespace a name is in and why, how the rules about names
// judge it, and by what the others would judge the key.
func explain(p *policy.Policy, a *asked, stdout io.Writer) error {
	k := &keyspace.Key{DB: a.db, Name: a.key, NameBytes: int64(len(a.key)), Hash: keyspace.HashName(a.key)}
	if k.Oversized() {
		k.Name = k.Name[:keyspace.MaxNameBytes]
	}
	verdict := p.Check(k)
	namespace := p.Namespaces()[verdict.Namespace]
	why := "no namespace matches"
	if pattern, ok := p.MatchedBy(k); ok {
		why = fmt.Sprintf("%s: match %q", pattern.Where, pattern.Text)
	}
	out := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "key\t%s\n", k.Label())
	fmt.Fprintf(out, "database\t%s\n", keyspace.DBLabel(k.DB))
	fmt.Fprintf(out, "namespace\t%s (%s)\n", namespace.Name, why)
	fmt.Fprintf(out, "owner\t%s\n", cmp.Or(namespace.Owner, "–"))
	watched := slices.ContainsFunc(p.Watch(), func(w policy.WatchedKey) bool { return w.DB == k.DB && w.Name == a.key })
	fmt.Fprintf(out, "watched\t%s\n\n", yesNo(watched))
	fmt.Fprintf(out, "RULE\tLEVEL\tVERDICT\tBROKEN BY\n")
	for i, rule := range p.Rules() {
		if rule.AboutServer() {
			continue
		}
		s := p.Settings(verdict.Namespace, i)
		violated, critical := rule.Words(s.Values)
		if critical != "" {
			violated += "; critical: " + critical
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", rule.ID, s.Level, outcome(p, verdict, i), violated)
	}
	return out.Flush()
}

// outcome is what can be said of a rule when only the name is known.
func outcome(p *policy.Policy, v policy.Verdict, rule int) string {
	r, s := &p.Rules()[rule], p.Settings(v.Namespace, rule)
	switch {
	case s.ApprovedBy != "":
		return "exempt, approved by " + s.ApprovedBy
	case !s.Enabled:
		return "off"
	case r.New != nil && !p.Judges(v.Namespace, rule):
		return "not configured"
	case v.Rules>>rule&1 == 1:
		return "broken"
	case r.Needs == 0 && r.New != nil:
		return "kept"
	}
	return "applies" // what it says depends on more than the name
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
