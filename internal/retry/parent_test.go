// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestARunThatWasMadeAfterARetryIsNotItsParent(t *testing.T) {
	made := func(second int, version string, sequence int64) *batchv1alpha1.JobRun {
		return aRun("root", func(r *batchv1alpha1.JobRun) {
			r.CreationTimestamp, r.ResourceVersion, r.Status.Sequence = metav1.NewTime(at(second)), version, sequence
		})
	}
	retry := made(1, "20", 0)
	for name, c := range map[string]struct {
		of   *batchv1alpha1.JobRun
		want bool
	}{
		"made a second earlier and written since":           {made(0, "30", 10), false},
		"made in the same second and written since":         {made(1, "30", 10), false},
		"made anew in the same second, and not written yet": {made(1, "25", 0), true},
		"made anew in the same second, and written since":   {made(1, "30", 25), true},
		"made anew in a later second":                       {made(2, "25", 0), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Namesake(c.of, retry); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
