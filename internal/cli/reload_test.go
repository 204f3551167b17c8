package cli

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/testredis"
)

const (
	// sessionsPolicy has a namespace of the keys that plant made.
	sessionsPolicy = `
namespaces:
- name: sessions
  match: "shop:session:*"
  owner: identity
  rules:
    ttl_too_long: {max: 1m, level: mandatory}
`
	brokenPolicy = "rules: {}\nnamespaces: [{name: default, match: a}]\n"
)

// TestReload: a good policy file is used from the next cycle on, a bad one
// changes nothing but the gauges, by either way to ask for it.
func TestReload(t *testing.T) {
	server := testredis.Start(t)
	plant(t, server.Client(t))
	name := file(t, "rules: {}\n")
	e := start(t, "--redis.addr="+server.Addr(), "--scan.max-duty=1", "--scan.interval=0s", "--policy.file="+name)
	e.awaitReady(t)
	ttlTooLong := func(namespace string) bool {
		return strings.Contains(e.get(t, "/metrics").body, `level="mandatory",namespace="`+namespace+`"`) &&
			strings.Contains(e.get(t, "/metrics").body, `namespace="`+namespace+`",node="`+server.Addr()+`",rule="ttl_too_long"`)
	}
	gauges := func() (good, at float64) {
		metrics := e.get(t, "/metrics").body
		return sample(t, metrics, "redis_keyhealth_config_last_reload_successful"), sample(t, metrics, "redis_keyhealth_config_last_reload_success_timestamp_seconds")
	}
	good, loaded := gauges()
	if good != 1 || ttlTooLong("sessions") {
		t.Fatalf("before: good %v", good)
	}

	replace(t, name, sessionsPolicy)
	if a := e.do(t, http.MethodPost, "/-/reload", nil); a.status != http.StatusOK || a.body != "reloaded\n" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	eventually(t, "the namespace is judged", func() bool { return ttlTooLong("sessions") })
	metrics := e.get(t, "/metrics").body
	if v := sample(t, metrics, "redis_keyhealth_rule_violations", `namespace="sessions"`, `rule="ttl_too_long"`, `level="mandatory"`); v != 1 {
		t.Errorf("%v sessions live too long", v)
	}
	if v := sample(t, metrics, "redis_keyhealth_rule_violations", `namespace="default"`, `rule="ttl_too_long"`, `level="recommended"`); v != 0 {
		t.Errorf("%v other keys live too long", v)
	}
	sample(t, metrics, "redis_keyhealth_namespace_info", `namespace="sessions"`, `owner="identity"`)
	sample(t, metrics, "redis_keyhealth_namespace_info", `namespace="default"`, `owner=""`)
	good, second := gauges()
	if good != 1 || second <= loaded {
		t.Errorf("after: good %v, loaded at %v, then at %v", good, loaded, second)
	}

	replace(t, name, brokenPolicy)
	a := e.do(t, http.MethodPost, "/-/reload", nil)
	if a.status != http.StatusInternalServerError || !strings.Contains(a.body, name+`:2: the namespace "default" is reserved`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if good, at := gauges(); good != 0 || at != second {
		t.Errorf("after a bad file: good %v, loaded at %v", good, at)
	}
	sample(t, e.get(t, "/metrics").body, "redis_keyhealth_namespace_info", `namespace="sessions"`)
	if !strings.Contains(e.stderr.String(), `msg="reload failed, the old policy stays"`) {
		t.Errorf("no line about it: %s", e.stderr)
	}

	replace(t, name, "{}")
	hangUp(t)
	eventually(t, "SIGHUP reloads", func() bool { good, _ := gauges(); return good == 1 })
	eventually(t, "the namespace is gone", func() bool { return !ttlTooLong("sessions") })
	os.Remove(name)
	hangUp(t)
	eventually(t, "SIGHUP finds no file", func() bool { good, _ := gauges(); return good == 0 })
	if a := e.do(t, http.MethodPost, "/-/reload", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); a.status != http.StatusForbidden {
		t.Errorf("a page of another site: %d", a.status)
	}
}

// hangUp sends the signal to this process, in which the exporter runs.
func hangUp(t *testing.T) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGHUP)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestReloadOfNothing: without a file there is nothing that could fail, and
// SIGHUP does not end the program.
func TestReloadOfNothing(t *testing.T) {
	e := start(t, "--redis.addr=127.0.0.1:1")
	hangUp(t)
	eventually(t, "SIGHUP is heard", func() bool { return strings.Contains(e.stderr.String(), "policy reloaded") })
	if a := e.do(t, http.MethodPost, "/-/reload", nil); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestCheckPrintsThePolicy(t *testing.T) {
	name := file(t, sessionsPolicy)
	var stdout, stderr buffer
	if code := Run(t.Context(), []string{"check", "--policy.file=" + name}, &stdout, &stderr); code != exitOK || stderr.String() != "" {
		t.Fatalf("exit code %d, %s", code, stderr.String())
	}
	for _, want := range []string{"  big_string: {level: mandatory, enabled: true, warning: 10KiB, critical: 5MiB}\n", `match: ["shop:session:*"]`, "ttl_too_long: {level: mandatory, max: 1m}"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, stdout.String())
		}
	}
	var again buffer
	if code := Run(t.Context(), []string{"check", "--policy.file=" + file(t, stdout.String())}, &again, &stderr); code != exitOK || again.String() != stdout.String() {
		t.Errorf("what it prints makes another policy: exit code %d, %s\n%s", code, stderr.String(), again.String())
	}
}

