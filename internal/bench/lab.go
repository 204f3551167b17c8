package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// lab is what every measurement shares: the programs, where they run and where
// results go.
type lab struct {
	self, exporter string   // programs
	args           []string // this program's own
	write          string   // Markdown file; "" = none
	stdout, stderr io.Writer

	// Command lines that programs run under: the server has a CPU for itself, so
	// that its clients' work is not mistaken for its own; and the client that is
	// timed goes before all others, as its own delays must not be mistaken for
	// the server's. Empty where the machine has one CPU or denies that.
	serverCPU, otherCPUs, urgent []string
}

func (l *lab) place() {
	others := "1-" + strconv.Itoa(runtime.NumCPU()-1)
	if runtime.NumCPU() > 1 && works("taskset", "--all-tasks", "--cpu-list", "--pid", others, strconv.Itoa(os.Getpid())) {
		l.serverCPU = []string{"taskset", "--cpu-list", "0"}
		l.otherCPUs = []string{"taskset", "--cpu-list", others}
	}
	// nice goes on where it may not, so ask what became of it. Real-time priority
	// will not do: Go's threads wait for each other by spinning.
	urgent := []string{"nice", "-n", "-20"}
	got, err := exec.Command(urgent[0], append(urgent[1:], "nice")...).Output()
	if err == nil && strings.HasPrefix(string(got), "-") {
		l.urgent = urgent
	}
}

func works(program string, args ...string) bool { return exec.Command(program, args...).Run() == nil }

// say tells how far a measurement is.
func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.stderr, format+"\n", args...) }

// missing tells whether a program is not there, and what to install.
func (l *lab) missing(program string) bool {
	if program == "" {
		return false
	}
	if _, err := exec.LookPath(program); err == nil {
		return false
	}
	packages := map[string]string{"redis-cli": "redis-tools", "redis-benchmark": "redis-tools"}
	name, ok := packages[program]
	if !ok {
		name = program
	}
	l.say("%s is not on PATH, what needs it is left out: apt-get install --no-install-recommends %s", program, name)
	return true
}

// publish prints a result and, if so asked, puts it into the document.
func (l *lab) publish(block, text string) error {
	text = strings.TrimSpace(text) + "\n"
	if _, err := fmt.Fprintf(l.stdout, "\n%s", text); err != nil || l.write == "" {
		return err
	}
	document, err := os.ReadFile(l.write)
	if err != nil {
		return err
	}
	replaced, err := replaceBlock(string(document), block, text)
	if err != nil {
		return fmt.Errorf("%s: %w", l.write, err)
	}
	return os.WriteFile(l.write, []byte(replaced), 0o644)
}

var errMarkers = errors.New("the markers are not there, once each and in order")

// replaceBlock puts the text between the block's markers.
func replaceBlock(document, block, text string) (string, error) {
	begin, end := "<!-- "+block+" -->\n", "<!-- /"+block+" -->"
	head, rest, found := strings.Cut(document, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed || strings.Contains(tail, begin) || strings.Contains(tail, end) || strings.Contains(head, end) {
		return "", fmt.Errorf("%s%s: %w", begin, end, errMarkers)
	}
	return head + begin + "\n" + text + "\n" + end + tail, nil
}

// machine describes where the figures come from.
func (l *lab) machine(redisVersion string) string {
	text := fmt.Sprintf("%s, %d CPUs, %s, Linux %s, Redis %s", or(procField("/proc/cpuinfo", "model name"), runtime.GOARCH), runtime.NumCPU(),
		gib(procField("/proc/meminfo", "MemTotal")), kernel(), redisVersion)
	if l.serverCPU != nil {
		text += "; the server has CPU 0, all else the others"
	} else {
		text += "; all share the CPUs"
	}
	if l.urgent == nil {
		text += "; the timed client has no priority over others"
	}
	return text
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "of unknown release"
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	return version
}

func gib(kilobytes string) string {
	n, err := strconv.ParseFloat(strings.TrimSuffix(kilobytes, " kB"), 64)
	if err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%.0f GiB", n/(1<<20))
}

// procField is the first value of a name in a file of lines "name : value".
func procField(file, name string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// commandLine is what was typed to get the results, for the document.
func (l *lab) commandLine() string {
	args := slices.DeleteFunc(slices.Clone(l.args), func(arg string) bool {
		return strings.HasPrefix(arg, "--write") || strings.HasPrefix(arg, "--exporter")
	})
	return strings.Join(append([]string{"bin/bench"}, args...), " ")
}
