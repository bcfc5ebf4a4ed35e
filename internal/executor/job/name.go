// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// maxLabel is the longest DNS label and label value.
	maxLabel = 63
	// hashLength of 5 bits each: two runs of the same name and hash are not to be expected in the life of a cluster.
	hashLength = 10
)

// Name returns the name of the Job of a run: the one on record, or else the run's name, cut, and a hash of its UID. There
// is no other Job for the run, whoever creates it and however often; a namesake of the run has another.
func Name(r *batchv1alpha1.JobRun) string {
	if r.Status.JobName != "" {
		return r.Status.JobName
	}
	suffix := "-" + hash(r.UID)
	base := strings.ReplaceAll(r.Name, ".", "-")
	if most := maxName(r) - len(suffix); len(base) > most {
		base = strings.TrimRight(base[:most], "-")
	}
	return base + suffix
}

// maxName leaves room for the index that the host names of an Indexed Job's pods end with: the API server counts it too.
func maxName(r *batchv1alpha1.JobRun) int {
	w := workOf(r)
	if w == nil || ptr.Deref(w.Template.Spec.CompletionMode, batchv1.NonIndexedCompletion) != batchv1.IndexedCompletion {
		return maxLabel
	}
	last := max(ptr.Deref(w.Template.Spec.Completions, 1)-1, 0)
	return maxLabel - len("-") - len(strconv.Itoa(int(last)))
}

func hash(uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:hashLength]
}

// labelValue makes a label's value of the name of an object, which may be longer.
func labelValue(name string) string {
	if len(name) > maxLabel {
		name = name[:maxLabel]
	}
	return strings.TrimRight(name, "-.")
}
