// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// hierarchies makes a directory that looks like the mounts of control groups.
func hierarchies(t *testing.T, files map[string]string) cgroups {
	t.Helper()
	mount := t.TempDir()
	for name, content := range files {
		path := filepath.Join(mount, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return cgroups{mount: mount, name: "reprise-x"}
}

func (c cgroups) path(names ...string) string {
	return filepath.Join(append([]string{c.mount}, names...)...)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheGroupsOfVersionOneAreInEveryHierarchyAndTheProcessorsAreThoseOfTheMachine(t *testing.T) {
	c := hierarchies(t, map[string]string{"cpuset/cpuset.cpus": "0-1", "cpuset/cpuset.mems": "0", "memory/tasks": ""})
	if err := os.Symlink("cpuset", c.path("cpu")); err != nil {
		t.Fatal(err)
	}
	if err := c.make(); err != nil {
		t.Fatal(err)
	}
	dirs, err := c.dirs()
	if want := []string{c.path("cpuset", "reprise-x"), c.path("memory", "reprise-x")}; err != nil || !slices.Equal(dirs, want) {
		t.Errorf("got %v (%v), want %v", dirs, err, want)
	}
	if got := read(t, c.path("cpuset", "reprise-x", "cpuset.cpus")); got != "0-1" {
		t.Errorf("processors %q", got)
	}
	if _, err := os.Stat(c.path("memory", "reprise-x", "cpuset.cpus")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("processors where there are none: %v", err)
	}
}

func TestTheGroupOfVersionTwoIsOneAndPassesItsControllersOn(t *testing.T) {
	c := hierarchies(t, map[string]string{
		"cgroup.controllers": "memory\n", "cgroup.subtree_control": "",
		"reprise-x/cgroup.controllers": "memory\n", "reprise-x/cgroup.subtree_control": "",
	})
	for _, dir := range []string{c.mount, c.path("reprise-x")} {
		if err := passOn(dir); err != nil {
			t.Fatal(err)
		}
		if got := read(t, filepath.Join(dir, "cgroup.subtree_control")); got != "+memory" {
			t.Errorf("%s passes on %q", dir, got)
		}
	}
	if dirs, err := c.dirs(); err != nil || !slices.Equal(dirs, []string{c.path("reprise-x")}) {
		t.Errorf("got %v (%v)", dirs, err)
	}
}

func TestGroupsAreRemovedWithAllBelowThemAndNoOthers(t *testing.T) {
	c := hierarchies(t, map[string]string{"memory/tasks": "", "pids/tasks": ""})
	for _, dir := range []string{"memory/reprise-x/kubepods/pod1", "pids/reprise-x", "memory/reprise-xy"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(c.path("memory", "reprise-x")); err != nil || len(entries) > 0 {
		t.Errorf("emptied, there is %v (%v)", entries, err)
	}
	for range 2 { // nothing there is as good
		if err := c.remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"memory/reprise-x", "pids/reprise-x"} {
		if _, err := os.Stat(c.path(dir)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
	if _, err := os.Stat(c.path("memory", "reprise-xy")); err != nil {
		t.Errorf("another cluster's is gone: %v", err)
	}
}

func TestProcessesInAGroupAreEnded(t *testing.T) {
	sleep := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	c := hierarchies(t, map[string]string{"memory/reprise-x/cgroup.procs": fmt.Sprintln(sleep.Process.Pid)})
	if err := killAll(c.path("memory", "reprise-x")); err != nil {
		t.Fatal(err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](sleep.Wait()); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", exit)
	}
}

// The kernel writes 0 for a process that has no number here; to kill 0 would be to kill ourselves.
func TestAProcessOfAnotherNamespaceIsNotTouched(t *testing.T) {
	c := hierarchies(t, map[string]string{"memory/reprise-x/cgroup.procs": "0\n"})
	if err := killAll(c.path("memory", "reprise-x")); err == nil || !strings.Contains(err.Error(), "another namespace") {
		t.Errorf("error %v", err)
	}
}
