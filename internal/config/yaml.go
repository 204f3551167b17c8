package config

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxYAMLDepth bounds how deep a file may nest: the deepest setting is at 7.
const maxYAMLDepth = 20

// yamlFile reads a YAML file strictly: what it does not expect is an error that
// begins with file:line.
type yamlFile struct {
	name string
}

// where is the place of a node.
func (f yamlFile) where(n *yaml.Node) string { return f.line(n.Line) }

func (f yamlFile) line(n int) string { return f.name + ":" + strconv.Itoa(n) }

func (f yamlFile) wrong(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s: %w", f.where(n), fmt.Errorf(format, args...))
}

// parse makes the tree of the file's only document.
func (f yamlFile) parse(content []byte) (*yaml.Node, error) {
	if err := f.checkText(content); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: is empty; {} stands for the defaults", f.line(1))
	case err != nil:
		return nil, f.syntax(err, content)
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, f.wrong(&second, "a second document begins; one is allowed")
	case !errors.Is(err, io.EOF):
		return nil, f.syntax(err, content)
	}
	return document.Content[0], f.plain(document.Content[0], 0)
}

// checkText finds what the parser refuses without telling where.
func (f yamlFile) checkText(content []byte) error {
	line := 1
	for len(content) > 0 {
		r, size := utf8.DecodeRune(content)
		switch {
		case r == utf8.RuneError && size == 1:
			return fmt.Errorf("%s: is no UTF-8", f.line(line))
		case r == '\n':
			line++
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return fmt.Errorf(`%s: holds the control character %U; write it in double quotes, as "\x%02x"`, f.line(line), r, r)
		}
		content = content[size:]
	}
	return nil
}

var (
	yamlError     = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
	// parserError are those of the grammar, whose lines the library counts from 0,
	// and those of what it calls the scanner from 1.
	parserError = regexp.MustCompile(`^(did not find expected|found undefined tag|found duplicate|found incompatible)`)
)

// syntax makes an error of the parser ours.
func (f yamlFile) syntax(err error, content []byte) error {
	parts := yamlError.FindStringSubmatch(err.Error())
	if parts == nil {
		return fmt.Errorf("%s: %w", f.line(1), err)
	}
	line, counted := strconv.Atoi(parts[1])
	if counted != nil {
		line = 0
	}
	if alias := unknownAnchor.FindStringSubmatch(parts[2]); alias != nil {
		before, _, _ := strings.Cut(string(content), "*"+alias[1])
		return fmt.Errorf("%s: %w", f.line(1+strings.Count(before, "\n")), errAlias)
	}
	if line == 0 || parserError.MatchString(parts[2]) {
		line++
	}
	last := 1 + bytes.Count(bytes.TrimRight(content, "\n"), []byte("\n"))
	return fmt.Errorf("%s: %s", f.line(min(line, last)), parts[2]) // it may stand behind the end
}

var errAlias = errors.New("anchors, aliases and merge keys are not allowed: write it out")

// plain refuses what makes a tree of a text something else than it looks like.
func (f yamlFile) plain(n *yaml.Node, depth int) error {
	switch {
	case n.Anchor != "" || n.Kind == yaml.AliasNode || n.ShortTag() == "!!merge":
		return f.wrong(n, "%w", errAlias)
	case depth > maxYAMLDepth:
		return f.wrong(n, "nests too deep")
	}
	for _, child := range n.Content {
		if err := f.plain(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// field is a key of a mapping and what reads its value.
type field struct {
	name string
	read func(key, value *yaml.Node) error
}

// fields reads a mapping that has no other keys than these.
func (f yamlFile) fields(n *yaml.Node, what string, fields []field) error {
	names := make([]string, 0, len(fields))
	for _, known := range fields {
		names = append(names, known.name)
	}
	allowed := strings.Join(names, ", ")
	return f.entries(n, what+" is a mapping with the keys "+allowed, func(key, value *yaml.Node) error {
		for _, known := range fields {
			if known.name == key.Value {
				return known.read(key, value)
			}
		}
		return f.wrong(key, "unknown key %q in %s; allowed are %s", key.Value, what, allowed)
	})
}

// entries reads a mapping of any keys; want says what is expected.
func (f yamlFile) entries(n *yaml.Node, want string, read func(key, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return f.wrong(n, "%s; this is %s", want, kindOf(n))
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return f.wrong(key, "a key must be a word; this is %s", kindOf(key))
		}
		if line, double := seen[key.Value]; double {
			return f.wrong(key, "%q is there twice, first in line %d", key.Value, line)
		}
		seen[key.Value] = key.Line
		if err := read(key, value); err != nil {
			return err
		}
	}
	return nil
}

// each reads a list; want says what is expected.
func (f yamlFile) each(n *yaml.Node, want string, read func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode {
		return f.wrong(n, "%s; this is %s", want, kindOf(n))
	}
	for _, item := range n.Content {
		if err := read(item); err != nil {
			return err
		}
	}
	return nil
}

// one reads a list, or a single item.
func (f yamlFile) one(n *yaml.Node, want string, read func(*yaml.Node) error) error {
	if n.Kind == yaml.ScalarNode {
		return read(n)
	}
	return f.each(n, want, read)
}

// text reads a scalar as it stands there: what YAML would make of 010 or no is of
// no matter.
func (f yamlFile) text(n *yaml.Node, want string) (string, error) {
	switch tag := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode || tag == "!!null":
		return "", f.wrong(n, "%s; this is %s", want, kindOf(n))
	case n.Style&yaml.TaggedStyle != 0 && tag != "!!str":
		return "", f.wrong(n, "%s; the tag %s is not allowed", want, tag)
	}
	return n.Value, nil
}

// bytes reads a text, or any bytes in base64 behind the tag !!binary.
func (f yamlFile) bytes(n *yaml.Node, want string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!binary" {
		return f.text(n, want)
	}
	content, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
	if err != nil {
		return "", f.wrong(n, "%s; this is no base64: %w", want, err)
	}
	return string(content), nil
}

func (f yamlFile) boolean(n *yaml.Node, name string) (bool, error) {
	want := name + " is true or false"
	text, err := f.text(n, want)
	if err == nil && text != "true" && text != "false" {
		err = f.wrong(n, "%s, not %q", want, text)
	}
	return text == "true", err
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "nothing"
	}
	return strconv.Quote(n.Value)
}
