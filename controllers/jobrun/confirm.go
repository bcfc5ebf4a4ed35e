// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// A node that never answers leaves pods of which nobody can tell whether they live, and a manager whose end cannot be seen
// leaves calls. A person who knows that they are gone says so by an annotation, and it is on record who did (design section 3).

// confirmation returns what a person has said about work that was asked to stop and cannot be seen to have: the text for the
// record, "" if nothing counts. The run is read live then, with the managed fields that the cache lacks.
func (s *scope) confirmation(ctx context.Context, ev executor.Evidence) (string, error) {
	value := s.run.Annotations[batchv1alpha1.AnnotationConfirmStopped]
	switch {
	case value == "":
		return "", s.overdue(ctx, ev)
	case !run.StopConfirmed(s.run):
		return "", s.ignore(ctx, value)
	case !ev.Confirmable:
		return "", nil
	}
	if same, err := s.refresh(ctx); !same || err != nil || !run.StopConfirmed(s.run) {
		return "", err
	}
	return fmt.Sprintf("%s confirmed that nothing of the work lives; what could be seen: %s", annotatedBy(s.run.ManagedFields), ev.Detail), nil
}

// ignore says, once, that a confirmation names another run.
func (s *scope) ignore(ctx context.Context, value string) error {
	ignored := metav1.Condition{
		Type: batchv1alpha1.ConditionStopConfirmed, Status: metav1.ConditionFalse, Reason: batchv1alpha1.ReasonUIDMismatch,
		Message: bounded(fmt.Sprintf("the annotation %s is ignored: it has to hold the UID of the run, %s, and holds %q",
			batchv1alpha1.AnnotationConfirmStopped, s.run.UID, value)),
		ObservedGeneration: s.run.Generation, LastTransitionTime: metav1.NewTime(s.now),
	}
	if !meta.SetStatusCondition(&s.run.DeepCopy().Status.Conditions, ignored) {
		return nil
	}
	err := s.write(ctx, func(r *batchv1alpha1.JobRun) { meta.SetStatusCondition(&r.Status.Conditions, ignored) })
	if err == nil {
		s.log.Info("confirmation ignored", "message", ignored.Message)
		s.event(corev1.EventTypeWarning, ignored.Reason, "Ignore", ignored.Message)
	}
	return err
}

// overdue says, once, which pods hold the slot though their grace is long over, and on which node: that is where somebody has to look.
func (s *scope) overdue(ctx context.Context, ev executor.Evidence) error {
	if !ev.Confirmable || !run.Overdue(ev.Due, s.now) {
		return nil
	}
	message := bounded(fmt.Sprintf("the slot stays held: %s; if nothing of it lives, say so by the annotation %s=%s",
		ev.Detail, batchv1alpha1.AnnotationConfirmStopped, s.run.UID))
	if !run.StopOverdue(s.run.DeepCopy(), message, s.now) {
		return nil
	}
	err := s.write(ctx, func(r *batchv1alpha1.JobRun) { run.StopOverdue(r, message, s.now) })
	if err == nil {
		s.log.Info("stop overdue", "detail", ev.Detail)
		s.event(corev1.EventTypeWarning, batchv1alpha1.ReasonStopOverdue, "Stop", message)
	}
	return err
}

// sayConfirmed puts a confirmation on record.
func sayConfirmed(r *batchv1alpha1.JobRun, message string, now time.Time) {
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: batchv1alpha1.ConditionStopConfirmed, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonConfirmedByPerson,
		Message: bounded(message), ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// confirmed tells that a slot was freed by a person's word.
func (s *scope) confirmed(message string) {
	s.log.Info("stop confirmed by a person", "type", run.Type(s.run), "message", message)
	s.event(corev1.EventTypeWarning, batchv1alpha1.ReasonConfirmedByPerson, "FreeSlot", message)
}

// annotatedBy says who set the confirmation last, and when, as far as the managed fields tell: they name tools, not people,
// and audit logs name the person.
func annotatedBy(fields []metav1.ManagedFieldsEntry) string {
	var last *metav1.ManagedFieldsEntry
	for i := range fields {
		if f := &fields[i]; sets(f, batchv1alpha1.AnnotationConfirmStopped) && (last == nil || last.Time.Before(f.Time)) {
			last = f
		}
	}
	switch {
	case last == nil:
		return "somebody"
	case last.Time == nil:
		return fmt.Sprintf("somebody, by %s,", last.Manager)
	default:
		return fmt.Sprintf("somebody, by %s at %s,", last.Manager, last.Time.UTC().Format(time.RFC3339))
	}
}

// sets reports whether a manager of fields owns the annotation.
func sets(f *metav1.ManagedFieldsEntry, annotation string) bool {
	if f.FieldsV1 == nil {
		return false
	}
	var owned struct {
		Metadata struct {
			Annotations map[string]any `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &owned); err != nil {
		return false
	}
	_, sets := owned.Metadata.Annotations["f:"+annotation]
	return sets
}
