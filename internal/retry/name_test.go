// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"strings"
	"testing"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestChildName(t *testing.T) {
	longest := strings.Repeat("a", 57)
	nth := func(root string, n int32) *batchv1alpha1.JobRun {
		return aRun("last", attempt(n-1, "before"), func(r *batchv1alpha1.JobRun) { r.Spec.Chain.RootName, r.UID = root, "uid" })
	}
	for _, c := range []struct {
		name      string
		failed    *batchv1alpha1.JobRun
		collision int
		want      string
	}{
		{"the first retry", aRun("demo"), 0, "demo-r1"},
		{"a retry of a retry", nth("demo", 3), 0, "demo-r3"},
		{"the hundredth retry of the longest name", nth(longest, 100), 0, longest + "-r100"},
		{"a number too long for the longest name", nth(longest, 1_000_000), 0, strings.Repeat("a", 54) + "-r1000000"},
		{"no separator before the suffix", nth(strings.Repeat("a", 53)+"--bb", 1_000_000), 0, strings.Repeat("a", 53) + "-r1000000"},
		{"the name is taken", nth("demo", 3), 1, "demo-r3-df59627b"},
		{"the next is taken, too", nth("demo", 3), 2, "demo-r3-1f47472c"},
		{"the longest name is taken", nth(longest, 3), 1, strings.Repeat("a", 51) + "-r3-df59627b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ChildName(c.failed, c.collision)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if len(got) > 63 {
				t.Errorf("%d characters", len(got))
			}
		})
	}
}

func TestTwoFailedRunsDoNotMeetUnderTheSecondName(t *testing.T) {
	other := aRun("demo", func(r *batchv1alpha1.JobRun) { r.UID = "other" })
	if a, b := ChildName(aRun("demo"), 1), ChildName(other, 1); a == b {
		t.Errorf("both are %s", a)
	}
}
