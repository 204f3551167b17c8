package policy

// DocsURL is where the docs can be read: what a person is shown, by the report
// and by alerts, links below it. The pages of the main branch are good for older
// releases, too, as ids of rules are never used for anything else.
const DocsURL = "https://github.com/redis-keyhealth/redis_keyhealth_exporter/blob/main/docs/"

// DocURL is the page about a rule: why, an example, how to fix, how to exempt.
func DocURL(id string) string { return DocsURL + "rules/" + id + ".md" }
