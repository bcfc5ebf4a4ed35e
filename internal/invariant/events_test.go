// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

type eventChange func(*eventsv1.Event)

// event tells of a step of a run.
func (s *story) event(about *batchv1alpha1.JobRun, reason string, changes ...eventChange) {
	name := fmt.Sprint("event-", s.rv)
	e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	e.Regarding = corev1.ObjectReference{Kind: "JobRun", Name: about.Name, UID: about.UID}
	e.Reason, e.Note = reason, "because"
	for _, c := range changes {
		c(e)
	}
	s.put(e)
}

func related(uid types.UID) eventChange {
	return func(e *eventsv1.Event) { e.Related = &corev1.ObjectReference{UID: uid} }
}

func TestInvariant7EventsTellEachStepOnceAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		broken int
		events func(*story, *batchv1alpha1.JobRun)
	}{
		"each step once":              {0, func(s *story, r *batchv1alpha1.JobRun) { s.event(r, started); s.event(r, "Completed") }},
		"the slot twice":              {1, func(s *story, r *batchv1alpha1.JobRun) { s.event(r, started); s.event(r, started) }},
		"the end twice":               {1, func(s *story, r *batchv1alpha1.JobRun) { s.event(r, "Completed"); s.event(r, "Completed") }},
		"another end":                 {1, func(s *story, r *batchv1alpha1.JobRun) { s.event(r, "Failed") }},
		"another end beside the true": {2, func(s *story, r *batchv1alpha1.JobRun) { s.event(r, "Completed"); s.event(r, "Skipped") }},
		"a step that counts up": {1, func(s *story, r *batchv1alpha1.JobRun) {
			s.event(r, started, func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{Count: 2} })
		}},
		"two retries": {0, func(s *story, r *batchv1alpha1.JobRun) {
			s.event(r, "RetryCreated", related("x"))
			s.event(r, "RetryCreated", related("y"))
		}},
		"one retry twice": {1, func(s *story, r *batchv1alpha1.JobRun) {
			s.event(r, "RetryCreated", related("x"))
			s.event(r, "RetryCreated", related("x"))
		}},
		"what may be so again": {0, func(s *story, r *batchv1alpha1.JobRun) {
			s.event(r, "NoSignOfLife")
			s.event(r, "NoSignOfLife")
			s.event(r, started)
		}},
		"what is of somebody else": {0, func(s *story, r *batchv1alpha1.JobRun) {
			s.event(&batchv1alpha1.JobRun{}, "Failed")
			s.event(r, started)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cases{"": {broken: c.broken, tell: func(s *story) {
				r := s.run("a")
				s.whole(r, batchv1alpha1.JobRunCompleted)
				c.events(s, r)
			}}}.test(t, 7)
		})
	}
}
