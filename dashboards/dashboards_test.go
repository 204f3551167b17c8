package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// boardFile is what the tests read of a dashboard's JSON.
type boardFile struct {
	file          string
	UID, Title    string
	Description   string
	Editable      bool
	SchemaVersion int
	Refresh       string
	Timezone      string
	Time          struct{ From string }
	Tags          []string
	Links         []struct {
		Type        string
		Tags        []string
		AsDropdown  bool
		IncludeVars bool
		KeepTime    bool
	}
	Templating  struct{ List []variableFile }
	Annotations struct {
		List []struct {
			BuiltIn    int
			Name, Expr string
		}
	}
	Panels []panelFile
}

type variableFile struct {
	Type, Name, Label string
	Datasource        struct{ Type, UID string }
	Definition        string
	Multi, IncludeAll bool
	AllValue          string
	Refresh, Hide     int
}

type panelFile struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		RefID, Expr, Format string
		Instant, Range      bool
		Datasource          struct{ Type, UID string }
	}
	FieldConfig struct {
		Defaults  struct{ Unit string }
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
	Transformations []struct {
		ID      string
		Options struct{ RenameByName map[string]string }
	}
}

func boards(t *testing.T) []boardFile {
	t.Helper()
	names, err := filepath.Glob("*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	all := make([]boardFile, len(names))
	for i, name := range names {
		all[i].file = name
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &all[i]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return all
}

func metricTable(t *testing.T) metrics {
	t.Helper()
	m, err := readMetrics("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGenerated keeps the JSON equal to its sources.
func TestGenerated(t *testing.T) {
	made := files(metricTable(t))
	for name, content := range made {
		if text, err := os.ReadFile(name); err != nil || string(text) != string(content) {
			t.Errorf("%s is not up to date (%v): run make generate", name, err)
		}
	}
	for _, b := range boards(t) {
		if _, known := made[b.file]; !known {
			t.Errorf("nothing makes %s", b.file)
		}
	}
}

func TestDashboards(t *testing.T) {
	uids := make(map[string]string)
	for _, b := range boards(t) {
		t.Run(b.file, func(t *testing.T) {
			if other, double := uids[b.UID]; double || !regexp.MustCompile(`^[a-z-]{1,40}$`).MatchString(b.UID) {
				t.Errorf("uid %q: bad, or also that of %q", b.UID, other)
			}
			uids[b.UID] = b.file
			if b.Title == "" || b.Description == "" {
				t.Errorf("title %q, description %q", b.Title, b.Description)
			}
			if b.Editable || b.SchemaVersion < 39 || b.Refresh != "1m" || b.Timezone != "browser" || b.Time.From != "now-6h" {
				t.Errorf("editable %v, schemaVersion %d, refresh %s, timezone %s, time %s", b.Editable, b.SchemaVersion, b.Refresh, b.Timezone, b.Time.From)
			}
			if !slices.Equal(b.Tags, []string{"redis", "keyhealth"}) {
				t.Errorf("tags %v", b.Tags)
			}
			if len(b.Links) != 1 || !slices.Contains(b.Links[0].Tags, "keyhealth") || !b.Links[0].AsDropdown || !b.Links[0].IncludeVars || !b.Links[0].KeepTime {
				t.Errorf("links %+v do not lead to the other dashboards", b.Links)
			}
			if len(b.Annotations.List) < 2 {
				t.Error("no annotations")
			}
			testVariables(t, b)
			testLayout(t, b)
		})
	}
}

// testVariables wants the variables as Grafana's dashboard linter does: they let
// one choose everything, and are renewed with the time range.
func testVariables(t *testing.T, b boardFile) {
	labels := map[string]string{"job": "Job", "instance": "Instance", "target": "Target", "node": "Node", "db": "DB", "namespace": "Namespace"}
	for _, v := range b.Templating.List {
		switch v.Type {
		case "datasource":
			if v.Name != "datasource" || v.Label != "Data source" {
				t.Errorf("variable %s is called %q", v.Name, v.Label)
			}
			labels["datasource"] = v.Label
		case "query":
			if v.Label != labels[v.Name] || !v.Multi || !v.IncludeAll || v.AllValue != ".+" || v.Refresh != 2 || v.Datasource.UID != "${datasource}" {
				t.Errorf("variable %+v", v)
			}
		case "textbox":
			labels["docs"] = "Documentation"
			if v.Name != "docs" || v.Label != labels[v.Name] {
				t.Errorf("variable %s is called %q", v.Name, v.Label)
			}
		default:
			t.Errorf("variable %s is of type %s", v.Name, v.Type)
		}
		delete(labels, v.Name)
	}
	if len(labels) > 0 {
		t.Errorf("variables are missing: %v", slices.Collect(maps.Keys(labels)))
	}
}

// testLayout wants every panel at a place of its own.
func testLayout(t *testing.T, b boardFile) {
	ids := make(map[int]bool)
	for i, p := range b.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %q: id %d is not its own", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.X < 0 || g.Y < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			t.Errorf("panel %q: place %+v", p.Title, g)
		}
		for _, other := range b.Panels[:i] {
			o := other.GridPos
			if g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H {
				t.Errorf("panel %q overlaps %q", p.Title, other.Title)
			}
		}
	}
}

// units are those that the panels use, as Grafana spells them.
var units = []string{"none", "short", "locale", "bytes", "s", "percentunit", "cps", "dateTimeFromNow"}

func TestPanels(t *testing.T) {
	for _, b := range boards(t) {
		for _, p := range b.Panels {
			t.Run(b.file+"/"+p.Title, func(t *testing.T) {
				if p.Title == "" {
					t.Error("no title")
				}
				if p.Type != "row" {
					testPanel(t, p)
				}
			})
		}
	}
}

func testPanel(t *testing.T, p panelFile) {
	if p.Description == "" || !strings.HasSuffix(p.Description, ".") {
		t.Errorf("description %q is no sentence", p.Description)
	}
	if !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
		t.Errorf("unit %q", p.FieldConfig.Defaults.Unit)
	}
	if p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" {
		t.Errorf("data source %+v", p.Datasource)
	}
	if len(p.Targets) == 0 {
		t.Error("no query")
	}
	refs := make(map[string]bool)
	for _, q := range p.Targets {
		if q.RefID == "" || refs[q.RefID] {
			t.Errorf("refId %q", q.RefID)
		}
		refs[q.RefID] = true
		if q.Instant == q.Range {
			t.Errorf("query %s is both instant and range, or neither", q.RefID)
		}
		if q.Datasource != p.Datasource {
			t.Errorf("query %s: data source %+v", q.RefID, q.Datasource)
		}
	}
	if p.Type == "table" {
		testColumns(t, p)
	}
}

