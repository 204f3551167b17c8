// Command dashboards writes the Grafana dashboards, as JSON, into the folder
// that it is run for: those of the project are made by make generate. What they
// have in common is said here once, so that all look and behave alike.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := write("docs/metrics.md", "dashboards"); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

// write makes every dashboard from the list of metrics, a file each.
func write(table, dir string) error {
	m, err := readMetrics(table)
	if err != nil {
		return err
	}
	for name, content := range files(m) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files are the dashboards by their file names.
func files(m metrics) map[string][]byte {
	all := make(map[string][]byte)
	for _, d := range []dashboard{overview(m), bigKeys(m), lifetimes(m), naming(m), cluster(m), server(m), scanner(m)} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(d.model(m)); err != nil {
			panic(err) // strings, numbers and lists: there is nothing that could fail
		}
		all[d.name+".json"] = b.Bytes()
	}
	return all
}
