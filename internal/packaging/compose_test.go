package packaging

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// compose is what docker-compose.yml uses of the Compose specification.
type compose struct {
	Name     string
	Hardened composeService `yaml:"x-hardened"`
	Services map[string]composeService
	Networks map[string]struct{ Internal bool }
	Volumes  map[string]struct{}
	Secrets  map[string]struct{ File string }
}

type composeService struct {
	Image, Build, User string
	Command            []string
	Entrypoint         []string
	Environment        map[string]string
	Secrets            []string
	Volumes            []string
	Tmpfs              []string
	Networks           []string
	NetworkMode        string `yaml:"network_mode"`
	Ports              []string
	DependsOn          any `yaml:"depends_on"` // a list, or a map by name
	Restart            string
	ReadOnly           bool     `yaml:"read_only"`
	CapDrop            []string `yaml:"cap_drop"`
	CapAdd             []string `yaml:"cap_add"`
	SecurityOpt        []string `yaml:"security_opt"`
	PidsLimit          int      `yaml:"pids_limit"`
	MemLimit           string   `yaml:"mem_limit"`
	Cpus               float64
	Healthcheck        struct {
		Test        []string
		Interval    string
		Timeout     string
		StartPeriod string `yaml:"start_period"`
	}
}

func readCompose(t *testing.T) compose {
	t.Helper()
	var c compose
	decode(t, deploy+"/docker-compose.yml", &c)
	return c
}

// TestComposeNames: whatever is referred to is there.
func TestComposeNames(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	for name, s := range c.Services {
		known(t, name, "secret", s.Secrets, c.Secrets)
		known(t, name, "network", s.Networks, c.Networks)
		switch on := s.DependsOn.(type) {
		case []any:
			for _, other := range on {
				known(t, name, "service", []string{other.(string)}, c.Services)
			}
		case map[string]any:
			known(t, name, "service", slices.Collect(maps.Keys(on)), c.Services)
		}
		for _, volume := range s.Volumes {
			from, to, _ := strings.Cut(volume, ":")
			if !strings.HasPrefix(from, ".") {
				known(t, name, "volume", []string{from}, c.Volumes)
				continue
			}
			if _, err := os.Stat(filepath.Join(deploy, from)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !strings.HasSuffix(to, ":ro") {
				t.Errorf("%s may write to %s", name, from)
			}
		}
	}
	for name, secret := range c.Secrets {
		if secret.File != "./secrets/"+name {
			t.Errorf("the secret %s is the file %s", name, secret.File)
		}
	}
	for name, line := range map[string]string{".gitignore": "/deploy/secrets/", ".dockerignore": "deploy"} {
		if !slices.Contains(strings.Split(read(t, root+"/"+name), "\n"), line) {
			t.Errorf("%s lacks %s: it would let the secrets in", name, line)
		}
	}
}

func known[V any](t *testing.T, service, what string, names []string, all map[string]V) {
	t.Helper()
	for _, name := range names {
		if _, ok := all[name]; !ok {
			t.Errorf("%s: there is no %s %s", service, what, name)
		}
	}
}

func TestComposeIsHardened(t *testing.T) {
	t.Parallel()
	tag := regexp.MustCompile(`^[a-z_/]+:v?\d+\.\d+\.\d+(-alpine)?$`)
	for name, s := range readCompose(t).Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s may do more than it needs", name)
		}
		if s.MemLimit == "" || s.Cpus == 0 || s.PidsLimit == 0 {
			t.Errorf("%s has no limits", name)
		}
		if !tag.MatchString(s.Image) {
			t.Errorf("%s: the version of %s is not said", name, s.Image)
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: the port %s is open to all", name, port)
			}
		}
		if once, bare := s.Restart == "no", name == "exporter"; len(s.Healthcheck.Test) == 0 && !once && !bare {
			t.Errorf("%s has no health check", name)
		}
	}
}

// TestComposeRights: the Redis grants what the README says that the scan needs.
func TestComposeRights(t *testing.T) {
	t.Parallel()
	rights := regexp.MustCompile(`resetkeys %R~\* .*`).FindString(read(t, root+"/README.md"))
	script := strings.Join(readCompose(t).Services["redis"].Command, "\n")
	if rights == "" || !strings.Contains(script, rights+" +client|no-touch\n") {
		t.Errorf("the Redis of docker-compose.yml does not grant %q:\n%s", rights, script)
	}
}
