// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// Data is the data of every event, as JSON.
type Data struct {
	// Namespace, Name and UID of the JobRun.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Queue, Type and ScheduledJob are those of the run.
	Queue        string `json:"queue,omitempty"`
	Type         string `json:"type,omitempty"`
	ScheduledJob string `json:"scheduledJob,omitempty"`
	// Phase, Reason and Message are those of its status.
	Phase   batchv1alpha1.JobRunPhase `json:"phase"`
	Reason  string                    `json:"reason,omitempty"`
	Message string                    `json:"message,omitempty"`
	// Attempt is 0 for the first run of a chain and n for its n-th retry.
	Attempt int32 `json:"attempt"`
	// RootName is the name of the first run of the chain; RetryOf of the run that this one tried again.
	RootName string `json:"rootName"`
	RetryOf  string `json:"retryOf,omitempty"`
	// StartedAt is absent for a run that never started.
	StartedAt  *metav1.Time `json:"startedAt,omitempty"`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// IdempotencyKey is the same for every run of the chain, and what the work was given.
	IdempotencyKey string `json:"idempotencyKey"`
}

// Event returns the CloudEvent of that type about the terminal run. It is the same at every delivery, its id included, so
// that a receiver can tell a repetition. An error says that the run as it stands cannot be made into a valid event.
func Event(r *batchv1alpha1.JobRun, kind string) (event.Event, error) {
	e := event.New()
	e.SetID(eventID(r, kind))
	e.SetType(kind)
	e.SetSource(fmt.Sprintf("/apis/%s/namespaces/%s/jobruns/%s", batchv1alpha1.GroupVersion, r.Namespace, r.Name))
	e.SetSubject(r.Name)
	if r.Status.FinishedAt != nil {
		e.SetTime(r.Status.FinishedAt.Time)
	}
	if err := e.SetData(event.ApplicationJSON, dataOf(r)); err != nil {
		return event.Event{}, fmt.Errorf("event data: %w", err)
	}
	if err := e.Validate(); err != nil {
		return event.Event{}, fmt.Errorf("event: %w", err)
	}
	return e, nil
}

// eventID has no full stop in it, which signatures of webhooks use as their separator.
func eventID(r *batchv1alpha1.JobRun, kind string) string {
	return string(r.UID) + "/" + strings.TrimPrefix(kind, "job.run.")
}

func dataOf(r *batchv1alpha1.JobRun) Data {
	chain := run.Chain(r)
	d := Data{
		Namespace:      r.Namespace,
		Name:           r.Name,
		UID:            r.UID,
		Queue:          run.Queue(r),
		Type:           run.Type(r),
		Phase:          r.Status.Phase,
		Reason:         r.Status.Reason,
		Message:        r.Status.Message,
		Attempt:        run.Attempt(r),
		RootName:       chain.RootName,
		RetryOf:        r.Spec.RetryOf,
		StartedAt:      r.Status.StartedAt,
		FinishedAt:     r.Status.FinishedAt,
		IdempotencyKey: chain.IdempotencyKey,
	}
	if r.Spec.ScheduledJobRef != nil {
		d.ScheduledJob = r.Spec.ScheduledJobRef.Name
	}
	return d
}
