// Package collector turns what is known of the nodes into metrics. A scrape
// copies pointers to finished results: it never talks to Redis.
package collector

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

const namespace = "redis_keyhealth_"

// Source is what is scanned; a scanner.Supervisor is one.
type Source interface {
	States() []snapshot.NodeState
}

// Options are the settings of a collector.
type Options struct {
	Source        Source
	MaxSeries     int // detail is dropped before a scrape has more
	Configuration func() Configuration
}

// Configuration is what is shown of the one that is in use.
type Configuration struct {
	Loaded     time.Time // when it was taken over
	Failed     bool      // a later one could not be
	Namespaces []policy.Namespace
}

// Collector is a prometheus.Collector over the families table.
type Collector struct {
	opts     Options
	families []family
	descs    []*prometheus.Desc // of the family of the same index
}

// New makes a collector.
func New(opts Options) *Collector {
	c := &Collector{opts: opts, families: families()}
	for _, f := range c.families {
		c.descs = append(c.descs, prometheus.NewDesc(namespace+f.name, f.help, f.allLabels(), nil))
	}
	return c
}

// Describe sends every family.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		ch <- desc
	}
}

// Collect sends what is known now. Where that is more than MaxSeries, whole
// classes of families are left out, the most detailed first.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	view := &view{nodes: c.opts.Source.States(), configuration: c.opts.Configuration()}
	view.limitDBs(c.opts.MaxSeries)
	byClass := [numClasses][]prometheus.Metric{}
	series, total := [numClasses]int{}, 1 // that of series_dropped
	for i, f := range c.families {
		if f.collect == nil {
			continue // seriesDropped, below
		}
		o := &out{desc: c.descs[i], kind: f.kind, view: view}
		if f.class == detail {
			o.seen = map[string]bool{}
		}
		f.each(view, o)
		view.dropped += o.invalid
		byClass[f.class] = append(byClass[f.class], o.metrics...)
		series[f.class] += o.series
		total += o.series
	}
	for class := detail; class > totals && total > c.opts.MaxSeries; class-- {
		view.dropped, total = view.dropped+series[class], total-series[class]
		byClass[class] = nil
	}
	for _, metrics := range byClass {
		for _, m := range metrics {
			ch <- m
		}
	}
	dropped := slices.IndexFunc(c.families, func(f family) bool { return f.collect == nil })
	ch <- prometheus.MustNewConstMetric(c.descs[dropped], prometheus.GaugeValue, float64(view.dropped))
}

// view is what one scrape sees.
type view struct {
	nodes         []snapshot.NodeState
	configuration Configuration
	shown         map[dbID]bool // databases whose series are sent; nil = all
	dropped       int
}

type dbID struct {
	node keyspace.NodeID
	db   int
}

// totalsPerDB is about how many series a database has that are never dropped.
const totalsPerDB = 80

// limitDBs keeps servers with thousands of databases within bounds, before any
// series of theirs is made: those with most keys are shown.
func (v *view) limitDBs(maxSeries int) {
	keys := map[dbID]float64{}
	for i := range v.nodes {
		n := &v.nodes[i]
		for _, db := range n.Status.Info.DBs {
			keys[dbID{n.Status.Node, db.DB}] = float64(db.Keys)
		}
		if n.Snapshot != nil {
			for j := range n.Snapshot.DBs {
				db := &n.Snapshot.DBs[j]
				keys[dbID{n.Status.Node, db.DB}] = max(keys[dbID{n.Status.Node, db.DB}], float64(db.Named))
			}
		}
	}
	limit := maxSeries / totalsPerDB
	if len(keys) <= limit {
		return
	}
	ids := slices.SortedFunc(maps.Keys(keys), func(a, b dbID) int {
		return cmp.Or(cmp.Compare(keys[b], keys[a]), cmp.Compare(a.db, b.db), cmp.Compare(a.node.Node, b.node.Node))
	})
	v.shown = make(map[dbID]bool, limit)
	for _, id := range ids[:limit] {
		v.shown[id] = true
	}
}

// shows tells whether a database's series are sent, and counts those that are
// not.
func (v *view) shows(n *snapshot.NodeState, db, series int) bool {
	if v.shown == nil || v.shown[dbID{n.Status.Node, db}] {
		return true
	}
	v.dropped += series
	return false
}

// targets are the names of the deployments, each once, in order.
func (v *view) targets() []string {
	var names []string
	for i := range v.nodes {
		names = append(names, v.nodes[i].Status.Node.Target)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// out gathers one family's series.
type out struct {
	desc    *prometheus.Desc
	kind    kind
	view    *view
	prefix  []string // values of the scope's labels
	metrics []prometheus.Metric
	series  int // of metrics: a histogram has one for each bucket
	invalid int
	seen    map[string]bool // label values that were sent; nil = cannot be double
}

// send adds a series. One that the exposition would choke on costs itself, not
// the scrape.
func (o *out) send(v float64, labels ...string) {
	values := append(slices.Clip(o.prefix), labels...)
	if o.seen != nil {
		id := strings.Join(values, "\xff") // no UTF-8: never part of a value
		if o.seen[id] {
			return
		}
		o.seen[id] = true
	}
	m, err := prometheus.NewConstMetric(o.desc, o.kind.valueType(), v, values...)
	o.add(m, err, 1)
}

// sendHistogram adds a snapshot's histogram; nil = nothing to say.
func (o *out) sendHistogram(h *snapshot.Histogram, labels ...string) {
	if h == nil {
		return
	}
	values := append(slices.Clip(o.prefix), labels...)
	m, err := prometheus.NewConstHistogram(o.desc, h.Count(), h.Sum, h.Cumulative(), values...)
	o.add(m, err, len(h.Counts)+2) // the buckets, sum and count
}

func (o *out) add(m prometheus.Metric, err error, series int) {
	if err != nil {
		o.invalid += series
		return
	}
	o.metrics = append(o.metrics, m)
	o.series += series
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// unix is a time as Prometheus wants it; 0 = never.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