// testColumns wants a unit for every value of a table.
func testColumns(t *testing.T, p panelFile) {
	united := make(map[string]bool)
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if unit, is := property.Value.(string); property.ID == "unit" && is && slices.Contains(units, unit) {
				united[o.Matcher.Options] = true
			}
		}
	}
	for _, tr := range p.Transformations {
		for field, name := range tr.Options.RenameByName {
			if strings.HasPrefix(field, "Value") && !united[name] {
				t.Errorf("column %q has no unit", name)
			}
		}
	}
}

// TestNoDataSource finds data sources of the machine that a dashboard was made on.
func TestNoDataSource(t *testing.T) {
	uid := regexp.MustCompile(`"datasource": \{\s*"type": "([^"]*)",\s*"uid": "([^"]*)"`)
	for _, b := range boards(t) {
		text, err := os.ReadFile(b.file)
		if err != nil {
			t.Fatal(err)
		}
		found := uid.FindAllStringSubmatch(string(text), -1)
		if len(found) != strings.Count(string(text), `"datasource": `) {
			t.Errorf("%s: some data sources are no type and uid", b.file)
		}
		for _, f := range found {
			if source := f[1] + " " + f[2]; source != "prometheus ${datasource}" && source != "grafana -- Grafana --" {
				t.Errorf("%s: data source %s", b.file, source)
			}
		}
	}
}

// TestLinks wants the pages that the dashboards lead to.
func TestLinks(t *testing.T) {
	url := regexp.MustCompile(`"url": "([^"]*)"`)
	dashboard := regexp.MustCompile(`^/d/([a-z-]+)\?`)
	document := regexp.MustCompile(`^\$\{docs:raw\}/([\w./-]+)#([\w-]+)$`)
	uids := make(map[string]bool)
	for _, b := range boards(t) {
		uids[b.UID] = true
	}
	for _, b := range boards(t) {
		text, err := os.ReadFile(b.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range url.FindAllStringSubmatch(string(text), -1) {
			if d := dashboard.FindStringSubmatch(u[1]); d != nil {
				if !uids[d[1]] {
					t.Errorf("%s: %s is no dashboard's uid", b.file, d[1])
				}
				continue
			}
			if u[1] == "${docs:raw}/rules/${__value.raw}.md" {
				continue // a page for each rule
			}
			d := document.FindStringSubmatch(u[1])
			if d == nil {
				t.Errorf("%s: the link %s leads elsewhere", b.file, u[1])
				continue
			}
			testHeading(t, d[1], d[2])
		}
	}
}

func testHeading(t *testing.T, page, anchor string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../docs", page))
	if err != nil {
		t.Error(err)
		return
	}
	for line := range strings.Lines(string(text)) {
		heading, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if is && strings.HasPrefix(line, "#") && anchor == strings.ToLower(strings.ReplaceAll(strings.TrimSpace(heading), " ", "-")) {
			return
		}
	}
	t.Errorf("%s has no heading for #%s", page, anchor)
}
