package web

import (
	"encoding/json"
	"errors"
	"html/template"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

var errBroken = errors.New("broken on purpose")

func TestReportPage(t *testing.T) {
	t.Parallel()
	const advice = "What to do: "
	for _, c := range []struct {
		name  string
		state snapshot.NodeState
		shows []string
		hides []string
	}{
		{
			"being scanned", shop(),
			[]string{"● up", "10.0.0.8:6379 · replica of 10.0.0.7:6379 · redis 7.4.2", "A cycle is running: 37 % done", "width:37.0%", "4,812,005", "&gt; 99.9 %", "title=\"broken by: "},
			[]string{advice, "Doubtful", "No cycle is complete", "The keyspace is empty", "tried again", "Cycles start"},
		},
		{
			"before its load is known", fresh(),
			[]string{"<b>1</b> key ·", "<b>42</b> keys ·"},
			[]string{"of one core"},
		},
		{
			"between cycles", idle(),
			[]string{"Cycles start at least 1 min apart", "3.1 % of one core"},
			[]string{"A cycle is running", "tried again"},
		},
		{
			"down", down(),
			[]string{"● down", "<b>down</b>: dial tcp 10.0.0.8:6379: connect: connection refused", advice + "check that Redis runs", "the last that there are", "tried again", "4,812,005"},
			[]string{"● up", "Cycles start"},
		},
		{
			"not contacted", unscanned(),
			[]string{"● not contacted yet", "No cycle is complete yet", "10.0.0.7:6379"},
			[]string{"● up", "● down", advice, "Rules", "Largest keys", "replica", "Keys without TTL", " · </p>"},
		},
		{
			"refused", refused(),
			[]string{"● down", "<b>auth</b>: WRONGPASS", advice + "check --redis.user", "No cycle is complete yet"},
			[]string{"Largest keys", "the last that there are"},
		},
		{
			"in its first cycle", firstCycle(),
			[]string{"No cycle is complete yet", "A cycle is running", "Keys without TTL", "1,204,331"},
			[]string{"Largest keys", "Found"},
		},
		{
			"empty", empty(),
			[]string{"The keyspace is empty", "0 keys", "· primary ·"},
			[]string{"Largest keys", "Keys without TTL", "NaN", "–"},
		},
		{
			"suspect", suspect(),
			[]string{"<b>Doubtful figures</b>: FLUSHALL, FLUSHDB or SWAPDB was called", "4,812,005"},
			[]string{advice},
		},
		{
			"without INFO", infoDenied(),
			[]string{"the server does not tell", "<code>info</code>", "4,812,005", "1,204,331"},
			[]string{advice, " · </p>", ">-1<"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			page := render(t, c.state)
			for _, text := range c.shows {
				if !strings.Contains(page, text) {
					t.Errorf("%q is missing", text)
				}
			}
			for _, text := range append(c.hides, "<no value>", "ZgotmplZ", "%!") {
				if strings.Contains(page, text) {
					t.Errorf("%q is there", text)
				}
			}
		})
	}
}

// TestReportEscapes: a key's name is text, wherever it stands.
func TestReportEscapes(t *testing.T) {
	t.Parallel()
	page := render(t, shop())
	if n := strings.Count(page, "&lt;script&gt;alert(1)&lt;/script&gt;"); n != 2 { // largest keys, ttl_missing
		t.Errorf("the name is there %d times", n)
	}
	state := down()
	state.Status.Node.Target = `<img src=x onerror="alert(1)">`
	state.Status.LastFault = errors.New("<b onclick=alert(1)>")
	state.Status.Info.Server = "<style>"
	for _, text := range []string{page, render(t, state)} {
		for _, active := range []string{"<script", "<img", "onclick=alert(1)>", "<style>\n\n", "javascript:", " 7.4.2<style>"} {
			if strings.Contains(strings.ToLower(text), active) {
				t.Errorf("%q got through", active)
			}
		}
	}
}

// TestReportKeyNames: names are shown whole, and each in the element that lets a
// long one break.
func TestReportKeyNames(t *testing.T) {
	t.Parallel()
	page := render(t, shop())
	for name, times := range map[string]int{longName: 2, `queue:mail\x0a`: 3, `\e`: 1, "shop:orders:2026": 1} {
		in := strings.Count(page, `<span class="key">`+template.HTMLEscapeString(name)+"</span>")
		if all := strings.Count(page, template.HTMLEscapeString(name)); in != times || all != times {
			t.Errorf("%q is there %d times, %d of them as a key; want %d", name, all, in, times)
		}
	}
}

// TestReportDocs: each rule, broken, kept or not judged, leads to its page once.
func TestReportDocs(t *testing.T) {
	t.Parallel()
	page := render(t, shop())
	for _, rule := range policy.Rules() {
		link := `<a href="docs/rules/` + rule.ID + `.md">` + rule.ID + "</a>"
		if n := strings.Count(page, link); n != 1 {
			t.Errorf("%s is there %d times", link, n)
		}
	}
	for _, rule := range report(shop()).Nodes[0].Rules {
		if rule.Doc != docOf(rule.ID) {
			t.Errorf("%s: doc is %q", rule.ID, rule.Doc)
		}
	}
}

// TestReportOrder: what is most binding stands first, what is in order apart.
func TestReportOrder(t *testing.T) {
	t.Parallel()
	n := report(shop()).Nodes[0]
	ids := func(rules []RuleReport) (list []string) {
		for _, r := range rules {
			list = append(list, r.ID)
		}
		return list
	}
	if got, want := ids(n.Broken()), []string{"name_special_char", "big_string", "many_elements", "ttl_missing"}; !slices.Equal(got, want) {
		t.Errorf("broken: %v, want %v", got, want)
	}
	if kept := ids(n.Kept()); !slices.Contains(kept, "ttl_too_long") || slices.Contains(kept, "big_string") || len(kept)+4 != len(n.Rules) {
		t.Errorf("kept: %v", kept)
	}
	if !slices.Equal(n.NotEvaluated, []string{"name_unknown_prefix"}) {
		t.Errorf("not judged: %v", n.NotEvaluated)
	}
	serverIDs := func(rules []ServerReport) (list []string) {
		for _, r := range rules {
			list = append(list, r.ID)
		}
		return list
	}
	for _, tc := range []struct {
		got  []ServerReport
		want []string
	}{
		{n.ServerBroken(), []string{"cmd_forbidden_used", "maxmemory_policy"}},
		{n.ServerKept(), []string{"cmd_forbidden_enabled", "multi_db"}},
		{n.ServerNotJudged(), []string{"cmd_multi_key_used", "lazyfree_off", "limits_unset", "mixed_business"}},
	} {
		if got := serverIDs(tc.got); !slices.Equal(got, tc.want) {
			t.Errorf("server rules: %v, want %v", got, tc.want)
		}
	}
}

func TestReportJSON(t *testing.T) {
	t.Parallel()
	for _, state := range []snapshot.NodeState{shop(), down(), unscanned(), refused(), empty(), suspect(), infoDenied()} {
		w := get(handler(t, state), "/report.json")
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json; charset=utf-8" {
			t.Fatalf("%d %s", w.Code, w.Header().Get("Content-Type"))
		}
		if body := w.Body.String(); strings.Contains(body, ": null") || strings.Contains(body, "<") {
			t.Errorf("null or markup in %s", body)
		}
		var decoded Report
		if err := json.Unmarshal(w.Body.Bytes(), &decoded); err != nil {
			t.Fatal(err)
		}
		want := report(state)
		want.Generated = decoded.Generated
		if !reflect.DeepEqual(decoded, want) {
			t.Errorf("decoded differs:\n%+v\n%+v", decoded, want)
		}
	}
	if body := get(handler(t), "/report.json").Body.String(); !strings.Contains(body, `"nodes": []`) {
		t.Errorf("without nodes: %s", body)
	}
}

