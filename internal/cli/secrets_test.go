package cli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"redis_keyhealth_exporter/internal/testredis"
)

// TestPasswordNeverShows looks for the password in all that the program lets
// out, while it is right and while it is wrong.
func TestPasswordNeverShows(t *testing.T) {
	const user = "monitor"
	server := testredis.Start(t, "--requirepass", canary, "--user", user, "on", ">"+canary, "allcommands", "allkeys")
	for _, c := range []struct {
		name  string
		right bool
		args  []string
		env   string // REDIS_PASSWORD
	}{
		{"file", true, []string{"--redis.password-file=" + file(t, canary+"\n")}, ""},
		{"file, user", true, []string{"--redis.user=" + user, "--redis.password-file=" + file(t, canary)}, ""},
		{"environment", true, nil, canary},
		{"environment, user", true, []string{"--redis.user=" + user}, canary},
		{"wrong file", false, []string{"--redis.password-file=" + file(t, canary+"2")}, ""},
		{"wrong file, user", false, []string{"--redis.user=" + user, "--redis.password-file=" + file(t, canary+"2")}, ""},
		{"wrong in the environment", false, nil, canary + "2"},
		{"unknown user", false, []string{"--redis.user=nobody"}, canary},
		{"JSON", false, []string{"--log.format=json"}, canary + "2"},
		{"none", false, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("REDIS_PASSWORD", c.env)
			}
			e := start(t, append(c.args, "--redis.addr="+server.Addr())...)
			up := 0.0
			if c.right {
				e.awaitReady(t)
				up = 1
			} else {
				eventually(t, "the password is refused", func() bool {
					return sample(t, e.get(t, "/metrics").body, "redis_keyhealth_scan_aborts_total", `reason="auth"`) > 0
				})
				eventually(t, "the log says what to do", func() bool { return strings.Contains(e.stderr.String(), "advice") })
			}
			metrics := e.get(t, "/metrics")
			if got := sample(t, metrics.body, "redis_keyhealth_up", ""); got != up {
				t.Errorf("up is %v, want %v", got, up)
			}
			outputs := map[string]string{"metrics": fmt.Sprint(metrics)}
			for _, path := range []string{"/", "/report", "/report.json", "/-/ready", "/-/healthy", "/debug/pprof/cmdline"} {
				outputs[path] = fmt.Sprint(e.get(t, path))
			}
			if a := e.get(t, "/-/ready"); (a.status == http.StatusOK) != c.right {
				t.Errorf("ready: %d", a.status)
			}
			if !c.right {
				for _, path := range []string{"/report", "/report.json"} {
					if !strings.Contains(outputs[path], "--redis.password-file") {
						t.Errorf("%s does not say what to do", path)
					}
				}
			}
			e.stop(t)
			outputs["the log"] = e.stderr.String()
			outputs["stdout"] = e.stdout.String()
			for what, text := range outputs {
				if strings.Contains(text, canary) {
					t.Errorf("the password shows in %s: %s", what, text)
				}
			}
			if advice := strings.Count(e.stderr.String(), "--redis.password-file"); !c.right && advice != 1 {
				t.Errorf("%d lines of advice:\n%s", advice, e.stderr)
			}
		})
	}
}

// TestPasswordRotation: a new password is taken up with no restart.
func TestPasswordRotation(t *testing.T) {
	server := testredis.Start(t)
	client := server.Client(t)
	password := file(t, "first\n")
	if err := client.ConfigSet(t.Context(), "requirepass", "first").Err(); err != nil {
		t.Fatal(err)
	}
	e := start(t, "--redis.addr="+server.Addr(), "--redis.password-file="+password, "--scan.interval=0s")
	e.awaitReady(t)
	// As it is done without a gap: both are good while the file changes.
	rule := func(password string) {
		t.Helper()
		if err := client.Do(t.Context(), "ACL", "SETUSER", "default", password).Err(); err != nil {
			t.Fatal(err)
		}
	}
	rule(">second")
	replace(t, password, "second\n")
	rule("<first")
	before := sample(t, e.get(t, "/metrics").body, "redis_keyhealth_scan_cycles_total", `result="complete"`)
	eventually(t, "cycles go on with the new password", func() bool {
		return sample(t, e.get(t, "/metrics").body, "redis_keyhealth_scan_cycles_total", `result="complete"`) >= before+3
	})
	if aborts := sample(t, e.get(t, "/metrics").body, "redis_keyhealth_scan_aborts_total", `reason="auth"`); aborts != 0 {
		t.Errorf("%v cycles were aborted", aborts)
	}
}
