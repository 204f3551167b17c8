package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

const namespace = "redis_keyhealth_"

// metrics are the labels of every family, by its name without the namespace.
type metrics map[string][]string

// tableRow is a row of docs/metrics.md: name, kind, labels.
var tableRow = regexp.MustCompile("(?m)^\\| `" + namespace + "(\\w+)` \\| \\w+ \\| ([^|]+) \\|")

// readMetrics reads the generated list of metrics.
func readMetrics(table string) (metrics, error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	m := make(metrics)
	for _, row := range tableRow.FindAllStringSubmatch(string(text), -1) {
		m[row[1]] = nil
		if row[2] != "–" {
			m[row[1]] = strings.Split(row[2], ", ")
		}
	}
	return m, nil
}

// labels are those of a family, or of the buckets or the count of a histogram.
func (m metrics) labels(name string) []string {
	family, isBucket := strings.CutSuffix(name, "_bucket")
	labels, known := m[strings.TrimSuffix(family, "_count")]
	if !known {
		panic(fmt.Sprintf("%s is not in the list of metrics", family))
	}
	if isBucket {
		labels = append(slices.Clone(labels), "le")
	}
	return labels
}

// selector picks what the variables of the dashboard choose, and the matchers.
func (m metrics) selector(name string, matchers ...string) string {
	labels := m.labels(name)
	chosen := []string{`job=~"$job"`, `instance=~"$instance"`}
	for _, v := range []string{"target", "node", "db", "namespace"} {
		if slices.Contains(labels, v) {
			chosen = append(chosen, fmt.Sprintf(`%s=~"$%s"`, v, v))
		}
	}
	return namespace + name + "{" + strings.Join(append(chosen, matchers...), ", ") + "}"
}

// last is a family as it is now, every series once: several exporters may watch
// the same target, and what they say of it must not add up.
func (m metrics) last(name string, matchers ...string) string {
	return maximum(m.selector(name, matchers...), m.labels(name)...)
}

// increase is what a counter of Redis's own affairs gained, every series once.
func (m metrics) increase(name, window string, matchers ...string) string {
	return maximum(fmt.Sprintf("increase(%s[%s])", m.selector(name, matchers...), window), m.labels(name)...)
}

// rate is the same for a second.
func (m metrics) rate(name string, matchers ...string) string {
	return maximum(fmt.Sprintf("rate(%s[$__rate_interval])", m.selector(name, matchers...)), m.labels(name)...)
}

// growth is by how much a gauge exceeds its least value in the time range.
func (m metrics) growth(name string) string {
	s := m.selector(name)
	return maximum(fmt.Sprintf("%s - min_over_time(%s[$__range])", s, s), m.labels(name)...)
}

// own is a family that tells of the exporter itself, so for each of them.
func (m metrics) own(name string, matchers ...string) string {
	return maximum(m.selector(name, matchers...), append([]string{"instance"}, m.labels(name)...)...)
}

// spent is what a counter of the exporters' own doings gains in a second: theirs
// do add up.
func (m metrics) spent(name string, by ...string) string {
	return sum(fmt.Sprintf("rate(%s[$__rate_interval])", m.selector(name)), by...)
}

// owned adds the owner of the namespace to an expression with these labels. The
// list of namespaces has no target: of several owners one is taken. A namespace
// that is not in the list stays, without one.
func (m metrics) owned(expr string, labels ...string) string {
	owner := fmt.Sprintf("topk by (namespace) (1, %s)", m.last("namespace_info"))
	return fmt.Sprintf("(%[1]s) * on (namespace) group_left (owner) %[2]s or on (%[3]s) (%[1]s)", expr, owner, strings.Join(labels, ", "))
}

func sum(expr string, by ...string) string     { return aggregate("sum", expr, by) }
func maximum(expr string, by ...string) string { return aggregate("max", expr, by) }
func minimum(expr string, by ...string) string { return aggregate("min", expr, by) }

func aggregate(operator, expr string, by []string) string {
	if len(by) == 0 {
		return fmt.Sprintf("%s(%s)", operator, expr)
	}
	return fmt.Sprintf("%s by (%s) (%s)", operator, strings.Join(by, ", "), expr)
}

// quantile is one of a snapshot's histogram, which is never a rate.
func quantile(q, buckets string, by ...string) string {
	return fmt.Sprintf("histogram_quantile(%s, %s)", q, sum(buckets, append(by, "le")...))
}