func TestReportNumbers(t *testing.T) {
	t.Parallel()
	n := report(shop()).Nodes[0]
	if n.Keys != 4_812_005 || n.BigKeys != 21 || n.CriticalKeys != 3 || n.Bytes != 1.9e9+8e8+1.1e6+1<<20 {
		t.Errorf("keys %v, big %v, critical %v, bytes %v", n.Keys, n.BigKeys, n.CriticalKeys, n.Bytes)
	}
	if n.WithoutTTL != 1_204_332 || n.WithoutTTLRatio != 1_204_332.0/4_812_005 || n.NamingRatio != 2912.0/4_812_005 {
		t.Errorf("without TTL %v (%v), naming %v", n.WithoutTTL, n.WithoutTTLRatio, n.NamingRatio)
	}
	if len(n.Types) != 4 || n.Types[3] != (TypeReport{"db3", "list", 1, 1 << 20}) {
		t.Errorf("types: %+v", n.Types)
	}
	expires := now.Add(26 * time.Hour)
	if want := (KeyReport{"db0", "shop:basket:4711", "string", 6 << 20, 5_300_000, &expires}); !reflect.DeepEqual(n.TopBytes[1], want) {
		t.Errorf("the second largest key: %+v", n.TopBytes[1])
	}
	if want := (KeyReport{"db0", `queue:mail\x0a`, "stream", 900 << 10, 84_000, nil}); !reflect.DeepEqual(n.TopElements[1], want) {
		t.Errorf("the second longest collection: %+v", n.TopElements[1])
	}
	if got := report(unscanned()).Nodes[0].Server; got != "" {
		t.Errorf("a server that is not known: %q", got)
	}
	for _, c := range []struct {
		name  string
		state snapshot.NodeState
		want  int64
	}{
		{"not asked", unscanned(), -1},
		{"INFO denied", infoDenied(), -1},
		{"empty", empty(), 0},
	} {
		if got := report(c.state).Nodes[0].WithoutTTL; got != c.want {
			t.Errorf("%s: %d keys without TTL, want %d", c.name, got, c.want)
		}
	}
}

