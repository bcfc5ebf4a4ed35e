// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

var (
	ourModule      = regexp.MustCompile(`(?m)^module reprise\.dev/reprise$`)
	kubernetesLine = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes v(\S+)`)
)

// Root returns the root directory of the repository, found upwards from the working directory. Tests run in their
// package's directory, and nested modules have go.mod files of their own, so the module's name decides.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && ourModule.Match(data) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working directory is not inside the repository of reprise.dev/reprise")
		}
	}
}

// pinnedVersion is the version of Kubernetes that a module below hack builds: its go.mod is the one place that says it.
func pinnedVersion(root, module string) (string, error) {
	path := filepath.Join(root, module, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	found := kubernetesLine.FindSubmatch(data)
	if found == nil {
		return "", fmt.Errorf("%s requires no k8s.io/kubernetes", path)
	}
	return string(found[1]), nil
}