func TestCheckKey(t *testing.T) {
	name := file(t, `rules:
  name_too_long: {enabled: false}
  many_elements: {warning: 500}
namespaces:
- name: late
  match: ["zzz:*", "/^shop:session:late$/"]
  db: 3
- name: sessions
  match:
  - "other:*"
  - "shop:*"
  owner: identity
  rules:
    ttl_too_long: {max: 1m, level: mandatory}
    ttl_missing: {exempt: true, approved_by: review 42}
watch: ["shop:a b"]
`)
	for _, c := range []struct {
		args []string
		want []string // lines, blanks squeezed
	}{
		{[]string{"--key=shop:a b"}, []string{
			"key shop:a b", "database db0", "namespace sessions (" + name + `:11: match "shop:*")`, "owner identity", "watched yes",
			"name_format recommended kept without", "name_too_long recommended off", "name_special_char mandatory broken any", "name_unknown_prefix recommended not configured",
			"many_elements mandatory applies more than 500 elements", "ttl_missing recommended exempt, approved by review 42", "ttl_too_long mandatory applies a TTL longer than 1m",
		}},
		{[]string{"--key=shop:session:late", "--db=3"}, []string{"database db3", "namespace late (" + name + `:6: match "/^shop:session:late$/")`, "owner –", "watched no", "ttl_missing recommended applies"}},
		{[]string{"--key=shop:session:late"}, []string{"database db0", "namespace sessions (" + name + ":11: "}},
		{[]string{"--key="}, []string{`key \e`, "namespace default (no namespace matches)", "name_format recommended broken", "ttl_too_long recommended applies a TTL longer than 30d"}},
		{[]string{"--key=" + strings.Repeat("x", 16385)}, []string{"namespace default", "name_oversized mandatory broken"}},
	} {
		var stdout, stderr buffer
		if code := Run(t.Context(), append(c.args, "check", "--policy.file="+name), &stdout, &stderr); code == exitOK {
			t.Errorf("%v: a flag of check stands before it", c.args)
		}
		stdout, stderr = buffer{}, buffer{}
		if code := Run(t.Context(), append([]string{"check", "--policy.file=" + name}, c.args...), &stdout, &stderr); code != exitOK {
			t.Fatalf("%v: exit code %d, %s", c.args, code, stderr.String())
		}
		var lines []string
		for line := range strings.Lines(stdout.String()) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		text := strings.Join(lines, "\n")
		for _, want := range c.want {
			if !strings.Contains("\n"+text, "\n"+want) {
				t.Errorf("%.40v: no line %q in\n%s", c.args, want, text)
			}
		}
		for _, r := range policy.Rules() {
			if strings.Contains(text, "\n"+r.ID+" ") == r.AboutServer() {
				t.Errorf("%.40v: %s: about a server: %v", c.args, r.ID, r.AboutServer())
			}
		}
	}
}
