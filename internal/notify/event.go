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

// Data is the data of an event about a run, as JSON.
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

// GroupData is the data of an event about a group, as JSON.
type GroupData struct {
	// Namespace, Name and UID of the JobGroup.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Queue is that of the first member.
	Queue string `json:"queue"`
	// ScheduledJob and ScheduledTime are those of the tick that made the group, if one did.
	ScheduledJob  string       `json:"scheduledJob,omitempty"`
	ScheduledTime *metav1.Time `json:"scheduledTime,omitempty"`
	// Phase, Reason and Message are those of its status.
	Phase   batchv1alpha1.JobGroupPhase `json:"phase"`
	Reason  string                      `json:"reason,omitempty"`
	Message string                      `json:"message,omitempty"`
	// Members in their order, those without a run included.
	Members []MemberData `json:"members"`
	// StartedAt is absent for a group of which no member was ever queued.
	StartedAt  *metav1.Time `json:"startedAt,omitempty"`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// MemberData is what an event about a group tells of one member. Its runs are announced by themselves, with RunName as the
// rootName of their events.
type MemberData struct {
	// Name of the member.
	Name string `json:"name"`
	// Phase and Reason of the member.
	Phase  batchv1alpha1.GroupMemberPhase `json:"phase"`
	Reason string                         `json:"reason,omitempty"`
	// RunName is the first run of the member's chain, "" if none was ever made.
	RunName string `json:"runName,omitempty"`
}

// Event returns the CloudEvent of that type about the terminal run or group. It is the same at every delivery, its id
// included, so that a receiver can tell a repetition. An error says that the subject as it stands cannot be made into a valid
// event.
func Event(s Subject, kind string) (event.Event, error) {
	o := s.Object()
	e := event.New()
	e.SetID(eventID(s, kind))
	e.SetType(kind)
	e.SetSource(fmt.Sprintf("/apis/%s/namespaces/%s/%s/%s", batchv1alpha1.GroupVersion, o.GetNamespace(), s.resource(), o.GetName()))
	e.SetSubject(o.GetName())
	if at := s.FinishedAt(); at != nil {
		e.SetTime(at.Time)
	}
	if err := e.SetData(event.ApplicationJSON, s.data()); err != nil {
		return event.Event{}, fmt.Errorf("event data: %w", err)
	}
	if err := e.Validate(); err != nil {
		return event.Event{}, fmt.Errorf("event: %w", err)
	}
	return e, nil
}

// eventID has no full stop in it, which signatures of webhooks use as their separator. The UID alone tells a run from a group.
func eventID(s Subject, kind string) string {
	return string(s.Object().GetUID()) + "/" + kind[strings.LastIndex(kind, ".")+1:]
}

func dataOfRun(r *batchv1alpha1.JobRun) Data {
	chain := run.Chain(r)
	return Data{
		Namespace:      r.Namespace,
		Name:           r.Name,
		UID:            r.UID,
		Queue:          run.Queue(r),
		Type:           run.Type(r),
		ScheduledJob:   run.ScheduledJob(r),
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
}

func dataOfGroup(g *batchv1alpha1.JobGroup) GroupData {
	d := GroupData{
		Namespace:     g.Namespace,
		Name:          g.Name,
		UID:           g.UID,
		Queue:         QueueOfGroup(g),
		ScheduledJob:  OfGroup(g).ScheduledJob(),
		ScheduledTime: g.Spec.ScheduledTime,
		Phase:         g.Status.Phase,
		Reason:        g.Status.Reason,
		Message:       g.Status.Message,
		Members:       make([]MemberData, 0, len(g.Status.Members)),
		StartedAt:     g.Status.StartedAt,
		FinishedAt:    g.Status.FinishedAt,
	}
	for _, m := range g.Status.Members {
		d.Members = append(d.Members, MemberData{Name: m.Name, Phase: m.Phase, Reason: m.Reason, RunName: m.RunName})
	}
	return d
}
