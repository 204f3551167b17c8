package config

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"redis_keyhealth_exporter/internal/policy"
)

// maxPolicyBytes bounds a policy file; one with 200 namespaces takes a tenth.
const maxPolicyBytes = 1 << 20

// LoadPolicy reads a policy file; "" = the rulebook's defaults. Errors in it
// begin with file:line.
func LoadPolicy(name string) (*policy.Policy, error) {
	if name == "" {
		return policy.New(policy.Spec{})
	}
	content, err := readFile(name, maxPolicyBytes)
	if err != nil {
		return nil, err
	}
	return parsePolicy(name, content)
}

func parsePolicy(name string, content []byte) (*policy.Policy, error) {
	f := policyFile{yamlFile{name}, policy.Rules()}
	root, err := f.parse(content)
	if err != nil {
		return nil, err
	}
	spec, err := f.spec(root)
	if err != nil {
		return nil, err
	}
	return policy.New(spec)
}

// policyFile turns the tree of a policy file into a policy.Spec: it knows how
// things are written, policy.New what makes sense.
type policyFile struct {
	yamlFile
	rules []policy.Rule
}

func (f policyFile) spec(root *yaml.Node) (spec policy.Spec, err error) {
	err = f.fields(root, "a policy file", []field{
		{"rules", func(_, n *yaml.Node) (err error) {
			spec.Rules, err = f.ruleSpecs(n, nil)
			return err
		}},
		{"namespaces", func(_, n *yaml.Node) error {
			return f.each(n, "namespaces is a list of mappings with name and match", func(n *yaml.Node) error {
				namespace, err := f.namespace(n)
				spec.Namespaces = append(spec.Namespaces, namespace)
				return err
			})
		}},
		{"watch", func(_, n *yaml.Node) error {
			return f.each(n, "watch is a list of names of keys", func(n *yaml.Node) error {
				key, err := f.watched(n)
				spec.Watch = append(spec.Watch, key)
				return err
			})
		}},
	})
	return spec, err
}

func (f policyFile) namespace(n *yaml.Node) (spec policy.NamespaceSpec, err error) {
	spec.Where = f.where(n)
	err = f.fields(n, "a namespace", []field{
		{"name", func(_, n *yaml.Node) (err error) {
			spec.Name, err = f.text(n, "name is a word, the value of the label namespace")
			return err
		}},
		{"match", func(_, n *yaml.Node) error {
			const want = "match is a glob, a regular expression between slashes, or a list of these"
			return f.one(n, want, func(n *yaml.Node) error {
				text, err := f.text(n, want)
				spec.Match = append(spec.Match, policy.Pattern{Text: text, Where: f.where(n)})
				return err
			})
		}},
		{"db", func(_, n *yaml.Node) error {
			const want = "db is a list of numbers of databases, such as [0, 3]"
			if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
				return f.wrong(n, "%s; this is empty", want)
			}
			return f.one(n, want, func(n *yaml.Node) error {
				db, err := f.db(n)
				spec.DBs = append(spec.DBs, db)
				return err
			})
		}},
		{"owner", func(_, n *yaml.Node) (err error) {
			spec.Owner, err = f.text(n, "owner is a text, such as the name of a team")
			return err
		}},
		{"rules", func(_, n *yaml.Node) (err error) {
			spec.Rules, err = f.ruleSpecs(n, &spec)
			return err
		}},
	})
	return spec, err
}

// ruleSpecs reads the rules of a namespace; nil = those for all keys.
func (f policyFile) ruleSpecs(n *yaml.Node, namespace *policy.NamespaceSpec) (specs []policy.RuleSpec, err error) {
	err = f.entries(n, "rules is a mapping of rules, such as big_string: {warning: 10KiB}", func(key, value *yaml.Node) error {
		i, err := policy.Find(f.rules, key.Value)
		if err != nil {
			return f.wrong(key, "%w", err)
		}
		spec, err := f.ruleSpec(&f.rules[i], value, namespace != nil)
		spec.Where = f.where(key)
		specs = append(specs, spec)
		return err
	})
	return specs, err
}

func (f policyFile) ruleSpec(rule *policy.Rule, n *yaml.Node, inNamespace bool) (spec policy.RuleSpec, err error) {
	spec.ID = rule.ID
	settings := []field{
		{"level", func(_, n *yaml.Node) error {
			const want = "level is one of " + policy.LevelNames
			text, err := f.text(n, want)
			if err != nil {
				return err
			}
			level, known := policy.ParseLevel(text)
			if spec.Level = &level; !known {
				return f.wrong(n, "%s, not %q", want, text)
			}
			return nil
		}},
		{"enabled", func(_, n *yaml.Node) error {
			enabled, err := f.boolean(n, "enabled")
			spec.Enabled = &enabled
			return err
		}},
	}
	if inNamespace {
		settings = append(settings, field{"exempt", func(_, n *yaml.Node) (err error) {
			spec.Exempt, err = f.boolean(n, "exempt")
			return err
		}}, field{"approved_by", func(_, n *yaml.Node) (err error) {
			spec.ApprovedBy, err = f.text(n, "approved_by is a text that tells who allowed the exemption")
			return err
		}})
	}
	for _, option := range rule.Options {
		settings = append(settings, field{option.Name, func(key, n *yaml.Node) error {
			value, err := f.value(option, n)
			spec.Options = append(spec.Options, policy.OptionSpec{Name: option.Name, Value: value, Where: f.where(key)})
			return err
		}})
	}
	return spec, f.fields(n, rule.ID, settings)
}

func (f policyFile) value(option policy.Option, n *yaml.Node) (v policy.Value, err error) {
	want := option.Name + " is " + option.Allowed()
	if option.Kind == policy.Words {
		err = f.each(n, want, func(n *yaml.Node) error {
			word, err := f.text(n, want)
			v.Words = append(v.Words, word)
			return err
		})
		return v, err
	}
	text, err := f.text(n, want)
	if err != nil {
		return v, err
	}
	if v, err = option.Parse(text); err != nil {
		err = f.wrong(n, "%s: %w", option.Name, err)
	}
	return v, err
}

// watched reads a name of db 0, or a mapping of a name and its database.
func (f policyFile) watched(n *yaml.Node) (key policy.WatchedKey, err error) {
	const want = "watch lists names of keys, or mappings such as {db: 3, name: queue}"
	key.Where = f.where(n)
	if n.Kind == yaml.ScalarNode {
		key.Name, err = f.bytes(n, want)
		return key, err
	}
	named := false
	err = f.fields(n, "a watched key", []field{
		{"db", func(_, n *yaml.Node) (err error) {
			key.DB, err = f.db(n)
			return err
		}},
		{"name", func(_, n *yaml.Node) (err error) {
			key.Name, err = f.bytes(n, "name is the name of a key")
			named = true
			return err
		}},
	})
	if err == nil && !named {
		err = f.wrong(n, "a watched key needs a name")
	}
	return key, err
}

func (f policyFile) db(n *yaml.Node) (int, error) {
	const want = "db is a number of a database, 0 or more"
	text, err := f.text(n, want)
	if err != nil {
		return 0, err
	}
	db, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, f.wrong(n, "%s, not %q", want, text)
	}
	return int(db), nil
}
