// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// nameLimit is the longest name of a retry. The names of roots leave room for it.
const nameLimit = 63

// ChildName returns the name of the automatic retry of the failed run: <root>-r<attempt>, or <root>-r<attempt>-<hash> when
// collision foreign objects have the names before it. It is the same however often it is asked for, so that a retry is made
// once.
func ChildName(failed *batchv1alpha1.JobRun, collision int) string {
	root, attempt := run.Chain(failed).RootName, run.Attempt(failed)+1
	if collision == 0 {
		return fit(root, fmt.Sprintf("-r%d", attempt))
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", failed.UID, collision))
	return fit(root, fmt.Sprintf("-r%d-%s", attempt, hex.EncodeToString(sum[:4])))
}

// fit shortens the root's name, never the suffix.
func fit(root, suffix string) string {
	if room := nameLimit - len(suffix); len(root) > room {
		root = strings.TrimRight(root[:room], "-.")
	}
	return root + suffix
}
