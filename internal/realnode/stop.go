// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Stop ends every pod and every process of the cluster and removes its mounts. Its directory is Enter's to remove. It can be
// called again.
func (n *Node) Stop() error {
	n.stopOnce.Do(func() {
		errs := []error{n.processes.KillAll()} // the kubelet first, or it would start anew what is ended
		if n.journal != nil {
			errs = append(errs, n.journal.stop())
		}
		shims, err := processesNamed("containerd-shim")
		errs = append(errs, err)
		for _, pid := range shims {
			errs = append(errs, end(pid))
		}
		errs = append(errs, cgroupsOf(os.Getenv(nameVariable)).empty(context.Background()), unmountAll())
		n.stopErr = errors.Join(errs...)
	})
	return n.stopErr
}

func end(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// processesNamed returns the processes whose name begins with a word. There are none but ours: all are of the cluster's own
// namespace of processes. The kernel cuts names at 15 characters.
func processesNamed(prefix string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range files {
		name, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(name, []byte(prefix)) {
			continue // another one, or it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// unmountAll removes what containers and volumes have left mounted.
func unmountAll() error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var errs []error
	for _, place := range slices.Backward(mountsBelow(string(data), inside, filepath.Dir(runtimeSocket), "/run/netns")) {
		if err := unmount(place); err != nil {
			errs = append(errs, fmt.Errorf("%s stays mounted: %w", place, err))
		}
	}
	return errors.Join(errs...)
}

// mountsBelow returns the places strictly below some directories where something is mounted, in the order of mounting.
func mountsBelow(mountinfo string, dirs ...string) []string {
	var places []string
	for line := range strings.Lines(mountinfo) {
		words := strings.Fields(line)
		if len(words) < 5 {
			continue
		}
		place := unescape.Replace(words[4])
		if slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(place, dir+"/") }) {
			places = append(places, place)
		}
	}
	return places
}

// unescape undoes what the kernel does to the characters that separate words and lines.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
