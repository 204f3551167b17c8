package main

import (
	"fmt"
	"strings"
)

// dashboard is one file. Its name makes its address too.
type dashboard struct {
	name, title, about string
	sections           []section
}

// section is panels under a heading; without a title they have none.
type section struct {
	title  string
	panels []*panel
}

// model is the dashboard's JSON.
func (d dashboard) model(m metrics) object {
	panels := d.place()
	return object{
		"uid": uid(d.name), "title": "Redis key health: " + d.title, "description": d.about,
		"tags": []string{"redis", "keyhealth"}, "schemaVersion": 39, "version": 1, "id": nil,
		"editable": false, "graphTooltip": 1, "fiscalYearStartMonth": 0, "weekStart": "",
		"time": object{"from": "now-6h", "to": "now"}, "timezone": "browser", "refresh": "1m", "timepicker": object{},
		"templating":  object{"list": variables(m, panels)},
		"annotations": object{"list": annotations(m)},
		"links": []object{{
			"type": "dashboards", "title": "Key health", "tags": []string{"keyhealth"}, "asDropdown": true,
			"includeVars": true, "keepTime": true, "targetBlank": false, "icon": "external link",
		}},
		"panels": panels,
	}
}

// place lays the panels out from left to right, a new line where one is full.
func (d dashboard) place() []object {
	const columns = 24
	var panels []object
	y := 0
	for _, s := range d.sections {
		if s.title != "" {
			panels = append(panels, object{
				"id": len(panels) + 1, "type": "row", "title": s.title, "collapsed": false, "panels": []object{},
				"gridPos": object{"x": 0, "y": y, "w": columns, "h": 1},
			})
			y++
		}
		x, height := 0, 0
		for _, p := range s.panels {
			if x+p.width > columns {
				x, y, height = 0, y+height, 0
			}
			panels = append(panels, p.model(len(panels)+1, x, y))
			x, height = x+p.width, max(height, p.height)
		}
		y += height
	}
	return panels
}

// variables are the same everywhere, so that links keep the choices; those that
// change nothing here are hidden.
func variables(m metrics, panels []object) []object {
	list := []object{
		{"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "hide": 0, "refresh": 1, "regex": "", "multi": false, "includeAll": false, "options": []object{}, "current": object{}},
	}
	everything := fmt.Sprint(panels)
	matchers := ""
	for _, v := range []struct{ name, title, metric string }{
		{"job", "Job", "up"},
		{"instance", "Instance", "up"},
		{"target", "Target", "up"},
		{"node", "Node", "up"},
		{"db", "DB", "keys_without_ttl"},
		{"namespace", "Namespace", "rule_violations"},
	} {
		m.labels(v.metric) // it must be there
		hide, sort := 0, 1 // by the alphabet
		if v.name == "db" {
			sort = 3 // by number
		}
		if !strings.Contains(everything, fmt.Sprintf(`%s=~"$%s"`, v.name, v.name)) {
			hide = 2
		}
		query := fmt.Sprintf("label_values(%s%s{%s}, %s)", namespace, v.metric, matchers, v.name)
		list = append(list, object{
			"type": "query", "name": v.name, "label": v.title, "datasource": source(), "definition": query,
			"query": object{"qryType": 1, "query": query, "refId": "variable-" + v.name},
			"multi": true, "includeAll": true, "allValue": ".+", "refresh": 2, "sort": sort, "regex": "", "hide": hide,
			"current": object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}}, "options": []object{},
		})
		matchers = strings.TrimPrefix(fmt.Sprintf(`%s, %s=~"$%s"`, matchers, v.name, v.name), ", ")
	}
	return append(list, object{
		"type": "textbox", "name": "docs", "label": "Documentation", "query": docsDefault, "hide": 0, "skipUrlSync": false,
		"current":     object{"selected": true, "text": docsDefault, "value": docsDefault},
		"options":     []object{{"selected": true, "text": docsDefault, "value": docsDefault}},
		"description": "Where links to the runbook and to the rules lead: an exporter's /docs, at an address that a browser reaches.",
	})
}

// annotations are what happened to the keys.
func annotations(m metrics) []object {
	event := func(name, colour, expr, title, text, tags string) object {
		return object{
			"name": name, "datasource": source(), "enable": true, "hide": false, "iconColor": colour,
			"expr": expr, "step": "60s", "titleFormat": title, "textFormat": text, "tagKeys": tags,
		}
	}
	// The value is the time of the event, in milliseconds: with it the event has
	// the name of its key, and its right place.
	bigKey := event("New big keys", "red", m.last("big_key_first_seen_timestamp_seconds")+" * 1000",
		"New big key: {{severity}}", "{{key}} ({{key_type}}) in {{db}} of {{node}}", "severity,key_type,target")
	bigKey["useValueForTime"] = true
	suspect := event("Doubtful cycles", "yellow", m.last("snapshot_suspect"), // above 0 it is an event
		"Doubtful figures", "The keyspace of {{node}} changed under the scan", "target")
	return []object{
		{
			"builtIn": 1, "type": "dashboard", "name": "Annotations & Alerts", "enable": true, "hide": true,
			"datasource": object{"type": "grafana", "uid": "-- Grafana --"}, "iconColor": "rgba(0, 211, 255, 1)",
		},
		bigKey, suspect,
	}
}
