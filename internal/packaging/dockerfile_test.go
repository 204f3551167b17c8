package packaging

import (
	"encoding/json"
	"go/version"
	"regexp"
	"strings"
	"testing"
)

// imageConfig is what an image says of how to run it; the names are OCI's.
type imageConfig struct {
	User         string
	ExposedPorts map[string]struct{}
	Entrypoint   []string
	Labels       map[string]string
}

// instructions returns those of the Dockerfile, by their first word. Lines that
// go on are joined.
func instructions(t *testing.T) map[string][]string {
	t.Helper()
	comment := regexp.MustCompile(`(?m)^#.*\n`)
	text := strings.ReplaceAll(comment.ReplaceAllString(read(t, root+"/Dockerfile"), ""), "\\\n", " ")
	found := make(map[string][]string)
	for line := range strings.Lines(text) {
		if word, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found[word] = append(found[word], strings.Join(strings.Fields(rest), " "))
		}
	}
	return found
}

// declared is the configuration that the Dockerfile gives to its images.
func declared(t *testing.T) imageConfig {
	t.Helper()
	all := instructions(t)
	only := func(word string) string {
		if len(all[word]) != 1 {
			t.Fatalf("want one %s in the Dockerfile, there are %q", word, all[word])
		}
		return all[word][0]
	}
	config := imageConfig{User: only("USER"), ExposedPorts: map[string]struct{}{only("EXPOSE") + "/tcp": {}}, Labels: map[string]string{}}
	if err := json.Unmarshal([]byte(only("ENTRYPOINT")), &config.Entrypoint); err != nil {
		t.Fatalf("ENTRYPOINT would need a shell: %v", err)
	}
	for _, label := range regexp.MustCompile(`(\S+)="([^"]*)"`).FindAllStringSubmatch(only("LABEL"), -1) {
		config.Labels[label[1]] = label[2]
	}
	return config
}

// arguments returns the defaults of the Dockerfile's arguments.
func arguments(t *testing.T) map[string]string {
	t.Helper()
	defaults := make(map[string]string)
	for _, arg := range instructions(t)["ARG"] {
		if name, value, ok := strings.Cut(arg, "="); ok {
			defaults[name] = value
		}
	}
	return defaults
}

func TestImageUser(t *testing.T) {
	t.Parallel()
	if user := declared(t).User; !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
		t.Errorf("USER %s: want numbers, and not root's", user)
	}
}

func TestImageLabels(t *testing.T) {
	t.Parallel()
	labels := declared(t).Labels
	for _, name := range []string{"title", "description", "licenses", "version"} {
		if labels["org.opencontainers.image."+name] == "" {
			t.Errorf("the label %s is missing among %v", name, labels)
		}
	}
}

// TestImageBuild makes sure that an image gets the binary of a release.
func TestImageBuild(t *testing.T) {
	t.Parallel()
	if got, want := arguments(t)["VERSION"], strings.TrimSpace(read(t, root+"/VERSION")); got != want {
		t.Errorf("ARG VERSION=%s, but the file VERSION holds %s", got, want)
	}
	// What is run is the Makefile's recipe, so its flags are the Makefile's.
	want := "GOARCH=${TARGETARCH} make rootfs"
	flags := regexp.MustCompile(`(?m)^GO_LDFLAGS(.*\\\n)*.*$`).FindString(read(t, root+"/Makefile"))
	for _, variable := range regexp.MustCompile(`=\$\((\w+)\)`).FindAllStringSubmatch(flags, -1) {
		want += " " + variable[1] + `="${` + variable[1] + `}"`
	}
	if runs := instructions(t)["RUN"]; len(runs) != 2 || runs[0] != "go mod download" || runs[1] != want {
		t.Errorf("the Dockerfile runs\n%q, want\n%q", runs, []string{"go mod download", want})
	}
}

func TestBuilderHasGo(t *testing.T) {
	t.Parallel()
	needed := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, root+"/go.mod"))
	tag := regexp.MustCompile(`^golang:([\d.]+)`).FindStringSubmatch(arguments(t)["BUILDER"])
	if needed == nil || tag == nil {
		t.Fatalf("no version of Go: go.mod has %q, BUILDER %q", needed, tag)
	}
	want, got := "go"+needed[1], "go"+tag[1]
	if got == version.Lang(got) {
		want = version.Lang(want) // the tag 1.26 is the latest of 1.26
	}
	if version.Compare(got, want) < 0 {
		t.Errorf("the builder has %s, go.mod wants %s", got, want)
	}
}
