// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"path/filepath"
)

// releaseVariable chooses the release of Kubernetes to test with: newest (as does nothing) or oldest, the ends of what is
// supported.
const releaseVariable = "KUBERNETES"

// moduleOf returns the module that pins and builds the chosen release, by its path from the repository's root.
func moduleOf(release string) (string, error) {
	newest := filepath.Join("hack", "controlplane")
	switch release {
	case "", "newest":
		return newest, nil
	case "oldest":
		return filepath.Join(newest, "oldest"), nil
	}
	return "", fmt.Errorf("%s is %q, and can be newest or oldest", releaseVariable, release)
}
