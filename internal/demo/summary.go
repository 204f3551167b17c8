package main

import (
	"fmt"
	"strings"
	"time"

	"redis_keyhealth_exporter/internal/web"
)

const (
	maxLargest = 8  // keys in the list of the largest
	maxName    = 48 // characters of a name that are shown
)

// summary is what was found, for a terminal of 100 columns. Names come last in
// their lines: not every character is one column wide.
func summary(node *web.NodeReport) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The first cycle took %.1f s and saw %s keys of %s: %d are big, %d of them critical.\n\n",
		node.Duration, web.FormatCount(node.Keys), web.FormatBytes(node.Bytes), node.BigKeys, node.CriticalKeys)
	writeRules(&b, node)
	writeLargest(&b, node)
	fmt.Fprintf(&b, "%-11s%9s  %s\n", "Database", "Keys", "Without TTL")
	for _, db := range node.Databases {
		fmt.Fprintf(&b, "%-11s%9s%13s\n", db.DB, web.FormatCount(db.Keys), web.FormatCount(db.WithoutTTL))
	}
	return b.String()
}

func writeRules(b *strings.Builder, node *web.NodeReport) {
	fmt.Fprintf(b, "%-27s%-11s%7s  %s\n", "Rule", "Level", "Keys", "The largest of them")
	for _, r := range node.Rules {
		fmt.Fprintf(b, "%-27s%-11s%7s", r.ID, r.Level, web.FormatCount(r.Keys))
		if len(r.Examples) > 0 {
			fmt.Fprintf(b, "  %s %s", r.Examples[0].DB, shortened(r.Examples[0].Key))
		}
		b.WriteByte('\n')
	}
	for _, r := range node.ServerRules {
		fmt.Fprintf(b, "%-27s%-11s%7s  %s\n", r.ID, r.Level, "server", r.Finding)
	}
	for _, id := range node.NotEvaluated {
		fmt.Fprintf(b, "%-38s%7s  not evaluated: not configured, or not to be told of this server\n", id, "–")
	}
	b.WriteByte('\n')
}

func writeLargest(b *strings.Builder, node *web.NodeReport) {
	fmt.Fprintf(b, "%-11s%9s%9s  %-10s%s\n", "Type", "Size", "Elements", "TTL", "The largest keys")
	for _, k := range node.TopBytes[:min(len(node.TopBytes), maxLargest)] {
		elements, ttl := "–", "none"
		if k.Type != "string" {
			elements = web.FormatCount(k.Length)
		}
		if k.Expires != nil {
			ttl = fmt.Sprintf("%.0f days", time.Until(*k.Expires).Hours()/24)
		}
		fmt.Fprintf(b, "%-11s%9s%9s  %-10s%s %s\n", k.Type, web.FormatBytes(k.Bytes), elements, ttl, k.DB, shortened(k.Key))
	}
	b.WriteByte('\n')
}

// shortened cuts what would not fit into a line.
func shortened(label string) string {
	if runes := []rune(label); len(runes) > maxName {
		return string(runes[:maxName-1]) + "…"
	}
	return label
}

// describe tells a key's type and size.
func describe(k *web.KeyReport) string {
	if k.Length < 0 || k.Type == "string" {
		return fmt.Sprintf("%s of %s", k.Type, web.FormatBytes(k.Bytes))
	}
	return fmt.Sprintf("%s of %s elements and %s", k.Type, web.FormatCount(k.Length), web.FormatBytes(k.Bytes))
}
