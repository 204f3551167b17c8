package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const canary = "hunter2canary"

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	flags := RedisFlags{Addr: "cache", Password: canary}
	valid, err := flags.Validate()
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"the secret":               Secret(canary),
		"its pointer":              new(Secret(canary)),
		"a slice":                  []Secret{canary},
		"a map":                    map[string]Secret{"p": canary},
		"the flags":                flags,
		"their pointer":            &flags,
		"the settings":             valid,
		"their pointer, validated": &valid,
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%f", "%t", "%c", "%5.3s"} {
			assertHidden(t, name+" as "+verb, fmt.Sprintf(verb, v))
		}
		assertHidden(t, name+" by Print", fmt.Sprint(v))
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		assertHidden(t, name+" as JSON", string(text))
	}
	if got := fmt.Sprintf("%v", Secret(canary)); got != hidden {
		t.Errorf("a secret prints as %q", got)
	}
}

func assertHidden(t *testing.T, what, text string) {
	t.Helper()
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), canary[:3]} {
		if strings.Contains(text, form) {
			t.Errorf("%s shows the password: %s", what, text)
			return
		}
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file string // file "" = none
		env        Secret
		want       string
	}{
		{"none", "", "", ""},
		{"environment", "", canary, canary},
		{"file", canary, "", canary},
		{"file before environment", canary, "other", canary},
		{"line end", canary + "\n", "", canary},
		{"line end of Windows", canary + "\r\n", "", canary},
		{"several line ends", canary + "\n\n", "", canary},
		{"spaces are part of it", " " + canary + " \n", "", " " + canary + " "},
		{"line ends within are part of it", "a\nb\n", "", "a\nb"},
	} {
		flags := RedisFlags{Addr: "cache", Password: c.env}
		if c.file != "" {
			flags.PasswordFile = write(t, c.file)
		}
		r, err := flags.Validate()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, err := r.Password(); string(got) != c.want || err != nil {
			t.Errorf("%s: the password is %q (%v), want %q", c.name, string(got), err, c.want)
		}
	}
	var none Redis
	if got, err := none.Password(); got != "" || err != nil {
		t.Errorf("of the zero value: %v", err)
	}
}

func TestPasswordRotation(t *testing.T) {
	t.Parallel()
	file := write(t, "first\n")
	r, err := RedisFlags{Addr: "cache", PasswordFile: file}.Validate()
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if got, err := r.Password(); string(got) != want || err != nil {
			t.Errorf("the password is %q (%v), want %q", string(got), err, want)
		}
	}
	expect("first")
	if err := os.WriteFile(file, []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("second")
	// Secrets that are mounted get replaced by renaming.
	if err := os.Rename(write(t, "third\n"), file); err != nil {
		t.Fatal(err)
	}
	expect("third")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Password(); err == nil || got != "" {
		t.Error("a file that is gone gives a password")
	}
}

func TestBadPasswordFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ name, file, want string }{
		{"missing", filepath.Join(dir, "none"), "no such file"},
		{"folder", dir, "no regular file"},
		{"endless device", "/dev/zero", "no regular file"},
		{"huge", write(t, strings.Repeat("x", maxPasswordBytes+1)), "no regular file"},
		{"empty", write(t, ""), "holds no password"},
		{"nothing but a line end", write(t, "\n"), "holds no password"},
	} {
		_, err := RedisFlags{Addr: "cache", PasswordFile: c.file}.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "--redis.password-file: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
	if _, err := (RedisFlags{Addr: "cache", PasswordFile: write(t, strings.Repeat("x", maxPasswordBytes))}).Validate(); err != nil {
		t.Errorf("the largest file: %v", err)
	}
}

func TestUserNeedsPassword(t *testing.T) {
	t.Parallel()
	_, err := RedisFlags{Addr: "cache", User: "monitor"}.Validate()
	if err == nil || !strings.HasPrefix(err.Error(), "--redis.user: ") {
		t.Errorf("a user without a password: %v", err)
	}
	r, err := RedisFlags{Addr: "cache", User: "monitor", Password: canary}.Validate()
	if err != nil || r.User != "monitor" {
		t.Errorf("a user with a password: %q, %v", r.User, err)
	}
}

// write makes a file of a name of its own.
func write(t *testing.T, content string) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(content); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}
