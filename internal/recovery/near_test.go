// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"testing"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

func TestNear(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		phase batchv1alpha1.JobRunPhase
		ended time.Time
		want  bool
	}{
		"work that has just ended is about to have its outcome":        {batchv1alpha1.JobRunRunning, now.Add(-time.Second), true},
		"also by the clock of a node that is a little ahead":           {batchv1alpha1.JobRunRunning, now.Add(time.Second), true},
		"work that ended long ago has none, if it has none yet":        {batchv1alpha1.JobRunRunning, now.Add(-15 * time.Second), false},
		"nothing is known by a clock that is far off":                  {batchv1alpha1.JobRunRunning, now.Add(time.Hour), false},
		"work that has not ended is not about to have one":             {batchv1alpha1.JobRunRunning, time.Time{}, false},
		"a run that is being cancelled fails whatever its work did":    {batchv1alpha1.JobRunCancelling, now, false},
		"a run that has its outcome already is not one to wait for it": {batchv1alpha1.JobRunFailed, now, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &batchv1alpha1.JobRun{Status: batchv1alpha1.JobRunStatus{Phase: c.phase}}
			if got := Near(r, executor.Evidence{Life: executor.Alive, EndedAt: c.ended}, now); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
