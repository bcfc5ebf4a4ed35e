// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// No engine runs the Dockerfile here: it is read as an engine reads it, and compared with what builds the image here.

// stages returns the two stages of the Dockerfile: one builds the program, the other is the image.
func stages(t *testing.T) (build, image instructions.Stage) {
	t.Helper()
	text := must(os.ReadFile(filepath.Join(repository, "Dockerfile")))(t)
	parsed := must(parser.Parse(bytes.NewReader(text)))(t)
	all, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Warnings) != 0 || len(all) != 2 {
		t.Fatalf("the Dockerfile has %d stages, and warnings %+v", len(all), parsed.Warnings)
	}
	return all[0], all[1]
}

// commands returns those of one type.
func commands[C instructions.Command](stage instructions.Stage) []C {
	var found []C
	for _, command := range stage.Commands {
		if c, ok := command.(C); ok {
			found = append(found, c)
		}
	}
	return found
}

func TestTheDockerfileMakesTheSameImage(t *testing.T) {
	build, image := stages(t)
	if image.BaseName != "scratch" {
		t.Errorf("its base is %s", image.BaseName)
	}
	config := must(load(t, "manager.tar", "reprise/manager:latest").ConfigFile())(t).Config
	if users := commands[*instructions.UserCommand](image); len(users) != 1 || users[0].User != config.User {
		t.Errorf("its user is %+v, not %s", users, config.User)
	}
	if dirs := commands[*instructions.WorkdirCommand](image); len(dirs) != 1 || dirs[0].Path != config.WorkingDir {
		t.Errorf("its directory is %+v, not %s", dirs, config.WorkingDir)
	}
	if entry := commands[*instructions.EntrypointCommand](image); len(entry) != 1 || entry[0].PrependShell ||
		!slices.Equal(entry[0].CmdLine, config.Entrypoint) {
		t.Errorf("it runs %+v, not %q", entry, config.Entrypoint)
	}
	copies := commands[*instructions.CopyCommand](image)
	if len(copies) != 1 || copies[0].From != build.Name || copies[0].Chmod != "0555" || copies[0].DestPath != config.Entrypoint[0] ||
		!slices.Equal(copies[0].SourcePaths, []string{"/manager"}) {
		t.Errorf("it holds %+v", copies)
	}
}

func TestTheDockerfileBuildsAsTheImageIsBuilt(t *testing.T) {
	build, _ := stages(t)
	runs := commands[*instructions.RunCommand](build)
	line := strings.Join(runs[len(runs)-1].CmdLine, " ")
	for _, want := range []string{
		"CGO_ENABLED=0", "GOOS=$TARGETOS", "GOARCH=$TARGETARCH", "go build -trimpath -buildvcs=false",
		`-ldflags "-s -w -X ` + versionVariable + `=$VERSION"`, "-o /manager " + manager.pkg,
	} {
		if !strings.Contains(line, want) {
			t.Errorf("%q lacks %q", line, want)
		}
	}
}

func TestTheDockerfilesGoIsTheModules(t *testing.T) {
	build, _ := stages(t)
	mod := must(modfile.Parse("go.mod", must(os.ReadFile(filepath.Join(repository, "go.mod")))(t), nil))(t)
	image, version, _ := strings.Cut(build.BaseName, ":")
	if image != "golang" || "v"+version != semver.MajorMinor("v"+mod.Go.Version) {
		t.Errorf("the program is built in %s, and go.mod asks for %s", build.BaseName, mod.Go.Version)
	}
}

func TestTheDockerfileCopiesAllThatTheManagerNeeds(t *testing.T) {
	build, _ := stages(t)
	var copied []string
	for _, c := range commands[*instructions.CopyCommand](build) {
		copied = append(copied, c.SourcePaths...)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", manager.pkg)
	list.Dir = repository
	root := must(filepath.Abs(repository))(t)
	for dir := range strings.FieldsSeq(string(must(list.Output())(t))) {
		needed := filepath.ToSlash(must(filepath.Rel(root, dir))(t))
		if !slices.ContainsFunc(copied, func(c string) bool { return needed == c || strings.HasPrefix(needed, c+"/") }) {
			t.Errorf("%s is not copied", needed)
		}
	}
	var sent []string
	for line := range strings.Lines(string(must(os.ReadFile(filepath.Join(repository, ".dockerignore")))(t))) {
		if wanted, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			sent = append(sent, path.Clean(wanted))
		}
	}
	slices.Sort(sent)
	slices.Sort(copied)
	if !slices.Equal(sent, copied) {
		t.Errorf(".dockerignore lets through %q, and the Dockerfile copies %q", sent, copied)
	}
}
