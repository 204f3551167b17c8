package config

import (
	"bytes"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"redis_keyhealth_exporter/internal/policy"
)

// FormatPolicy writes a policy as a file that LoadPolicy reads as the same one:
// every rule with all that holds for it, and of each namespace what differs.
func FormatPolicy(p *policy.Policy) ([]byte, error) {
	rules := mapping()
	for i, rule := range p.Rules() {
		s := p.Settings(0, i)
		settings := flow(mapping())
		add(settings, "level", plain(s.Level.String()))
		add(settings, "enabled", plain(strconv.FormatBool(s.Enabled)))
		for _, option := range rule.Options {
			add(settings, option.Name, value(option, s.Values[option.Name]))
		}
		violated, critical := rule.Words(s.Values)
		comment := violated
		if critical != "" {
			comment += "; critical: " + critical
		}
		add(rules, rule.ID, settings)
		rules.Content[2*i].HeadComment = comment
	}
	root := mapping()
	add(root, "rules", rules)
	spec := p.Spec()
	if len(spec.Namespaces) > 0 {
		namespaces := sequence()
		for i := range spec.Namespaces {
			namespaces.Content = append(namespaces.Content, namespaceNode(p.Rules(), &spec.Namespaces[i]))
		}
		add(root, "namespaces", namespaces)
	}
	if len(spec.Watch) > 0 {
		watch := sequence()
		for _, w := range spec.Watch {
			item := quoted(w.Name)
			if w.DB != 0 {
				item = flow(mapping())
				add(item, "db", plain(strconv.Itoa(w.DB)))
				add(item, "name", quoted(w.Name))
			}
			watch.Content = append(watch.Content, item)
		}
		add(root, "watch", watch)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(root)
	return out.Bytes(), err
}

func namespaceNode(rules []policy.Rule, spec *policy.NamespaceSpec) *yaml.Node {
	n := mapping()
	add(n, "name", quoted(spec.Name))
	match := flow(sequence())
	for _, pattern := range spec.Match {
		match.Content = append(match.Content, quoted(pattern.Text))
	}
	add(n, "match", match)
	if len(spec.DBs) > 0 {
		dbs := flow(sequence())
		for _, db := range spec.DBs {
			dbs.Content = append(dbs.Content, plain(strconv.Itoa(db)))
		}
		add(n, "db", dbs)
	}
	if spec.Owner != "" {
		add(n, "owner", quoted(spec.Owner))
	}
	if len(spec.Rules) > 0 {
		settings := mapping()
		for _, r := range spec.Rules {
			i := slices.IndexFunc(rules, func(rule policy.Rule) bool { return rule.ID == r.ID })
			add(settings, r.ID, ruleNode(&rules[i], &r))
		}
		add(n, "rules", settings)
	}
	return n
}

// ruleNode is what a namespace says of a rule.
func ruleNode(rule *policy.Rule, spec *policy.RuleSpec) *yaml.Node {
	n := flow(mapping())
	if spec.Level != nil {
		add(n, "level", plain(spec.Level.String()))
	}
	if spec.Enabled != nil {
		add(n, "enabled", plain(strconv.FormatBool(*spec.Enabled)))
	}
	if spec.Exempt {
		add(n, "exempt", plain("true"))
		add(n, "approved_by", quoted(spec.ApprovedBy))
	}
	for _, o := range spec.Options {
		i := slices.IndexFunc(rule.Options, func(option policy.Option) bool { return option.Name == o.Name })
		add(n, o.Name, value(rule.Options[i], o.Value))
	}
	return n
}

func value(option policy.Option, v policy.Value) *yaml.Node {
	if option.Kind != policy.Words {
		return plain(option.Format(v))
	}
	list := flow(sequence())
	for _, word := range v.Words {
		list.Content = append(list.Content, quoted(word))
	}
	return list
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func sequence() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode} }

func plain(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// quoted is a text that is nobody's number, or bytes that are no text.
func quoted(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	n.Style = yaml.DoubleQuotedStyle
	return n
}

func flow(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}

func add(to *yaml.Node, key string, value *yaml.Node) {
	to.Content = append(to.Content, plain(key), value)
}
