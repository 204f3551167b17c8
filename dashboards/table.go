package main

import (
	"slices"
	"strings"
)

// column is one of a table: a label of its rows, or the value of a query.
type column struct {
	name       string
	label      string // or
	expr       string
	unit       string // of a value
	properties []object
}

// label is a column of a label's values.
func label(name, of string, properties ...object) column {
	return column{name: name, label: of, properties: properties}
}

// value is a column of a query's values.
func value(name, unit, expr string, properties ...object) column {
	return column{name: name, expr: expr, unit: unit, properties: properties}
}

// table joins queries with the same labels, a row for each set of them, ordered
// by a column. Labels without a column are left out, so the rows' other labels
// must tell them apart.
func table(title, about, order string, columns ...column) *panel {
	p := newPanel("table", title, about, "none").size(24, 8)
	position, names, hidden := make(object), make(object), object{"Time": true}
	shown := make(map[string]bool)
	for _, c := range columns {
		shown[c.label] = true
	}
	for i, c := range columns {
		field := c.label
		if c.expr != "" {
			p.ask(instant("table"), query{c.expr, ""})
			field = "Value #" + p.targets[len(p.targets)-1]["refId"].(string)
			if field == "Value #A" { // as it is called when no other query finds anything
				position["Value"], names["Value"] = i, c.name
			}
		}
		position[field], names[field] = i, c.name
		// Otherwise the cell would say what the empty table says.
		properties := append([]object{absent("–")}, c.properties...)
		if c.expr == "" {
			properties = append(properties, object{"id": "custom.filterable", "value": true})
		}
		if c.unit != "" {
			properties = append(properties, object{"id": "unit", "value": c.unit})
		}
		if c.unit == "locale" {
			properties = append(properties, digits(0)) // a count may be an estimate
		}
		p.override("byName", c.name, properties...)
	}
	for _, l := range []string{"target", "node", "db", "namespace", "key_type", "severity", "level", "instance", "owner"} {
		if !shown[l] {
			hidden[l] = true
		}
	}
	p.transforms = []object{
		{"id": "merge", "options": object{}},
		{"id": "organize", "options": object{"excludeByName": hidden, "indexByName": position, "renameByName": names}},
	}
	p.options = object{
		"showHeader": true, "cellHeight": "sm", "footer": object{"show": false},
		"sortBy": []object{{"displayName": strings.TrimPrefix(order, "-"), "desc": strings.HasPrefix(order, "-")}},
	}
	p.field["custom"] = object{"align": "auto", "filterable": false, "inspect": false}
	return p
}

// wide is the width of a column in pixels.
func wide(pixels int) object { return object{"id": "custom.width", "value": pixels} }

// digits are those behind the point.
func digits(n int) object { return object{"id": "decimals", "value": n} }

// painted colours a column's values by thresholds.
func painted(first string, more ...any) []object {
	return []object{
		{"id": "thresholds", "value": thresholds(first, more...)},
		{"id": "color", "value": object{"mode": "thresholds"}},
		{"id": "custom.cellOptions", "value": object{"type": "color-text"}},
	}
}

// spoken replaces a column's values by coloured words.
func spoken(words ...word) []object {
	return []object{
		{"id": "mappings", "value": mappings(words)},
		{"id": "custom.cellOptions", "value": object{"type": "color-text"}},
	}
}

// linked makes a column's values links.
func linked(to ...object) object { return object{"id": "links", "value": to} }

// absent is what stands for no value.
func absent(text string) object { return object{"id": "noValue", "value": text} }

// gauged draws a column's values as bars.
func gauged(colour string) []object {
	return []object{
		{"id": "custom.cellOptions", "value": object{"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}},
		{"id": "color", "value": object{"mode": "fixed", "fixedColor": colour}},
		{"id": "min", "value": 0},
	}
}

// broad lets a column take what the others leave.
func broad(c column) column {
	c.properties = slices.DeleteFunc(slices.Clone(c.properties), func(p object) bool { return p["id"] == "custom.width" })
	return c
}
