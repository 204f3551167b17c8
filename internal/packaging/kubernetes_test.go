package packaging

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the generated manifests anew")

const (
	kubernetes = deploy + "/kubernetes"
	nameLabel  = "app.kubernetes.io/name"
)

// meta and the types below hold what the manifests use of Kubernetes, so that a
// misspelt field is found without a cluster.
type meta struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name                string
		Labels, Annotations map[string]string
	}
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type security struct {
	RunAsNonRoot             bool                  `yaml:"runAsNonRoot"`
	RunAsUser                int                   `yaml:"runAsUser"`
	RunAsGroup               int                   `yaml:"runAsGroup"`
	FSGroup                  int                   `yaml:"fsGroup"`
	FSGroupChangePolicy      string                `yaml:"fsGroupChangePolicy"`
	AllowPrivilegeEscalation *bool                 `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool                  `yaml:"readOnlyRootFilesystem"`
	SeccompProfile           struct{ Type string } `yaml:"seccompProfile"`
	Capabilities             struct{ Drop, Add []string }
}

type probe struct {
	HTTPGet        struct{ Path, Port string } `yaml:"httpGet"`
	PeriodSeconds  int                         `yaml:"periodSeconds"`
	TimeoutSeconds int                         `yaml:"timeoutSeconds"`
}

type podSpec struct {
	AutomountServiceAccountToken *bool    `yaml:"automountServiceAccountToken"`
	EnableServiceLinks           *bool    `yaml:"enableServiceLinks"`
	SecurityContext              security `yaml:"securityContext"`
	Containers                   []struct {
		Name, Image string
		Args        []string
		Env         []struct {
			Name      string
			ValueFrom struct {
				ResourceFieldRef struct{ Resource string } `yaml:"resourceFieldRef"`
			} `yaml:"valueFrom"`
		}
		Ports []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		LivenessProbe   probe `yaml:"livenessProbe"`
		ReadinessProbe  probe `yaml:"readinessProbe"`
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext security `yaml:"securityContext"`
		VolumeMounts    []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	Volumes []struct {
		Name   string
		Secret struct {
			SecretName  string `yaml:"secretName"`
			DefaultMode int    `yaml:"defaultMode"`
		}
		ConfigMap             struct{ Name string } `yaml:"configMap"`
		PersistentVolumeClaim struct {
			ClaimName string `yaml:"claimName"`
		} `yaml:"persistentVolumeClaim"`
	}
}

type deployment struct {
	meta `yaml:",inline"`
	Spec struct {
		Replicas int
		Strategy struct{ Type string }
		Selector selector
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
	}
}

type service struct {
	meta `yaml:",inline"`
	Spec struct {
		Selector map[string]string
		Ports    []struct {
			Name       string
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
	}
}

type relabeling struct {
	TargetLabel                string `yaml:"targetLabel"`
	Replacement, Action, Regex string
}

type serviceMonitor struct {
	meta `yaml:",inline"`
	Spec struct {
		Selector  selector
		Endpoints []struct {
			Port, Interval string
			ScrapeTimeout  string `yaml:"scrapeTimeout"`
			Relabelings    []relabeling
		}
	}
}

type peer struct {
	NamespaceSelector *selector `yaml:"namespaceSelector"`
	PodSelector       selector  `yaml:"podSelector"`
}

type networkPorts []struct {
	Protocol string
	Port     int
}

type networkPolicy struct {
	meta `yaml:",inline"`
	Spec struct {
		PodSelector selector `yaml:"podSelector"`
		PolicyTypes []string `yaml:"policyTypes"`
		Ingress     []struct {
			From  []peer
			Ports networkPorts
		}
		Egress []struct {
			To    []peer
			Ports networkPorts
		}
	}
}

type kustomization struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Resources  []string
	Labels     []struct{ Pairs map[string]string }
	Images     []struct {
		Name   string
		NewTag string `yaml:"newTag"`
	}
	ConfigMapGenerator []struct {
		Name  string
		Files []string
	} `yaml:"configMapGenerator"`
	GeneratorOptions struct {
		DisableNameSuffixHash bool `yaml:"disableNameSuffixHash"`
		Labels, Annotations   map[string]string
	} `yaml:"generatorOptions"`
}

func readDeployment(t *testing.T) (d deployment) {
	t.Helper()
	decode(t, kubernetes+"/deployment.yaml", &d)
	return d
}

func pod(t *testing.T) podSpec {
	t.Helper()
	return readDeployment(t).Spec.Template.Spec
}

func readServiceMonitor(t *testing.T) (m serviceMonitor) {
	t.Helper()
	decode(t, kubernetes+"/servicemonitor.yaml", &m)
	return m
}

func readKustomization(t *testing.T, dir string) (k kustomization) {
	t.Helper()
	decode(t, dir+"/kustomization.yaml", &k)
	return k
}

func image(k kustomization) string {
	return k.Images[0].Name + ":" + k.Images[0].NewTag
}

// TestRestricted: the pod keeps to the pod security standard "restricted", and
// to less than that allows.
func TestRestricted(t *testing.T) {
	t.Parallel()
	p := pod(t)
	user, group, _ := strings.Cut(declared(t).User, ":")
	s := p.SecurityContext
	if !s.RunAsNonRoot || strconv.Itoa(s.RunAsUser) != user || strconv.Itoa(s.RunAsGroup) != group || strconv.Itoa(s.FSGroup) != group {
		t.Errorf("the user is %+v, that of the image %s:%s", s, user, group)
	}
	if s.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("seccomp is %q", s.SeccompProfile.Type)
	}
	if p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken {
		t.Error("the pod holds a token for Kubernetes")
	}
	for _, c := range p.Containers {
		s := c.SecurityContext
		if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem ||
			!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s may do more than it needs: %+v", c.Name, s)
		}
	}
}

// TestPod: it fits the program and holds together.
func TestPod(t *testing.T) {
	t.Parallel()
	d := readDeployment(t)
	if d.Spec.Replicas != 1 || d.Spec.Strategy.Type != "Recreate" {
		t.Errorf("%d replicas and the strategy %s may run two at a time", d.Spec.Replicas, d.Spec.Strategy.Type)
	}
	c := pod(t).Containers[0]
	// Readiness may not wait for the first cycle: see the manifest.
	if c.ReadinessProbe.HTTPGet.Path != "/-/healthy" || c.LivenessProbe.HTTPGet.Path != "/-/healthy" {
		t.Errorf("the probes are %+v, %+v", c.LivenessProbe, c.ReadinessProbe)
	}
	if e := c.Env[0]; e.Name != "GOMEMLIMIT" || e.ValueFrom.ResourceFieldRef.Resource != "requests.memory" {
		t.Errorf("the environment is %+v", c.Env)
	}
	if c.Resources.Requests["memory"] != "96Mi" || c.Resources.Limits["memory"] != "128Mi" {
		t.Errorf("memory is %+v, not what docs/container.md advises", c.Resources)
	}
	volumes := make(map[string]bool)
	policy := readKustomization(t, kubernetes).ConfigMapGenerator[0]
	for _, v := range pod(t).Volumes {
		volumes[v.Name] = true
		if v.Name == "policy" && v.ConfigMap.Name != policy.Name {
			t.Errorf("the policy is that of %s, but what is made is %s", v.ConfigMap.Name, policy.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] || !strings.Contains(strings.Join(c.Args, " "), "="+m.MountPath+"/") {
			t.Errorf("the volume %s at %s is not there, or no flag looks into it", m.Name, m.MountPath)
		}
	}
}

// TestSelectors: a selector that finds nothing is no error to Kubernetes.
func TestSelectors(t *testing.T) {
	t.Parallel()
	d, monitor := readDeployment(t), readServiceMonitor(t)
	var s service
	decode(t, kubernetes+"/service.yaml", &s)
	var policy networkPolicy
	decode(t, kubernetes+"/networkpolicy.yaml", &policy)

	labels := d.Spec.Template.Metadata.Labels
	if labels[nameLabel] == "" {
		t.Errorf("the pod has no name: %v", labels)
	}
	for who, got := range map[string]map[string]string{
		"Deployment":     d.Spec.Selector.MatchLabels,
		"Service":        s.Spec.Selector,
		"NetworkPolicy":  policy.Spec.PodSelector.MatchLabels,
		"ServiceMonitor": monitor.Spec.Selector.MatchLabels,
		"labels":         s.Metadata.Labels, // of the Service: what the ServiceMonitor looks for
	} {
		if !reflect.DeepEqual(got, labels) {
			t.Errorf("%s: %v, but the pod is %v", who, got, labels)
		}
	}
	port := pod(t).Containers[0].Ports[0]
	if p := s.Spec.Ports[0]; p.Name != monitor.Spec.Endpoints[0].Port || p.TargetPort != port.Name {
		t.Errorf("the port of the Service is %+v, of the pod %+v, of the ServiceMonitor %s", p, port, monitor.Spec.Endpoints[0].Port)
	}
	in := policy.Spec.Ingress
	if len(in) != 1 || len(in[0].From) != 1 || len(in[0].Ports) != 1 || in[0].Ports[0].Port != port.ContainerPort {
		t.Errorf("others than Prometheus get in, or to other ports: %+v", in)
	}
	if !slices.Equal(policy.Spec.PolicyTypes, []string{"Ingress", "Egress"}) {
		t.Errorf("the policy is about %q", policy.Spec.PolicyTypes)
	}
	for _, out := range policy.Spec.Egress {
		if len(out.To) == 0 || len(out.Ports) == 0 {
			t.Errorf("all get out: %+v", out)
		}
	}
}

// TestKustomization: nothing is left out, neither a manifest nor a dashboard.
func TestKustomization(t *testing.T) {
	t.Parallel()
	want := []string{"../../dashboards"}
	for _, name := range names(t, kubernetes, "*.yaml") {
		if name != "kustomization.yaml" {
			want = append(want, name)
		}
	}
	if got := readKustomization(t, kubernetes).Resources; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("the resources are %q, want %q", got, want)
	}

	k := readKustomization(t, root+"/dashboards")
	var got []string
	for _, g := range k.ConfigMapGenerator {
		got = append(got, g.Files...)
		if want := []string{strings.TrimPrefix(g.Name, "redis-keyhealth-dashboard-") + ".json"}; !slices.Equal(g.Files, want) {
			t.Errorf("%s holds %q, want %q", g.Name, g.Files, want)
		}
	}
	if want := names(t, root+"/dashboards", "*.json"); !slices.Equal(got, want) {
		t.Errorf("the dashboards are %q, want %q", got, want)
	}
	if k.GeneratorOptions.Labels["grafana_dashboard"] != "1" {
		t.Error("Grafana would not find the dashboards")
	}
}

// TestKustomize builds the manifests where kubectl is. CI does without: Debian's
// is too old for kustomizations with labels.
func TestKustomize(t *testing.T) {
	t.Parallel()
	if !onPath("kubectl") {
		t.Skip("needs kubectl")
	}
	d := yaml.NewDecoder(strings.NewReader(output(t, exec.CommandContext(t.Context(), "kubectl", "kustomize", kubernetes))))
	kinds := make(map[string]int)
	for {
		var m meta
		if d.Decode(&m) != nil {
			break
		}
		kinds[m.Kind]++
	}
	want := map[string]int{
		"ConfigMap": len(names(t, root+"/dashboards", "*.json")) + 1, "Deployment": 1, "PersistentVolumeClaim": 1, "Service": 1,
		"ServiceMonitor": 1, "PrometheusRule": 2, "NetworkPolicy": 1,
	}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("there are %v, want %v", kinds, want)
	}
}

// TestGoldenPrometheusRule keeps the rules for the operator equal to those for a
// rule_files: it wants the same, one level deeper.
func TestGoldenPrometheusRule(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Generated from alerts/ by make generate.\n")
	for _, name := range []string{"rules", "alerts"} {
		b.WriteString("---\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: redis-keyhealth-" + name + "\nspec:\n")
		for line := range strings.Lines(read(t, root+"/alerts/"+name+".yml")) {
			if line != "\n" {
				b.WriteString("  ")
			}
			b.WriteString(line)
		}
	}
	const path = kubernetes + "/prometheusrule.yaml"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if read(t, path) != b.String() {
		t.Error(path + " differs from alerts/: make generate writes it anew")
	}
}

// names lists the files of a folder that match a pattern, in order.
func names(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := fs.Glob(os.DirFS(filepath.Clean(dir)), pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
