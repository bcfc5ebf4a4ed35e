// SPDX-License-Identifier: Apache-2.0

package notify

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// Kind is a kind of objects whose end is announced.
type Kind string

const (
	// KindRun is that of JobRuns.
	KindRun Kind = "JobRun"
	// KindGroup is that of JobGroups.
	KindGroup Kind = "JobGroup"
)

// Name names one object of a kind.
type Name struct {
	Kind Kind
	types.NamespacedName
}

// Object is a JobRun or a JobGroup.
type Object interface {
	metav1.Object
	runtime.Object
}

// Subject is what announcements are about: a run or a group, whose status is the outbox.
type Subject interface {
	// Object is the object itself.
	Object() Object
	// Kind of the object.
	Kind() Kind
	// Queue names the queue whose receivers are told.
	Queue() string
	// ScheduledJob names the one that it comes from, whose receivers are told too; "" if there is none.
	ScheduledJob() string
	// FinishedAt is when it ended, nil if it has not.
	FinishedAt() *metav1.Time
	// Announcements in its status.
	Announcements() []batchv1alpha1.Announcement
	// SetAnnouncements replaces them.
	SetAnnouncements([]batchv1alpha1.Announcement)
	// resource is what the API server calls the kind, in its paths.
	resource() string
	// data is what an event tells of it.
	data() any
}

// NewSubject returns an empty subject of the kind, to read one into.
func NewSubject(k Kind) Subject {
	if k == KindGroup {
		return OfGroup(&batchv1alpha1.JobGroup{})
	}
	return OfRun(&batchv1alpha1.JobRun{})
}

// Of returns the object as a subject; nil if it is neither a JobRun nor a JobGroup.
func Of(o runtime.Object) Subject {
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		return OfRun(o)
	case *batchv1alpha1.JobGroup:
		return OfGroup(o)
	default:
		return nil
	}
}

// OfRun returns the run as a subject.
func OfRun(r *batchv1alpha1.JobRun) Subject { return aRun{r} }

// OfGroup returns the group as a subject.
func OfGroup(g *batchv1alpha1.JobGroup) Subject { return aGroup{g} }

// NameOf returns the name of a subject.
func NameOf(s Subject) Name {
	o := s.Object()
	return Name{s.Kind(), types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

type aRun struct{ run *batchv1alpha1.JobRun }

// Object implements Subject.
func (s aRun) Object() Object { return s.run }

// Kind implements Subject.
func (s aRun) Kind() Kind { return KindRun }

// Queue implements Subject.
func (s aRun) Queue() string { return run.Queue(s.run) }

// ScheduledJob implements Subject.
func (s aRun) ScheduledJob() string { return run.ScheduledJob(s.run) }

// FinishedAt implements Subject.
func (s aRun) FinishedAt() *metav1.Time { return s.run.Status.FinishedAt }

// Announcements implements Subject.
func (s aRun) Announcements() []batchv1alpha1.Announcement { return s.run.Status.Announcements }

// SetAnnouncements implements Subject.
func (s aRun) SetAnnouncements(a []batchv1alpha1.Announcement) { s.run.Status.Announcements = a }

func (s aRun) resource() string { return "jobruns" }
func (s aRun) data() any        { return dataOfRun(s.run) }

type aGroup struct{ group *batchv1alpha1.JobGroup }

// Object implements Subject.
func (s aGroup) Object() Object { return s.group }

// Kind implements Subject.
func (s aGroup) Kind() Kind { return KindGroup }

// Queue implements Subject.
func (s aGroup) Queue() string { return QueueOfGroup(s.group) }

// ScheduledJob implements Subject.
func (s aGroup) ScheduledJob() string {
	if s.group.Spec.ScheduledJobRef == nil {
		return ""
	}
	return s.group.Spec.ScheduledJobRef.Name
}

// FinishedAt implements Subject.
func (s aGroup) FinishedAt() *metav1.Time { return s.group.Status.FinishedAt }

// Announcements implements Subject.
func (s aGroup) Announcements() []batchv1alpha1.Announcement { return s.group.Status.Announcements }

// SetAnnouncements implements Subject.
func (s aGroup) SetAnnouncements(a []batchv1alpha1.Announcement) { s.group.Status.Announcements = a }

func (s aGroup) resource() string { return "jobgroups" }
func (s aGroup) data() any        { return dataOfGroup(s.group) }

// QueueOfGroup returns the name of the queue whose receivers are told of the group: that of its first member.
func QueueOfGroup(g *batchv1alpha1.JobGroup) string {
	if len(g.Spec.Members) == 0 || g.Spec.Members[0].RunTemplate.Queue == "" {
		return batchv1alpha1.DefaultQueue
	}
	return g.Spec.Members[0].RunTemplate.Queue
}
