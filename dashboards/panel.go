package main

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// object is a piece of a dashboard's JSON.
type object map[string]any

// query is what a panel asks Prometheus for, and how it calls the series.
type query struct{ expr, legend string }

// panel is one of a dashboard; sections place it.
type panel struct {
	title, about string
	kind         string
	width        int // of 24
	height       int
	targets      []object
	field        object // what holds for all fields
	overrides    []object
	transforms   []object
	options      object
}

// source is the data source variable: nothing of a dashboard names another.
func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

func newPanel(kind, title, about, unit string) *panel {
	p := &panel{
		title: title, about: about, kind: kind, width: 8, height: 8,
		field:   object{"unit": unit},
		options: object{},
	}
	if unit == "locale" {
		p.decimals(0) // a count may be an estimate
	}
	return p
}

func (p *panel) ask(extra object, queries ...query) *panel {
	for _, q := range queries {
		t := object{
			"datasource": source(), "editorMode": "code",
			"refId": string(rune('A' + len(p.targets))), "expr": q.expr, "legendFormat": q.legend,
		}
		maps.Copy(t, extra)
		p.targets = append(p.targets, t)
	}
	return p
}

// instant are the parts of a query that asks for now, not for a range.
func instant(format string) object {
	return object{"instant": true, "range": false, "format": format}
}

// reduced makes one value of what a series has.
func reduced() object {
	return object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}
}

// stat is one figure, or one for each query.
func stat(title, about, unit string, queries ...query) *panel {
	p := newPanel("stat", title, about, unit).size(4, 4).ask(instant("time_series"), queries...)
	p.options = object{
		"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto",
		"reduceOptions": reduced(), "textMode": "auto", "wideLayout": true,
	}
	return p.steps("text")
}

// series is figures over time.
func series(title, about, unit string, queries ...query) *panel {
	p := newPanel("timeseries", title, about, unit).ask(object{"range": true, "instant": false}, queries...)
	p.options = object{
		"legend":  object{"showLegend": true, "displayMode": "list", "placement": "bottom", "calcs": []string{}},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}
	p.field["min"] = 0
	p.field["color"] = object{"mode": "palette-classic"}
	p.field["custom"] = object{
		"drawStyle": "line", "lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": false,
	}
	return p
}

// stacked piles the series up to their sum.
func (p *panel) stacked() *panel {
	custom := p.field["custom"].(object)
	custom["stacking"] = object{"mode": "normal", "group": "A"}
	custom["fillOpacity"] = 40
	return p
}

// bars are one bar for each series, in their order.
func bars(title, about, unit string, q query) *panel {
	p := newPanel("bargauge", title, about, unit).ask(instant("time_series"), q)
	p.options = object{
		"displayMode": "basic", "orientation": "horizontal", "reduceOptions": reduced(),
		"showUnfilled": true, "valueMode": "text", "namePlacement": "left",
		"sizing": "manual", "minVizHeight": 16, "maxVizHeight": 26, "minVizWidth": 8, "text": object{"titleSize": 12, "valueSize": 14},
	}
	p.field["min"] = 0
	return p.coloured("blue")
}

// timeline is values that are words, over time.
func timeline(title, about string, q query, words ...word) *panel {
	p := newPanel("state-timeline", title, about, "none").ask(object{"range": true, "instant": false}, q)
	p.options = object{
		"mergeValues": true, "showValue": "never", "rowHeight": 0.8, "alignValue": "left",
		"legend":  object{"showLegend": true, "displayMode": "list", "placement": "bottom"},
		"tooltip": object{"mode": "single", "sort": "none"},
	}
	p.field["custom"] = object{"fillOpacity": 70, "lineWidth": 0}
	return p.steps("text").says(words...)
}

// distribution are the buckets of a snapshot's histogram, each for itself.
func distribution(title, about, buckets string, limits []bucket) *panel {
	p := bars(title, about, "short", query{sum(buckets, "le"), "{{le}}"})
	p.targets[0]["format"] = "heatmap"
	for i, b := range limits {
		name := "≤ " + b.name
		if b.limit == 0 {
			name = "> " + limits[i-1].name
		}
		p.override("byRegexp", b.pattern(), object{"id": "displayName", "value": name})
	}
	return p
}

// bucket is one of a histogram; the one without a limit comes last.
type bucket struct {
	limit float64
	name  string
}

// pattern matches the label le, which servers and formats spell differently.
func (b bucket) pattern() string {
	if b.limit == 0 {
		return `/^\+Inf$/`
	}
	short := strings.NewReplacer(".", `\.`, "+", `\+`).Replace(strconv.FormatFloat(b.limit, 'g', -1, 64))
	return fmt.Sprintf(`/^(%s|%s(\.0)?)$/`, short, strconv.FormatFloat(b.limit, 'f', -1, 64))
}

func (p *panel) size(width, height int) *panel {
	p.width, p.height = width, height
	return p
}

