package packaging

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"redis_keyhealth_exporter/internal/cli"
	"redis_keyhealth_exporter/internal/testtools"
)

const (
	deploy = root + "/deploy"
	job    = "redis_keyhealth" // as the alerts and the dashboards know it
)

// decode reads the only document of a YAML file into a value that has a field for
// each of its keys: a misspelt key is an error.
func decode(t *testing.T, name string, into any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(read(t, name)))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Fatalf("%s: there is more than one document (%v)", name, err)
	}
}

// TestDeployedFlags runs the program with the flags of each deployment, for no
// longer than it takes to judge them.
func TestDeployedFlags(t *testing.T) {
	dir := t.TempDir()
	password := file(t, dir, "password", "secret\n")
	state := filepath.Join(dir, "state")

	unit, environment := systemdFlags(t)
	for _, c := range []struct {
		name   string
		flags  []string
		policy string // where the file is that it mounts
	}{
		{"docker-compose.yml", readCompose(t).Services["exporter"].Command, root + "/policies/default.yml"},
		{"kubernetes", pod(t).Containers[0].Args, kubernetes + "/policy.yml"},
		{"systemd", unit, ""},
	} {
		for i, flag := range c.flags {
			name, value, _ := strings.Cut(flag, "=")
			switch name {
			case "--redis.password-file":
				value = password
			case "--state.file":
				value = state
			case "--policy.file":
				value = c.policy
			}
			c.flags[i] = name + "=" + value
		}
		if !slices.Contains(c.flags, "--redis.password-file="+password) || !slices.Contains(c.flags, "--state.file="+state) {
			t.Errorf("%s: no file for the password or the state among %q", c.name, c.flags)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var stderr bytes.Buffer
		if code := cli.Run(ctx, append(c.flags, "--web.listen-address=127.0.0.1:0"), io.Discard, &stderr); code != 0 {
			t.Errorf("%s: exit code %d: %s", c.name, code, &stderr)
		}
	}

	var help strings.Builder
	cli.Run(t.Context(), []string{"--help"}, &help, io.Discard)
	for _, name := range environment {
		if !strings.Contains(help.String(), "$"+name+")") {
			t.Errorf("systemd: no flag has the variable %s", name)
		}
	}
}

// TestDeployedVersion: what is deployed is what this tree makes.
func TestDeployedVersion(t *testing.T) {
	t.Parallel()
	want := program + ":" + strings.TrimSpace(read(t, root+"/VERSION"))
	for name, got := range map[string]string{
		"docker-compose.yml": readCompose(t).Services["exporter"].Image,
		"deployment.yaml":    pod(t).Containers[0].Image,
		"kustomization.yaml": image(readKustomization(t, kubernetes)),
	} {
		if got != want {
			t.Errorf("%s has the image %s, want %s", name, got, want)
		}
	}
}

// TestJobName: where it differs no alert fires and no dashboard shows anything.
func TestJobName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"deploy/prometheus.yml", "docs/deploy.md", "README.md"} {
		found := regexp.MustCompile(`job_name: (\S+)`).FindAllStringSubmatch(read(t, root+"/"+name), -1)
		if len(found) != 1 || found[0][1] != job {
			t.Errorf("%s: the jobs are %q, want %s", name, found, job)
		}
	}
	monitor := readServiceMonitor(t).Spec.Endpoints[0]
	if !slices.ContainsFunc(monitor.Relabelings, func(r relabeling) bool { return r.TargetLabel == "job" && r.Replacement == job }) {
		t.Errorf("the ServiceMonitor does not set job to %s: %+v", job, monitor.Relabelings)
	}
}

// TestLinks: the dashboards lead to where compose publishes the exporter, and its
// instance is a name that a browser knows.
func TestLinks(t *testing.T) {
	t.Parallel()
	var prometheus struct {
		Scrape []struct {
			Static []struct{ Labels map[string]string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, deploy+"/prometheus.yml")), &prometheus); err != nil {
		t.Fatal(err)
	}
	instance := prometheus.Scrape[0].Static[0].Labels["instance"]
	if port, local := strings.CutPrefix(instance, "localhost:"); !local || !slices.Contains(readCompose(t).Services["exporter"].Ports, "127.0.0.1:"+port+":"+port) {
		t.Errorf("the instance is %q", instance)
	}
	for _, name := range []string{"dashboards/big-keys.json", "docs/deploy.md", "docs/dashboards.md"} {
		if !strings.Contains(read(t, root+"/"+name), "http://"+instance+"/docs") {
			t.Errorf("%s does not lead to http://%s/docs", name, instance)
		}
	}
}

func TestPrometheusConfig(t *testing.T) {
	t.Parallel()
	testtools.Program(t, "promtool")
	output(t, exec.CommandContext(t.Context(), "promtool", "check", "config", deploy+"/prometheus.yml"))
}

// TestGrafanaProvisioning: Grafana finds what docker-compose.yml has put there.
func TestGrafanaProvisioning(t *testing.T) {
	t.Parallel()
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool              `yaml:"isDefault"`
			Editable                     bool              `yaml:"editable"`
			JSONData                     map[string]string `yaml:"jsonData"`
		}
	}
	var dashboards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Folder, Type string
			AllowUIUpdates     bool `yaml:"allowUiUpdates"`
			DisableDeletion    bool `yaml:"disableDeletion"`
			Options            struct{ Path string }
		}
	}
	decode(t, deploy+"/grafana/provisioning/datasources/prometheus.yml", &sources)
	decode(t, deploy+"/grafana/provisioning/dashboards/redis_keyhealth.yml", &dashboards)

	source, compose := sources.Datasources[0], readCompose(t)
	if source.Type != "prometheus" || !source.IsDefault {
		t.Errorf("the data source is %+v", source)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(source.URL, "http://"), ":")
	if _, known := compose.Services[host]; !known {
		t.Errorf("the data source is at %s, which is no service", source.URL)
	}
	var scrape struct {
		Global struct {
			Interval string `yaml:"scrape_interval"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, deploy+"/prometheus.yml")), &scrape); err != nil {
		t.Fatal(err)
	}
	if got := source.JSONData["timeInterval"]; got != scrape.Global.Interval {
		t.Errorf("timeInterval is %s, the scrape interval %s", got, scrape.Global.Interval)
	}

	grafana := compose.Services["grafana"]
	path := dashboards.Providers[0].Options.Path
	if !slices.Contains(grafana.Volumes, "../dashboards:"+path+":ro") {
		t.Errorf("nothing is mounted at %s: %q", path, grafana.Volumes)
	}
	home, inside := strings.CutPrefix(grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"], path+"/")
	if _, err := os.Stat(filepath.Join(root, "dashboards", home)); !inside || err != nil {
		t.Errorf("the home dashboard: %v", err)
	}
}
