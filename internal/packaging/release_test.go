package packaging

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRelease makes the release of this machine's platform, twice.
func TestRelease(t *testing.T) {
	t.Parallel()
	versionOfTar, _ := exec.CommandContext(t.Context(), "tar", "--version").Output()
	if !onPath("gtar") && !strings.Contains(string(versionOfTar), "GNU tar") {
		t.Skip("needs GNU tar")
	}
	made := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	release := func() (folder, checksums string) {
		folder = t.TempDir()
		runMake(t, "release", "DIST="+folder, "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH,
			"VERSION=1.2.3-rc.4", "REVISION=abcdef", "BRANCH=trunk", fmt.Sprint("SOURCE_DATE_EPOCH=", made.Unix()))
		return folder, read(t, filepath.Join(folder, "SHA256SUMS"))
	}
	folder, checksums := release()
	if _, again := release(); again != checksums {
		t.Errorf("the same sources made\n%s and then\n%s", checksums, again)
	}

	name := fmt.Sprintf("%s-1.2.3-rc.4.%s-%s", program, runtime.GOOS, runtime.GOARCH)
	archive := read(t, filepath.Join(folder, name+".tar.gz"))
	if want := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256([]byte(archive)), name); checksums != want {
		t.Errorf("SHA256SUMS holds %q, want %q", checksums, want)
	}

	names, binary := unpack(t, archive, made)
	want := []string{name + "/", name + "/LICENSE", name + "/README.md", name + "/" + program}
	if !slices.Equal(names, want) {
		t.Errorf("the archive holds %q, want %q", names, want)
	}
	version := output(t, exec.CommandContext(t.Context(), binary, "--version"))
	for _, part := range []string{"version 1.2.3-rc.4 (branch: trunk, revision: abcdef)", "20010203-04:05:06"} {
		if !strings.Contains(version, part) {
			t.Errorf("--version does not say %q:\n%s", part, version)
		}
	}
}

// unpack returns the names in a release, and a path that its binary is put at.
func unpack(t *testing.T, archive string, made time.Time) (names []string, binary string) {
	t.Helper()
	plain, err := gzip.NewReader(strings.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(plain)
	for {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names, binary
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, file.Name)
		if file.Uid != 0 || file.Gid != 0 || file.Uname != "" || file.Gname != "" || !file.ModTime.Equal(made) {
			t.Errorf("%s tells of the machine that packed it: %+v", file.Name, file)
		}
		mode := int64(0o644)
		switch {
		case file.Typeflag == tar.TypeDir:
			mode = 0o755
		case filepath.Base(file.Name) == program:
			mode = 0o755
			binary = filepath.Join(t.TempDir(), program)
			content, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(binary, content, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if file.Mode != mode {
			t.Errorf("%s has mode %o, want %o", file.Name, file.Mode, mode)
		}
	}
}
