// Package archtest holds the tests of the program's structure.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "redis_keyhealth_exporter"
	root   = "../.."
)

// allowed names every package, and those of the project that it may import:
// command line → wiring → one node's cycle → what is known of a key. Tests are
// free to import what they need.
var allowed = map[string][]string{
	".": {"internal/cli"},
	"internal/cli": {
		"collector", "scanner",
		"internal/bigkeys", "internal/config", "internal/fault", "internal/gokitslog", "internal/keyspace",
		"internal/policy", "internal/snapshot", "internal/state", "internal/topology", "internal/web",
	},
	"internal/web":       {"docs", "internal/bigkeys", "internal/fault", "internal/keyspace", "internal/policy", "internal/snapshot"},
	"collector":          {"internal/bigkeys", "internal/fault", "internal/keyspace", "internal/policy", "internal/snapshot"},
	"internal/topology":  {"internal/resp", "scanner", "internal/config", "internal/fault", "internal/keyspace", "internal/policy", "internal/snapshot"},
	"scanner":            {"internal/bigkeys", "internal/fault", "internal/keyspace", "internal/policy", "internal/snapshot", "internal/state"},
	"internal/state":     {"internal/bigkeys", "internal/keyspace", "internal/policy", "internal/snapshot"},
	"internal/snapshot":  {"internal/bigkeys", "internal/fault", "internal/keyspace", "internal/policy"},
	"internal/bigkeys":   {"internal/keyspace", "internal/policy"},
	"internal/config":    {"internal/keyspace", "internal/policy"},
	"internal/policy":    {"internal/keyspace"},
	"internal/fault":     {},
	"internal/resp":      nil,
	"internal/gokitslog": {},
	"internal/keyspace":  {},
	"docs":               {},

	"dashboards": {},

	"internal/bench": {
		"collector", "scanner",
		"internal/config", "internal/keyspace", "internal/policy", "internal/resp", "internal/snapshot", "internal/testredis", "internal/topology",
	},
	"internal/demo":      {"internal/cli", "internal/policy", "internal/testredis", "internal/web"},
	"internal/testredis": {},
	"internal/testtools": {},
}

// confined lists foreign packages, with all below them, that only some of the
// project's may import.
var confined = []struct {
	pkg    string
	only   []string // these, and no other
	except []string // all but these; counts if only is empty
	why    string
}{
	{
		pkg:  "github.com/redis/go-redis",
		only: []string{"internal/topology", "internal/testredis", "internal/demo", "internal/bench"},
		why:  "the rest talks to Redis through interfaces of the scanner",
	},
	{
		pkg:  "log/slog",
		only: []string{"internal/gokitslog", "internal/cli"},
		why:  "the program logs with go-kit/log",
	},
	{
		pkg: "github.com/prometheus/client_golang",
		except: []string{
			"scanner", "internal/bigkeys", "internal/fault", "internal/keyspace",
			"internal/policy", "internal/snapshot", "internal/topology",
		},
		why: "metrics are made from snapshots, by the collector",
	},
}

func TestImports(t *testing.T) {
	imports := projectImports(t)
	if _, seen := imports["internal/testredis"]; !seen {
		t.Fatalf("the project's packages were not found: %v", imports)
	}
	for pkg, list := range imports {
		if _, known := allowed[pkg]; !known {
			t.Errorf("package %s is new: say in the table what it may import", pkg)
			continue
		}
		for _, imported := range list {
			if why := objection(pkg, imported); why != "" {
				t.Errorf("package %s imports %s: %s", pkg, imported, why)
			}
		}
	}
}

func TestObjection(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		fine          bool
	}{
		{"scanner", module + "/internal/snapshot", true},
		{"internal/snapshot", module + "/scanner", false},
		{"internal/cli", module + "/internal/testredis", false},
		{"internal/policy", "regexp", true},
		{"internal/topology", "github.com/redis/go-redis/v9", true},
		{"scanner", "github.com/redis/go-redis/v9", false},
		{"internal/cli", "log/slog", true},
		{"collector", "log/slog", false},
		{"collector", "log", true},
		{"collector", "github.com/prometheus/client_golang/prometheus", true},
		{"internal/snapshot", "github.com/prometheus/client_golang/prometheus", false},
	} {
		if why := objection(c.pkg, c.imported); (why == "") != c.fine {
			t.Errorf("%s imports %s: objection %q", c.pkg, c.imported, why)
		}
	}
}

// TestTableIsWhole finds misspelt names, which would otherwise allow nothing.
func TestTableIsWhole(t *testing.T) {
	names := func(pkg string, lists ...[]string) {
		for _, name := range slices.Concat(lists...) {
			if _, known := allowed[name]; !known {
				t.Errorf("the rule for %s names %s, which is not in the table", pkg, name)
			}
		}
	}
	for pkg, list := range allowed {
		names(pkg, list)
	}
	for _, rule := range confined {
		names(rule.pkg, rule.only, rule.except)
	}
}

// objection says why a package may not import another, or nothing.
func objection(pkg, imported string) string {
	if within(imported, module) {
		local := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
		if !slices.Contains(allowed[pkg], local) {
			return "the table does not allow that"
		}
		return ""
	}
	for _, rule := range confined {
		if !within(imported, rule.pkg) {
			continue
		}
		if len(rule.only) > 0 && !slices.Contains(rule.only, pkg) || slices.Contains(rule.except, pkg) {
			return rule.why
		}
	}
	return ""
}

// within tells whether a package is another or lies below it.
func within(pkg, parent string) bool {
	return pkg == parent || strings.HasPrefix(pkg, parent+"/")
}

// projectImports returns what each package of the module imports, its tests left
// aside. Files of other systems count too, which a build here would not see.
func projectImports(t *testing.T) map[string][]string {
	t.Helper()
	imports := make(map[string][]string)
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && foreign(name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var list []string
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			list = append(list, imported)
		}
		pkg := path.Dir(name)
		imports[pkg] = append(imports[pkg], list...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

// foreign tells of a folder whether the go command leaves it out of the module.
func foreign(dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(root, dir, "go.mod"))
	return err == nil
}