// steps colours values: the first colour, and others from a value on.
func (p *panel) steps(first string, more ...any) *panel {
	p.field["color"] = object{"mode": "thresholds"}
	p.field["thresholds"] = thresholds(first, more...)
	return p
}

func thresholds(first string, more ...any) object {
	steps := []object{{"color": first, "value": nil}}
	for i := 0; i < len(more); i += 2 {
		steps = append(steps, object{"value": more[i], "color": more[i+1]})
	}
	return object{"mode": "absolute", "steps": steps}
}

// limit draws a line at a value that is too much.
func (p *panel) limit(value float64) *panel {
	p.field["thresholds"] = thresholds("transparent", value, "red")
	p.field["custom"].(object)["thresholdsStyle"] = object{"mode": "dashed"}
	return p
}

// coloured gives all values one colour.
func (p *panel) coloured(colour string) *panel {
	p.field["color"] = object{"mode": "fixed", "fixedColor": colour}
	return p
}

// drawn is another style than lines.
func (p *panel) drawn(style string) *panel {
	custom := p.field["custom"].(object)
	custom["drawStyle"], custom["fillOpacity"] = style, 60
	return p
}

// logarithmic is an axis for values of several magnitudes.
func (p *panel) logarithmic() *panel {
	delete(p.field, "min")
	p.field["custom"].(object)["scaleDistribution"] = object{"type": "log", "log": 2}
	return p
}

// steep is an axis for counts that may be 0 or many.
func (p *panel) steep() *panel {
	delete(p.field, "min")
	p.field["custom"].(object)["scaleDistribution"] = object{"type": "symlog", "linearThreshold": 1, "log": 10}
	return p
}

// listed names the series beside the graph, with their last values.
func (p *panel) listed() *panel {
	p.options["legend"] = object{"showLegend": true, "displayMode": "table", "placement": "right", "calcs": []string{"lastNotNull"}, "sortBy": "Last *", "sortDesc": true}
	return p
}

// byLevel are the colours of the levels of rules.
func (p *panel) byLevel() *panel {
	return p.colours("mandatory", "red", "recommended", "orange", "advisory", "blue")
}

// whole tells that a share ends at 1.
func (p *panel) whole() *panel {
	p.field["max"] = 1
	return p
}

// empty is what stands there instead of no data.
func (p *panel) empty(text string) *panel {
	p.field["noValue"] = text
	return p
}

// decimals are the digits behind the point.
func (p *panel) decimals(n int) *panel {
	p.field["decimals"] = n
	return p
}

// says replaces values by words.
func (p *panel) says(words ...word) *panel {
	p.field["mappings"] = mappings(words)
	return p
}

// leads makes the panel's values a link.
func (p *panel) leads(to ...object) *panel {
	p.field["links"] = to
	return p
}

func (p *panel) override(matcher, of string, properties ...object) *panel {
	p.overrides = append(p.overrides, object{
		"matcher": object{"id": matcher, "options": of}, "properties": properties,
	})
	return p
}

// colours fixes those of some series, by name.
func (p *panel) colours(pairs ...string) *panel {
	for i := 0; i < len(pairs); i += 2 {
		p.override("byName", pairs[i], object{
			"id": "color", "value": object{"mode": "fixed", "fixedColor": pairs[i+1]},
		})
	}
	return p
}

// bySeverity are the colours of the tiers.
func (p *panel) bySeverity() *panel { return p.colours("critical", "red", "warning", "orange") }

// byType gives a type the same colour everywhere.
func (p *panel) byType() *panel {
	return p.colours("string", "blue", "hash", "green", "list", "yellow", "set", "purple",
		"zset", "orange", "stream", "semi-dark-red", "module", "dark-green", "unknown", "gray")
}

// word is a text in place of a value; of a number it may be any from it on.
type word struct {
	value        string
	from         float64 // counts if value is empty
	text, colour string
}

func mappings(words []word) []object {
	exact := make(object)
	list := make([]object, 0, len(words))
	for i, w := range words {
		result := object{"color": w.colour, "index": i}
		if w.text != "" {
			result["text"] = w.text
		}
		if w.value != "" {
			exact[w.value] = result
			continue
		}
		list = append(list, object{"type": "range", "options": object{"from": w.from, "to": nil, "result": result}})
	}
	if len(exact) > 0 {
		list = append(list, object{"type": "value", "options": exact})
	}
	return list
}

// model is the panel's JSON.
func (p *panel) model(id, x, y int) object {
	return object{
		"id": id, "type": p.kind, "title": p.title, "description": p.about, "datasource": source(),
		"gridPos":     object{"x": x, "y": y, "w": p.width, "h": p.height},
		"targets":     p.targets,
		"fieldConfig": object{"defaults": p.field, "overrides": orEmpty(p.overrides)},
		"options":     p.options, "transformations": orEmpty(p.transforms),
	}
}

// orEmpty is a list that becomes [] where nil would become null.
func orEmpty(list []object) []object {
	if list == nil {
		return []object{}
	}
	return list
}
