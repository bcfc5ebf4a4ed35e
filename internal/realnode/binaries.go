// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"reprise.dev/reprise/internal/controlplane"
)

// runtimeBinaries are the container runtime, by path.
type runtimeBinaries struct {
	containerd, ctr, runc string
	cni                   string // the directory of the network plugins
}

// The packages of Debian and Ubuntu that have a container runtime.
var runtimePackages = []string{"containerd", "runc", "containernetworking-plugins"}

// ensureBinaries returns everything that a node runs, and gets it first where it is missing, which needs the network.
func ensureBinaries(ctx context.Context, progress io.Writer) (controlplane.Assets, runtimeBinaries, error) {
	kubernetes, err := controlplane.EnsureAssets(ctx, controlplane.AssetOptions{ControllerManager: true, Node: true, Progress: progress})
	if err != nil {
		return kubernetes, runtimeBinaries{}, err
	}
	store, err := controlplane.StoreDir()
	if err != nil {
		return kubernetes, runtimeBinaries{}, err
	}
	unpacked := filepath.Join(store, "container-runtime")
	if found, err := findRuntime("/", unpacked); err == nil {
		return kubernetes, found, nil
	}
	unlock, err := controlplane.Lock(ctx, filepath.Join(store, ".reprise-runtime.lock"), func() {
		say(progress, "another process is fetching a container runtime; waiting for it")
	})
	if err != nil {
		return kubernetes, runtimeBinaries{}, err
	}
	defer unlock()
	found, err := findRuntime("/", unpacked)
	if err == nil {
		return kubernetes, found, nil
	}
	say(progress, "no container runtime is installed (%v); unpacking the distribution's packages into %s", err, unpacked)
	if err := unpackRuntime(ctx, unpacked); err != nil {
		return kubernetes, found, fmt.Errorf("no container runtime: %w\nWhat helps: apt-get install %s", err, strings.Join(runtimePackages, " "))
	}
	found, err = findRuntime("/", unpacked)
	return kubernetes, found, err
}

// findRuntime looks for a container runtime below some roots. The parts of one runtime may be below different ones.
func findRuntime(roots ...string) (runtimeBinaries, error) {
	var found runtimeBinaries
	var missing []string
	look := func(into *string, name string, places ...string) {
		for _, root := range roots {
			for _, place := range places {
				path := filepath.Join(root, place)
				if _, err := os.Stat(filepath.Join(path, name)); err == nil {
					*into = path
					return
				}
			}
		}
		missing = append(missing, name)
	}
	programs := []string{"usr/local/bin", "usr/local/sbin", "usr/bin", "usr/sbin"}
	look(&found.containerd, "containerd", programs...)
	look(&found.ctr, "ctr", programs...)
	look(&found.runc, "runc", programs...)
	look(&found.cni, "bridge", "opt/cni/bin", "usr/lib/cni")
	if len(missing) > 0 {
		return found, errors.New("missing: " + strings.Join(missing, ", "))
	}
	found.containerd = filepath.Join(found.containerd, "containerd")
	found.ctr = filepath.Join(found.ctr, "ctr")
	found.runc = filepath.Join(found.runc, "runc")
	return found, nil
}

// unpackRuntime downloads the distribution's packages and unpacks them into a directory. Nothing is installed: no script of
// theirs runs and no service is started.
func unpackRuntime(ctx context.Context, dir string) error {
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".reprise-tmp-runtime-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }() // a left-over costs space only
	if err := download(ctx, temporary); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(temporary, "*.deb"))
	if err != nil {
		return err
	}
	root := filepath.Join(temporary, "root")
	for _, file := range packages {
		if err := command(ctx, temporary, "dpkg-deb", "-x", file, root); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(root, dir)
}

// download lets apt fetch the packages. Where its lists are missing or too old it is given fresh ones of its own: those of the
// system stay as they are.
func download(ctx context.Context, dir string) error {
	fetch := append([]string{"download"}, runtimePackages...)
	first := command(ctx, dir, "apt-get", fetch...)
	if first == nil {
		return nil
	}
	private := []string{"-o", "Dir::State::Lists=" + filepath.Join(dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(dir, "cache")}
	if err := os.MkdirAll(filepath.Join(dir, "lists", "partial"), 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "cache", "archives", "partial"), 0o755); err != nil {
		return err
	}
	if err := command(ctx, dir, "apt-get", append(private, "update")...); err != nil {
		return errors.Join(first, err)
	}
	if err := command(ctx, dir, "apt-get", append(private, fetch...)...); err != nil {
		return errors.Join(first, err)
	}
	return nil
}

// command runs a program in a directory; its output is in the error.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
