package alerts

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/internal/testtools"
)

// TestRunbookCommands runs what the runbook has for keys of any name: it is about
// all of the key and no other one, and no shell runs what a name holds.
func TestRunbookCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("runs loops of a shell")
	}
	for _, tool := range []string{"bash", "redis-cli"} {
		testtools.Program(t, tool)
	}
	_, port, err := net.SplitHostPort(testredis.Start(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	text, dir := read(t, runbook), t.TempDir()
	// block is the shell block that holds a string.
	block := func(with string) string {
		for _, found := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], with) {
				return found[1]
			}
		}
		t.Fatalf("the runbook has no block with %q", with)
		return ""
	}
	bash := func(script string) string {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "r() { redis-cli -p "+port+" \"$@\"; }\n"+script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, script, out)
		}
		return strings.TrimSpace(string(out))
	}
	if major, _, _ := strings.Cut(bash(`r INFO server | sed -n 's/^redis_version://p'`), "."); len(major) == 1 && major < "7" {
		t.Skip("needs Redis 7.0")
	}

	// A name with all that a shell, redis-cli or a loop could stumble on.
	const name = `"a\nb \x00\"'$(touch pwned)` + "`touch pwned`" + `\\"`
	held := "read -r key <<'END'\n" + name + "\nEND\n"
	if !strings.Contains(block("read -r key"), "read -r key <<'END'\n") {
		t.Error("the runbook holds names in another way")
	}
	deletion := strings.Split(block("LTRIM $key"), "\n")
	loop := func(command string) string {
		for _, line := range deletion {
			if strings.Contains(line, command) {
				return line + "\n"
			}
		}
		t.Fatalf("no line has %q", command)
		return ""
	}
	for what, c := range map[string]struct{ fill, remove string }{
		"list":   {"RPUSH $key $i", loop("LTRIM")},
		"set":    {`SADD $key $i "$i\n" ""`, loop("SPOP")},
		"zset":   {"ZADD $key $i $i", loop("ZREMRANGEBYRANK")},
		"stream": {"XADD $key * field $i", loop("XTRIM") + loop("\"XLEN $key\"")},
		"hash":   {`HSET $key "$i\n" v "\x00\xff\"$i" "x\ny"`, block("HSCAN $key")},
	} {
		got := bash(held + `for i in {1..1200}; do printf '%s\n' "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.fill) + `"; done | r >/dev/null
r <<<"EXISTS $key"
` + strings.ReplaceAll(c.remove, "sleep 0.01", "true") + `r <<<"EXISTS $key"`)
		if lines := strings.Fields(got); lines[0] != "1" || lines[len(lines)-1] != "0" {
			t.Errorf("%s: exists, and is deleted: %q", what, got)
		}
	}

	got := bash(`r >/dev/null <<'END'
SET "session:a\nconfig:permanent" 1
SET config:permanent 1
SET "session:b \x00\"" 1
SET session:c 1 EX 100
END
` + block("EXPIRE %s") + `r <<'END'
TTL "session:a\nconfig:permanent"
TTL config:permanent
TTL "session:b \x00\""
TTL session:c
END`)
	if ttl := strings.Fields(got); len(ttl) != 4 || len(ttl[0]) != 5 || ttl[1] != "-1" || len(ttl[2]) != 5 || len(ttl[3]) > 3 {
		t.Errorf("lifetimes: %q", got)
	}

	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("a shell ran what a name holds")
	}
}
