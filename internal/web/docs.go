package web

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"redis_keyhealth_exporter/docs"
)

//go:embed docs.html.tmpl
var docsTemplate string

// docOf is the page about a rule, below / of the exporter.
func docOf(rule string) string { return "docs/rules/" + rule + ".md" }

// anchor is a link to another file of the project.
var anchor = regexp.MustCompile(`<a href="([^":#]+)[^":]*">(.*?)</a>`)

// renderDocs makes a page of each document, under its path below docs, and one
// that lists them, under "". Raw HTML in them, such as comments, is left out, and
// so are links to what is not served.
func renderDocs() (map[string][]byte, error) {
	page, err := template.New("docs").Parse(docsTemplate)
	if err != nil {
		return nil, err
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	pages := map[string][]byte{}
	lists := map[string][]byte{} // by folder
	render := func(name string, source []byte) error {
		var body, whole bytes.Buffer
		if err := markdown.Convert(source, &body); err != nil {
			return err
		}
		inside := anchor.ReplaceAllStringFunc(body.String(), func(link string) string {
			parts := anchor.FindStringSubmatch(link)
			if _, err := fs.Stat(docs.Pages, path.Join(path.Dir(name), parts[1])); err != nil {
				return parts[2]
			}
			return link
		})
		err := page.Execute(&whole, struct {
			Title string
			Body  template.HTML
		}{cmp.Or(name, "documents"), template.HTML(inside)}) // of our own text, by goldmark, which escapes
		pages[name] = whole.Bytes()
		return err
	}
	err = fs.WalkDir(docs.Pages, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source, err := docs.Pages.ReadFile(name)
		if err != nil {
			return err
		}
		heading, _, _ := strings.Cut(string(source), "\n")
		folder := path.Dir(name)
		lists[folder] = fmt.Appendf(lists[folder], "- [%s](%s)\n", strings.TrimPrefix(heading, "# "), name)
		return render(name, source)
	})
	if err != nil {
		return nil, err
	}
	return pages, render("", fmt.Appendf(nil, "# Documents\n\n%s\n## Rules\n\n%s", lists["."], lists["rules"]))
}

// serveDocs answers with the document that the request's path names.
func serveDocs(pages map[string][]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.PathValue("page")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // a client that hangs up
	}
}
