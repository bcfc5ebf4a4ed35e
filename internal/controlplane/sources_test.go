// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestProgressCountsWhatTheBuilderSaysAndKeepsItsErrors(t *testing.T) {
	var output strings.Builder
	output.WriteString("go: downloading k8s.io/api v0.37.1\ngo: downloading k8s.io/client-go v0.37.1\n")
	output.WriteString("k8s.io/api/core/v1\n")
	for i := range 2 * keptLines {
		fmt.Fprintf(&output, "main.go:%d: something is wrong\n", i)
	}
	var log buildLog
	if err := log.follow(strings.NewReader(output.String())); err != nil {
		t.Fatal(err)
	}
	if got, want := log.progress(), "2 modules downloaded, 1 packages compiled"; got != want {
		t.Errorf("progress %q, want %q", got, want)
	}
	if lines := strings.Split(log.tail(), "\n"); len(lines) != keptLines || lines[keptLines-1] != "main.go:29: something is wrong" {
		t.Errorf("kept %d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func TestTheVersionIsStampedWholeAndInParts(t *testing.T) {
	stamps := versionStamps("1.37.1")
	for _, want := range []string{".gitVersion=v1.37.1", ".gitMajor=1", ".gitMinor=37"} {
		if strings.Count(stamps, want) != 2 {
			t.Errorf("%s is not stamped into both version packages: %s", want, stamps)
		}
	}
}

func TestAFailedBuildSaysWhy(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	s := &sources{root: root, say: func(string, ...any) {}}
	err = s.goBuild(t.Context(), "internal", "", filepath.Join(t.TempDir(), "nothing"), "./no-such-package")
	if err == nil || !strings.Contains(err.Error(), "no-such-package") {
		t.Errorf("error %v does not name the package", err)
	}
}

// The newest binaries have to serve the API that the product is compiled against, and all staging modules have to be of
// one release, or the build mixes two.
func TestTheNewestBinariesAreOfTheReleaseThatTheProductUses(t *testing.T) {
	version := stagingOf(t, "newest")
	product := regexp.MustCompile(`(?m)^\s*k8s\.io/api v0\.(\d+)\.`).FindStringSubmatch(repositoryFile(t, "go.mod"))
	if len(product) == 0 {
		t.Fatal("the product does not use k8s.io/api")
	}
	if "1."+product[1] != minor(version) {
		t.Errorf("the product uses k8s.io/api v0.%s, the control plane is %s", product[1], version)
	}
}

func TestTheOldestBinariesAreOfOneEarlierRelease(t *testing.T) {
	if oldest, newest := stagingOf(t, "oldest"), stagingOf(t, "newest"); minor(oldest) >= minor(newest) {
		t.Errorf("the oldest is %s, the newest %s", oldest, newest)
	}
}

func TestAnUnknownReleaseIsRefused(t *testing.T) {
	if module, err := moduleOf("1.30"); err == nil || !strings.Contains(err.Error(), "newest or oldest") {
		t.Errorf("got %q and the error %v", module, err)
	}
}

// stagingOf returns the version of a release, once all staging modules of its build are found to be of it.
func stagingOf(t *testing.T, release string) string {
	t.Helper()
	module, err := moduleOf(release)
	if err != nil {
		t.Fatal(err)
	}
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	version, err := pinnedVersion(root, module)
	if err != nil {
		t.Fatal(err)
	}
	_, number, _ := strings.Cut(version, ".") // 1.37.1 and v0.37.1
	staging := regexp.MustCompile(`(?m)^\s*(k8s\.io/\S+) => (k8s\.io/\S+) v0\.(\S+)$`).
		FindAllStringSubmatch(repositoryFile(t, module, "go.mod"), -1)
	if len(staging) == 0 {
		t.Fatal("no staging module is replaced")
	}
	for _, s := range staging {
		if s[1] != s[2] || s[3] != number {
			t.Errorf("staging module %s is replaced by %s v0.%s, want v0.%s", s[1], s[2], s[3], number)
		}
	}
	return version
}

func repositoryFile(t *testing.T, path ...string) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
