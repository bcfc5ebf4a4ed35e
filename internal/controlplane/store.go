// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// storeDir is the directory setup-envtest keeps its binaries in. Using the same one means that either tool finds what
// the other has put there.
func storeDir(goos string, getenv func(string) string) (string, error) {
	if goos == "darwin" {
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("HOME is not set")
		}
		return filepath.Join(home, "Library", "Application Support", "io.kubebuilder.envtest"), nil
	}
	data := getenv("XDG_DATA_HOME")
	if data == "" {
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("neither XDG_DATA_HOME nor HOME is set")
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "kubebuilder-envtest"), nil
}

// StoreDir is the directory of everything that is built or fetched once per machine.
func StoreDir() (string, error) { return storeDir(runtime.GOOS, os.Getenv) }

// platform is the suffix of the store's directories: linux-amd64.
func platform() string { return runtime.GOOS + "-" + runtime.GOARCH }

// itemDir is the store's directory for one version.
func (f *finder) itemDir(version string) string {
	return filepath.Join(f.store, "k8s", version+"-"+f.platform)
}

// storedVersions lists the store's versions of the same minor as the one wanted, newest patch first. The patch is free:
// downloads exist for few of them.
func (f *finder) storedVersions() []string {
	entries, err := os.ReadDir(filepath.Join(f.store, "k8s"))
	if err != nil {
		return nil // no store yet
	}
	var patches []int
	for _, entry := range entries {
		version, isOurs := strings.CutSuffix(entry.Name(), "-"+f.platform)
		patch, isMinor := strings.CutPrefix(version, minor(f.version)+".")
		n, err := strconv.Atoi(patch)
		if isOurs && isMinor && err == nil {
			patches = append(patches, n)
		}
	}
	slices.Sort(patches)
	slices.Reverse(patches)
	versions := make([]string, len(patches))
	for i, n := range patches {
		versions[i] = fmt.Sprintf("%s.%d", minor(f.version), n)
	}
	return versions
}

// inStore says whether the directory is one of the store's, and so ours to complete.
func (f *finder) inStore(dir string) bool {
	return filepath.Dir(filepath.Clean(dir)) == filepath.Join(f.store, "k8s")
}
