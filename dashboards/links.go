package main

import (
	"fmt"
	"strings"
)

// Where the documentation is read, a variable that the reader may change. Every
// exporter serves its own, but where Prometheus scrapes it a browser may not reach
// it: docsDefault is that of docker compose, and of a kubectl port-forward.
const (
	docsURL     = "${docs:raw}/"
	docsDefault = "http://localhost:10121/docs"
)

// uid is a dashboard's fixed address.
func uid(name string) string { return "redis-keyhealth-" + name }

// page is a link to the documentation.
func page(title, path string) object {
	return object{"title": title, "url": docsURL + path, "targetBlank": true}
}

// runbook is a link to what is said there of an alert.
func runbook(title, alert string) object {
	return page(title, "runbook.md#"+strings.ToLower(alert))
}

// board is a link to another dashboard with the same choices.
func board(title, name string) object {
	return object{"title": title, "url": boardURL(name, "${target:queryparam}", "${node:queryparam}", "${db:queryparam}", "${namespace:queryparam}")}
}

// boardOf is a link to another dashboard, of the target in the row.
func boardOf(title, name string) object {
	return object{"title": title, "url": boardURL(name, "var-target=${__data.fields.Target:percentencode}")}
}

func boardURL(name string, choices ...string) string {
	url := fmt.Sprintf("/d/%s?${__url_time_range}&${datasource:queryparam}&${job:queryparam}&${instance:queryparam}", uid(name))
	for _, c := range choices {
		url += "&" + c
	}
	return url
}

// Columns that many tables have.

func targetColumn() column {
	return label("Target", "target", wide(120), linked(boardOf("Big keys of ${__value.text}", "big-keys"), boardOf("Its scan", "scanner")))
}

func nodeColumn() column { return label("Node", "node", wide(150)) }

func dbColumn() column { return label("DB", "db", wide(60)) }

func namespaceColumn() column { return label("Namespace", "namespace", wide(130)) }

func ownerColumn() column { return label("Owner", "owner", wide(130)) }

func typeColumn() column { return label("Type", "key_type", wide(85)) }

// keyColumn leads from a key's name to what can be done about it.
func keyColumn(alert string) column {
	return label("Key", "key", linked(runbook("How to fix it", alert)))
}

func severityColumn() column {
	return label("Severity", "severity", append(spoken(word{value: "critical", colour: "red"}, word{value: "warning", colour: "orange"}), wide(105))...)
}

// ruleColumn leads to the rule's page.
func ruleColumn() column {
	return label("Rule", "rule", linked(page("What it says, and how to fix a key", "rules/${__value.raw}.md")))
}

func levelColumn() column {
	return label("Level", "level", append(spoken(word{value: "mandatory", colour: "red"}, word{value: "recommended", colour: "orange"}, word{value: "advisory", colour: "blue"}), wide(130))...)
}
