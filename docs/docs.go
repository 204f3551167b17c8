// Package docs carries the documentation into the program, which serves it: who
// is paged finds the page about a rule in the version that runs.
package docs

import "embed"

// Pages are the documents in Markdown, by their path below docs.
//
//go:embed *.md rules/*.md
var Pages embed.FS
