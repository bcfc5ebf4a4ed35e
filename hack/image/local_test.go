// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// The real images are built once for all tests: into built, from this checkout.
var built settings

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "image-test-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built = settings{root: repository, out: dir, version: "v1.2.3", revision: strings.Repeat("0123456789", 4),
		created: time.Unix(1700000000, 0).UTC()}
	if err := built.everything(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	return m.Run()
}

// everything builds the local images.
func (s settings) everything(ctx context.Context) error {
	tag, err := tagged("reprise/manager", s.version)
	if err != nil {
		return err
	}
	return s.local(ctx, v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, tag, []string{"v0.1.0"})
}

// load reads an image as a container engine would.
func load(t *testing.T, file, tag string) v1.Image {
	t.Helper()
	asked := must(name.NewTag(tag))(t)
	img := must(tarball.ImageFromPath(filepath.Join(built.out, file), &asked))(t)
	if err := validate.Image(img); err != nil {
		t.Fatal(err)
	}
	return img
}

func TestAnImageIsItsProgramAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		file, tag  string
		entrypoint []string
	}{
		{"manager.tar", "reprise/manager:latest", []string{"/manager"}},
		{"work.tar", "reprise/e2e-work:latest", []string{"/work"}},
		{"pause.tar", "reprise/e2e-pause:latest", []string{"/work", "pause"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			img := load(t, c.file, c.tag)
			config := must(img.ConfigFile())(t).Config
			if !slices.Equal(config.Entrypoint, c.entrypoint) || len(config.Cmd) != 0 {
				t.Errorf("it runs %q %q", config.Entrypoint, config.Cmd)
			}
			if config.User != "65532:65532" {
				t.Errorf("its user is %q", config.User)
			}
			all := files(t, img)
			if len(all) != 1 || "/"+all[0].name != c.entrypoint[0] {
				t.Fatalf("it holds %d files, the first is %s", len(all), all[0].name)
			}
			if f := all[0]; f.mode != 0o555 || f.owner != 0 {
				t.Errorf("its program has mode %o and owner %d: its user could change it", f.mode, f.owner)
			}
		})
	}
}

func TestTheManagersTarballHasAllItsNames(t *testing.T) {
	for _, tag := range []string{"v1.2.3", "v0.1.0", "latest"} {
		load(t, "manager.tar", "reprise/manager:"+tag)
	}
}

func TestAnImageSaysWhereItComesFrom(t *testing.T) {
	img := load(t, "manager.tar", "reprise/manager:latest")
	want := map[string]string{
		"org.opencontainers.image.title":       "Reprise manager",
		"org.opencontainers.image.description": "Scheduled, queued and interactive jobs on Kubernetes.",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     "v1.2.3",
		"org.opencontainers.image.revision":    "0123456789012345678901234567890123456789",
		"org.opencontainers.image.created":     "2023-11-14T22:13:20Z",
	}
	if got := must(img.ConfigFile())(t).Config.Labels; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestTheManagersProgramKnowsItsVersionAndIsStatic(t *testing.T) {
	manager := program(t, load(t, "manager.tar", "reprise/manager:latest"))
	out, err := exec.CommandContext(t.Context(), manager, "--version").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "v1.2.3" {
		t.Errorf("it says %q, %v", out, err)
	}
	if info := must(buildinfo.ReadFile(manager))(t); setting(info, "CGO_ENABLED") != "0" {
		t.Error("it may need a C library, which the image has not")
	}
}

func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func TestTheVersionIsStampedAsTheMakefileDoes(t *testing.T) {
	makefile := must(os.ReadFile(filepath.Join(repository, "Makefile")))(t)
	stamped := regexp.MustCompile(`-X (\S+)=\$\(VERSION\)`).FindSubmatch(makefile)
	if len(stamped) != 2 || string(stamped[1]) != versionVariable {
		t.Errorf("the Makefile's build target stamps %q, not %s", stamped, versionVariable)
	}
}

func TestTheBillOfMaterialsListsEveryModuleOfTheManager(t *testing.T) {
	info := must(buildinfo.ReadFile(program(t, load(t, "manager.tar", "reprise/manager:latest"))))(t)
	want := []string{"std " + strings.TrimPrefix(info.GoVersion, "go")}
	for _, module := range info.Deps {
		want = append(want, module.Path+" "+module.Version)
	}
	var got []string
	refs := map[string]bool{}
	for _, c := range *billOf(t, filepath.Join(built.out, "manager-"+runtime.GOARCH+".cdx.json")).Components {
		got = append(got, c.Name+" "+c.Version)
		refs[c.BOMRef] = true
	}
	if !slices.Equal(got, want) || len(want) < 20 {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(refs) != len(got) {
		t.Errorf("%d references for %d modules: some have the same", len(refs), len(got))
	}
}

// TestTwoBuildsOfACommitAreTheSame builds a copy of the sources, in another place, under another user's settings.
func TestTwoBuildsOfACommitAreTheSame(t *testing.T) {
	other := built
	other.root, other.out = t.TempDir(), t.TempDir()
	for _, part := range []string{"api", "cmd/manager", "controllers", "internal", "test/e2e/work"} {
		if err := os.CopyFS(filepath.Join(other.root, part), os.DirFS(filepath.Join(repository, part))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		content := must(os.ReadFile(filepath.Join(repository, file)))(t)
		if err := os.WriteFile(filepath.Join(other.root, file), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TZ", "Asia/Kathmandu")
	t.Setenv("GOFLAGS", "-ldflags=-X=main.who=me")
	t.Setenv("GOAMD64", "v3")
	if err := other.everything(t.Context()); err != nil {
		t.Fatal(err)
	}
	bill := "manager-" + runtime.GOARCH + ".cdx.json"
	for _, file := range []string{"manager.tar", "work.tar", "pause.tar", bill} {
		one := must(os.ReadFile(filepath.Join(built.out, file)))(t)
		two := must(os.ReadFile(filepath.Join(other.out, file)))(t)
		if !bytes.Equal(one, two) {
			t.Errorf("%s has sum %s and %s", file, sum(one), sum(two))
		}
	}
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}
