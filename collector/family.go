package collector

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"redis_keyhealth_exporter/internal/snapshot"
)

// family is one row of THE metric table: what a metric is called, means and is
// labelled with, and where its values come from.
type family struct {
	group  string
	name   string // without the namespace
	help   string
	kind   kind
	scope  scope
	labels []string // behind the scope's
	class  class
	// collect sends the series of one node; of a scope without a node, of each
	// node of it in turn (perTarget: of the first one; self: once, without any).
	collect func(*snapshot.NodeState, *out)
}

type kind uint8

const (
	gauge kind = iota
	counter
	histogram
)

func (k kind) String() string { return [...]string{"gauge", "counter", "histogram"}[k] }

func (k kind) valueType() prometheus.ValueType {
	if k == counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// scope is what a family has one set of series for.
type scope uint8

const (
	perNode scope = iota
	perTarget
	self
)

func (s scope) labels() []string {
	return [][]string{perNode: {"target", "node"}, perTarget: {"target"}, self: {}}[s]
}

// class is how dear a family is when there are too many series.
type class uint8

const (
	totals     class = iota // never dropped
	breakdowns              // histograms and rules
	detail                  // a series per key
	numClasses = iota
)

func (f *family) allLabels() []string { return slices.Concat(f.scope.labels(), f.labels) }

// each collects the family over its scope.
func (f *family) each(v *view, o *out) {
	switch f.scope {
	case self:
		f.collect(nil, o)
	case perTarget:
		for _, target := range v.targets() {
			o.prefix = []string{target}
			for i := range v.nodes {
				if v.nodes[i].Status.Node.Target == target {
					f.collect(&v.nodes[i], o)
					break
				}
			}
		}
	default:
		for i := range v.nodes {
			n := &v.nodes[i]
			o.prefix = []string{n.Status.Node.Target, n.Status.Node.Node}
			f.collect(n, o)
		}
	}
}
