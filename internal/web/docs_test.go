package web

import (
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"

	"redis_keyhealth_exporter/internal/policy"
)

var (
	links   = regexp.MustCompile(`href="([^"]*)"`)
	anchors = regexp.MustCompile(`<h[1-6] id="([^"]*)"`)
)

// TestDocs: each rule has a page, each page is served, and what links to another
// finds it there.
func TestDocs(t *testing.T) {
	t.Parallel()
	pages, err := renderDocs()
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range policy.Rules() {
		if _, ok := pages[strings.TrimPrefix(docOf(rule.ID), "docs/")]; !ok {
			t.Errorf("%s has no page", rule.ID)
		}
	}
	h := handler(t)
	if answer := get(h, "/docs"); answer.Header().Get("Location") != "/docs/" || answer.Code/100 != 3 {
		t.Errorf("/docs: %d to %q", answer.Code, answer.Header().Get("Location"))
	}
	for name := range pages {
		if link := `<a href="` + name + `">`; name != "" && !strings.Contains(string(pages[""]), link) {
			t.Errorf("%s is not in the list", name)
		}
	}
	for name, page := range pages {
		if answer := get(h, "/docs/"+name); answer.Code != http.StatusOK || answer.Body.String() != string(page) {
			t.Errorf("%s: %d", name, answer.Code)
		}
		for _, link := range links.FindAllStringSubmatch(string(page), -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			at := path.Join(path.Dir(name), target)
			if target == "" {
				at = name
			}
			other, ok := pages[at]
			if !ok {
				t.Errorf("%s links to %s, which is not served", name, link[1])
				continue
			}
			if anchor != "" && !hasAnchor(string(other), anchor) {
				t.Errorf("%s links to %s, which has no such heading", name, link[1])
			}
		}
	}
	for _, missing := range []string{"/docs/none.md", "/docs/rules", "/docs/docs.go", "/docs/..%2fgo.mod"} {
		if answer := get(h, missing); answer.Code != http.StatusNotFound {
			t.Errorf("%s: %d", missing, answer.Code)
		}
	}
}

func hasAnchor(page, id string) bool {
	for _, a := range anchors.FindAllStringSubmatch(page, -1) {
		if a[1] == id {
			return true
		}
	}
	return false
}
