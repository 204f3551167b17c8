package packaging

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"redis_keyhealth_exporter/internal/testtools"
)

const unitName = program + ".service"

// mostExposed is what systemd-analyze security may find, in tenths; less is better.
const mostExposed = "15"

// systemdFlags returns the flags of the unit, and the names of the variables that
// the example of its environment file has, those in comments included.
func systemdFlags(t *testing.T) (flags, environment []string) {
	t.Helper()
	unit := strings.ReplaceAll(read(t, deploy+"/systemd/"+unitName), "\\\n", "")
	start := regexp.MustCompile(`(?m)^ExecStart=/\S+ +(.*)$`).FindStringSubmatch(unit)
	if start == nil {
		t.Fatal("the unit has no ExecStart with flags")
	}
	for _, m := range regexp.MustCompile(`(?m)^#?([A-Z_]+)=`).FindAllStringSubmatch(read(t, deploy+"/systemd/"+program+".env"), -1) {
		environment = append(environment, m[1])
	}
	return strings.Fields(start[1]), environment
}

// TestUnit lets systemd look at the unit. The program is not installed here, so
// another one stands in.
func TestUnit(t *testing.T) {
	t.Parallel()
	testtools.Program(t, "systemd-analyze")
	unit := strings.ReplaceAll(read(t, deploy+"/systemd/"+unitName), "=/usr/local/bin/"+program, "=/bin/true")
	path := file(t, t.TempDir(), unitName, unit)

	// It only warns of keys that it does not know, and ends with 0.
	verify := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", path)
	if warnings, err := verify.CombinedOutput(); err != nil || len(warnings) > 0 {
		t.Errorf("%s: %v\n%s", verify, err, warnings)
	}
	output(t, exec.CommandContext(t.Context(), "systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold="+mostExposed, path))
}
