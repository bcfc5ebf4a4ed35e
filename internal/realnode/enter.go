// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"reprise.dev/reprise/internal/controlplane"
)

// EnterOptions say what runs in the namespaces of a cluster.
type EnterOptions struct {
	// Name tells clusters on one machine apart: lower-case letters, digits and dashes; empty means DefaultName.
	Name string
	// Dir receives data and logs; empty means reprise-node-<name> in the directory of temporary files. It is emptied first,
	// and removed at the end unless the command failed.
	Dir string
	// Command runs in the namespaces, in this process's working directory, with its environment, standard input and outputs.
	Command []string
	// Progress receives lines about what takes long; nil means standard error.
	Progress io.Writer
}

// DefaultName is the name of a cluster that was given none.
const DefaultName = "reprise"

// These variables tell the command that Enter runs which cluster it is in.
const (
	nameVariable = "REPRISE_NODE_NAME"
	dirVariable  = "REPRISE_NODE_DIR"
)

// Inside says whether this process runs in namespaces that Enter has made, so that Start works.
func Inside() bool { return os.Getenv(dirVariable) != "" }

// DirOf returns the directory of the cluster with a name when none was given to EnterOptions.
func DirOf(name string) string { return filepath.Join(os.TempDir(), "reprise-node-"+name) }

var goodName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// complete fills in what was left out.
func (o *EnterOptions) complete() error {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if !goodName.MatchString(o.Name) {
		return fmt.Errorf("%q cannot be the name of a cluster: up to 32 lower-case letters, digits and dashes", o.Name)
	}
	if len(o.Command) == 0 {
		return errors.New("no command to run in the cluster")
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.Dir == "" {
		o.Dir = DirOf(o.Name)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	if dir == "/run" || strings.HasPrefix(dir, "/run/") || strings.HasPrefix(dir, "/var/run/") {
		return fmt.Errorf("%s is hidden inside a cluster: choose a directory elsewhere", dir)
	}
	o.Dir = dir
	return nil
}

// Enter makes the namespaces of a cluster, runs a command in them, in which Start works, and takes down all that the command
// leaves when it ends. It returns the command's exit code. When ctx ends, the command is sent SIGTERM. What an earlier Enter
// of the same name has left because it was killed is taken down first. The program that calls Enter must call Init when its
// first argument is InitVerb.
func Enter(ctx context.Context, o EnterOptions) (code int, err error) {
	if err := o.complete(); err != nil {
		return 0, err
	}
	if os.Geteuid() != 0 {
		return 0, errors.New("a cluster that runs pods needs root")
	}
	if _, _, err := ensureBinaries(ctx, o.Progress); err != nil {
		return 0, err
	}
	unlock, err := lockName(ctx, o)
	if err != nil {
		return 0, err
	}
	defer unlock()
	groups := cgroupsOf(o.Name)
	if err := groups.remove(ctx); err != nil {
		return 0, err
	}
	if err := emptyDir(o.Dir); err != nil {
		return 0, err
	}
	if err := groups.make(); err != nil {
		return 0, err
	}
	code, err = runInNamespaces(ctx, o)
	err = errors.Join(err, groups.remove(context.WithoutCancel(ctx)))
	if err != nil || code != 0 {
		say(o.Progress, "data and logs are kept in %s", o.Dir)
		return code, errors.Join(err, dropBulk(o.Dir))
	}
	return 0, os.RemoveAll(o.Dir)
}

// lockName makes sure that there is one cluster of a name.
func lockName(ctx context.Context, o EnterOptions) (unlock func(), err error) {
	store, err := controlplane.StoreDir()
	if err != nil {
		return nil, err
	}
	return controlplane.Lock(ctx, filepath.Join(store, ".reprise-node-"+o.Name+".lock"), func() {
		say(o.Progress, "another cluster %s is running (process %s); waiting for its end", o.Name, firstOf(o.Dir))
	})
}

// firstOf returns the id of the first process of the cluster in a directory, or what is wrong with it.
func firstOf(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, pidFile))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}

// PIDOf returns the id of the first process of the running cluster in a directory: whoever enters its namespaces is in the
// cluster.
func PIDOf(dir string) (int, error) {
	pid, err := strconv.Atoi(firstOf(dir))
	if err != nil {
		return 0, fmt.Errorf("no cluster runs in %s", dir)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil {
		return 0, fmt.Errorf("the cluster in %s has ended", dir)
	}
	return pid, nil
}

// emptyDir makes a directory with nothing in it. Only a directory that was a cluster's before is emptied.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case len(entries) > 0:
		if _, err := os.Stat(filepath.Join(dir, markerFile)); err != nil {
			return fmt.Errorf("%s is not empty and not of an earlier cluster: %w", dir, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, podLogsDir), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, markerFile), nil, 0o644)
}

// dropBulk removes what a person who looks for the cause of a failure does not read: images and the roots of containers.
func dropBulk(dir string) error {
	return os.RemoveAll(filepath.Join(dir, containerdDir))
}

func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, "node: "+format+"\n", args...) // nobody reads: nothing to do about it
}
