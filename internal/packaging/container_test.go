package packaging

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/testredis"
	"redis_keyhealth_exporter/internal/testtools"
)

const bundle = "etc/ssl/certs/ca-certificates.crt"

// TestRootfs runs what `make rootfs` has laid out as the Dockerfile says.
func TestRootfs(t *testing.T) {
	t.Parallel()
	dist := t.TempDir()
	runMake(t, "rootfs", "DIST="+dist)
	files := filepath.Join(dist, "rootfs")

	wantFiles(t, files)
	wantStatic(t, filepath.Join(files, program))
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(read(t, filepath.Join(files, bundle)))) {
		t.Error("there is no certificate in " + bundle)
	}
	runContainer(t, files, declared(t))
}

// TestImage makes the image and runs what is in it.
func TestImage(t *testing.T) {
	t.Parallel()
	testtools.Program(t, "buildah")
	if os.Geteuid() != 0 { // rights are no program that CI could install
		t.Skip("needs root, as buildah mount does")
	}

	// A storage of its own, and of the driver that works everywhere.
	dir := t.TempDir()
	storage := fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", dir+"/graph", dir+"/run")
	env := []string{"ENGINE=buildah", "CONTAINERS_STORAGE_CONF=" + file(t, dir, "storage.conf", storage), "BUILDAH_ISOLATION=chroot"}
	buildah := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "buildah", args...)
		cmd.Env = append(os.Environ(), env...)
		return strings.TrimSpace(output(t, cmd))
	}
	runMake(t, "image", append(env, "DIST="+dir, "IMAGE=keyhealth:test", "BASE=scratch", "VERSION=1.2.3", "REVISION=abcdef")...)

	var image struct {
		OCIv1 struct{ Config imageConfig }
	}
	if err := json.Unmarshal([]byte(buildah("inspect", "--type=image", "keyhealth:test")), &image); err != nil {
		t.Fatal(err)
	}
	got, want := image.OCIv1.Config, declared(t)
	want.Labels["org.opencontainers.image.version"] = "1.2.3"
	want.Labels["org.opencontainers.image.revision"] = "abcdef"
	maps.DeleteFunc(got.Labels, func(name, _ string) bool { return !strings.HasPrefix(name, "org.opencontainers.") })
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the image has\n%+v, the Dockerfile\n%+v", got, want)
	}

	files := buildah("mount", buildah("from", "--pull-never", "keyhealth:test"))
	wantFiles(t, files)
	runContainer(t, files, got)
}

// wantFiles makes sure that an image holds what it must, readable for its user,
// and nothing else.
func wantFiles(t *testing.T, dir string) {
	t.Helper()
	got := make(map[string]fs.FileMode)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && !entry.IsDir() {
			got[name] = info.Mode()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]fs.FileMode{program: 0o755, bundle: 0o644}; !maps.Equal(got, want) {
		t.Errorf("the files are %v, want %v", got, want)
	}
}

func wantStatic(t *testing.T, name string) {
	t.Helper()
	binary, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if slices.ContainsFunc(binary.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("the binary wants a dynamic linker")
	}
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("the binary wants libraries: %q, %v", libraries, err)
	}
}

// contain runs a command as an engine would with --read-only, --cap-drop=ALL,
// --security-opt=no-new-privileges and a password as a mounted file. Each step
// replaces the one before, so that the process stays the same.
const contain = `set -e
root=$1 password=$2 user=$3
shift 3
mkdir -p "$root/run/secrets"
: >"$root/run/secrets/redis"
mount --bind "$root" "$root"
mount --bind "$password" "$root/run/secrets/redis"
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs chroot --userspec="$user" --groups= "$root" "$@"`

// runContainer runs the files of an image as a container, against a server that
// wants TLS and a password, until it is ready.
func runContainer(t *testing.T, files string, config imageConfig) {
	t.Helper()
	if runtime.GOOS != "linux" || exec.CommandContext(t.Context(), "unshare", "--mount", "true").Run() != nil {
		t.Skip("needs the right to mount, as root has it outside of containers")
	}

	dir := t.TempDir()
	cert, key := certificate(t)
	certFile := file(t, dir, "cert.pem", cert)
	redis := testredis.Start(t, "--port", "0", "--tls-port", "{port}", "--tls-auth-clients", "no", "--requirepass", "secret",
		"--tls-cert-file", certFile, "--tls-key-file", file(t, dir, "key.pem", key), "--tls-ca-cert-file", certFile)
	// One more authority, which the exporter finds only if this is the bundle
	// that it reads.
	appendTo(t, filepath.Join(files, bundle), cert)
	password := file(t, dir, "password", "secret\n")
	output(t, exec.CommandContext(t.Context(), "chown", config.User, password))

	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	args := append([]string{"--mount", "sh", "-c", contain, "sh", files, password, config.User}, config.Entrypoint...)
	cmd := exec.Command("unshare", append(args, "--web.listen-address=127.0.0.1:0",
		"--redis.addr=rediss://"+redis.Addr(), "--redis.password-file=/run/secrets/redis")...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		timeout := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		defer timeout.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the exporter did not end in order: %v", err)
		}
		if t.Failed() {
			t.Logf("its log:\n%s", read(t, log.Name()))
		}
	})

	var addr string
	eventually(t, "the exporter listens", func() bool {
		addr = regexp.MustCompile(`"Listening on" address=(\S+)`).FindString(read(t, log.Name()))
		addr = addr[strings.IndexByte(addr, '=')+1:]
		return addr != ""
	})
	eventually(t, "the exporter is ready", func() bool { return status(t, "http://"+addr+"/-/ready") == http.StatusOK })

	proc := fmt.Sprintf("/proc/%d/", cmd.Process.Pid)
	uid, gid, _ := strings.Cut(config.User, ":")
	for _, want := range []string{
		"Uid:" + strings.Repeat("\t"+uid, 4),
		"Gid:" + strings.Repeat("\t"+gid, 4),
		"Groups:\t ",
		"CapEff:\t0000000000000000",
		"NoNewPrivs:\t1",
	} {
		if got := read(t, proc+"status"); !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("of the exporter's process, the kernel does not say %q:\n%s", want, got)
		}
	}
	// Fields 5 and 6 are the mount point, as the process sees it, and the options.
	if mounts := read(t, proc+"mountinfo"); !regexp.MustCompile(`(?m)^(\S+ ){4}/ ro[, ]`).MatchString(mounts) {
		t.Errorf("the exporter's root is not read-only:\n%s", mounts)
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// certificate makes a self-signed one of 127.0.0.1, and its key, in PEM.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	toPEM := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return toPEM("CERTIFICATE", der), toPEM("PRIVATE KEY", encoded)
}

func file(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func appendTo(t *testing.T, name, content string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