// TestBrokenPage: half a page is never served as a whole one.
func TestBrokenPage(t *testing.T) {
	t.Parallel()
	r := newReports(options(shop()))
	r.page = template.Must(template.New("").Parse("half a page{{.Nothing}}"))
	w := get(http.HandlerFunc(r.html), "/report")
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "half a page") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

func report(states ...snapshot.NodeState) Report {
	return newReports(options(states...)).build(now)
}

// render is the page as of now.
func render(t *testing.T, states ...snapshot.NodeState) string {
	t.Helper()
	r := newReports(options(states...))
	var page strings.Builder
	if err := r.page.Execute(&page, r.build(now)); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// TestReportOfNamespaces: a rule is shown at its worst level among the namespaces
// where keys break it, with the limit for keys of none.
func TestReportOfNamespaces(t *testing.T) {
	t.Parallel()
	rule, err := policy.Find(policy.Rules(), "ttl_too_long")
	if err != nil {
		t.Fatal(err)
	}
	unknown := snapshot.Estimate{Stderr: math.Inf(1)}
	for _, c := range []struct {
		about      string
		violations [3]snapshot.Estimate // of namespaces that are mandatory, recommended, advisory
		want       string
		keys       float64
	}{
		{"all break it", [3]snapshot.Estimate{{Value: 1}, {Value: 2}, {Value: 3}}, "mandatory", 6},
		{"two break it", [3]snapshot.Estimate{{}, {Value: 2}, {Value: 3}}, "recommended", 5},
		{"one breaks it", [3]snapshot.Estimate{{}, {}, {Value: 3}}, "advisory", 3},
		{"none breaks it", [3]snapshot.Estimate{}, "mandatory", 0},
		{"one is exempt", [3]snapshot.Estimate{unknown, {}, {}}, "recommended", 0},
		{"all are exempt", [3]snapshot.Estimate{unknown, unknown, unknown}, "recommended", 0},
	} {
		n := idle()
		list := &n.Snapshot.DBs[0].Namespaces
		*list = nil
		for i, level := range []policy.Level{policy.Mandatory, policy.Recommended, policy.Advisory} {
			ns := snapshot.Namespace{Name: level.String(), Levels: make([]policy.Level, len(policy.Rules())), Violations: make([]snapshot.Estimate, len(policy.Rules()))}
			ns.Levels[rule], ns.Violations[rule] = level, c.violations[i]
			*list = append(*list, ns)
		}
		n.Snapshot.Rules[rule] = snapshot.Rule{Level: policy.Recommended, Violated: "a TTL longer than 1h"} // by the policy of the cycle
		report := report(n).Nodes[0]
		i := slices.IndexFunc(report.Rules, func(r RuleReport) bool { return r.ID == "ttl_too_long" })
		if r := report.Rules[i]; r.Level != c.want || r.Keys != c.keys || r.Violated != "a TTL longer than 1h" {
			t.Errorf("%s: %+v", c.about, r)
		}
	}
}

// TestReload: only POST asks for it, and what went wrong is said.
func TestReload(t *testing.T) {
	t.Parallel()
	var reloads int
	var failure error
	o := options()
	o.Reload = func() error { reloads++; return failure }
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	send := func(method string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/-/reload", nil))
		return w
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
		if w := send(method); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" || reloads != 0 {
			t.Errorf("%s: %d, allowed %q, %d reloads", method, w.Code, w.Header().Get("Allow"), reloads)
		}
	}
	if w := send(http.MethodPost); w.Code != http.StatusOK || reloads != 1 {
		t.Errorf("%d, %d reloads", w.Code, reloads)
	}
	failure = errors.New("policy.yml:3: no")
	if w := send(http.MethodPost); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "policy.yml:3: no") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestReportEstimates: what was sampled is shown with twice its standard error,
// what was judged of every key without; namespaces add up by their variances.
func TestReportEstimates(t *testing.T) {
	t.Parallel()
	n := shop()
	list := &n.Snapshot.DBs[0].Namespaces
	second := snapshot.Namespace{Name: "second", Levels: (*list)[0].Levels, Violations: make([]snapshot.Estimate, len(policy.Rules()))}
	for i, r := range policy.Rules() {
		switch r.ID {
		case "ttl_missing":
			(*list)[0].Violations[i] = snapshot.Estimate{Value: 1000, Stderr: 30}
			second.Violations[i] = snapshot.Estimate{Value: 500, Stderr: 40}
		case "big_string":
			second.Violations[i] = snapshot.Estimate{Stderr: math.Inf(1)} // none of its keys was sampled
		}
	}
	*list = append(*list, second)
	page := render(t, n)
	if n := strings.Count(page, "±"); n != 1 || !strings.Contains(page, "<b>1,500</b> <span title=\"estimated from a sample, with twice the standard error\">± 100</span> keys") {
		t.Errorf("%d estimates are shown", n)
	}
}
