// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroupMount is where control groups are found.
const cgroupMount = "/sys/fs/cgroup"

// cgroups are the control groups of one cluster, in which its pods are: a directory in each hierarchy.
type cgroups struct {
	mount string
	name  string
}

func cgroupsOf(name string) cgroups { return cgroups{mount: cgroupMount, name: cgroupName(name)} }

// cgroupName is the group of a cluster's pods.
func cgroupName(name string) string { return "reprise-" + name }

// unified says whether there is one hierarchy for everything (version 2).
func (c cgroups) unified() bool {
	_, err := os.Stat(filepath.Join(c.mount, "cgroup.controllers"))
	return err == nil
}

// dirs returns the cluster's directory in each hierarchy.
func (c cgroups) dirs() ([]string, error) {
	if c.unified() {
		return []string{filepath.Join(c.mount, c.name)}, nil
	}
	entries, err := os.ReadDir(c.mount)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, entry := range entries { // links are second names of the same hierarchy
		if entry.IsDir() {
			dirs = append(dirs, filepath.Join(c.mount, entry.Name(), c.name))
		}
	}
	return dirs, nil
}

// make makes the groups, as the kubelet wants to find them.
func (c cgroups) make() error {
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	if c.unified() {
		if err := passOn(c.mount); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("no control group: %w", err)
		}
		if err := inherit(dir); err != nil {
			return err
		}
	}
	if c.unified() {
		return passOn(filepath.Join(c.mount, c.name))
	}
	return nil
}

// passOn lets the children of a group of version 2 have every controller that it has.
func passOn(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(available)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("controller %s: %w", controller, err)
		}
	}
	return nil
}

// inherit gives a group of version 1 the processors and the memory nodes of its parent, which a new group has not.
func inherit(dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another hierarchy, or version 2, where nothing is needed
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

const (
	removeTimeout = 30 * time.Second
	removePoll    = 50 * time.Millisecond
)

// remove ends the processes that are left in the groups, and removes the groups.
func (c cgroups) remove(ctx context.Context) error {
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	return removeTrees(ctx, dirs)
}

// empty does so with the groups in the groups.
func (c cgroups) empty(ctx context.Context) error {
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	var children []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.IsDir() {
				children = append(children, filepath.Join(dir, entry.Name()))
			}
		}
	}
	return removeTrees(ctx, children)
}

// removeTrees removes groups and all below them. A process takes a moment to end, and its group stays until then.
func removeTrees(ctx context.Context, dirs []string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	for {
		err := removeGroups(dirs)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("control groups are left: %w", err)
		case <-time.After(removePoll):
		}
	}
}

func removeGroups(dirs []string) error {
	var errs []error
	for _, dir := range dirs {
		groups, err := treeOf(dir)
		if err != nil {
			return err
		}
		for _, group := range slices.Backward(groups) { // children first
			errs = append(errs, killAll(group), gone(os.Remove(group)))
		}
	}
	return errors.Join(errs...)
}

// treeOf returns a group and all below it, parents first; nothing if there is none.
func treeOf(dir string) (groups []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return gone(err)
	})
	return groups, err
}

// killAll ends the processes of one group.
func killAll(group string) error {
	data, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if err != nil {
		return gone(err)
	}
	for _, word := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(word)
		if err != nil || pid == 0 {
			return fmt.Errorf("%s has a process %s of another namespace", group, word)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// gone forgives that something is not there any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return err
}
