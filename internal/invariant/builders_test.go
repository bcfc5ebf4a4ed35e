// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// story writes a history: every step is one version, one second after the one before.
type story struct {
	History
	rv  int
	now time.Time
}

// newStory begins with a queue of that limit, and a manager that leads.
func newStory(limit int32, changes ...func(*batchv1alpha1.JobQueue)) *story {
	s := &story{now: noon, rv: 100, History: History{Complete: true, Settled: true}}
	s.Managers = []Manager{{ID: "one", Epoch: "5.1", Began: noon}}
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", UID: "uid-q", Generation: 1}}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Limit: ptr.To(limit)}
	for _, c := range changes {
		c(q)
	}
	s.put(q)
	return s
}

func (s *story) tick() time.Time {
	s.rv++
	s.now = s.now.Add(time.Second)
	return s.now
}

// wait lets time pass without any version.
func (s *story) wait(d time.Duration) { s.now = s.now.Add(d) }

// put stores a copy of the object as it is now.
func (s *story) put(o client.Object) {
	at := s.tick()
	kind := watch.Modified
	if o.GetResourceVersion() == "" {
		kind = watch.Added
		o.SetCreationTimestamp(metav1.NewTime(at.Truncate(time.Second)))
	}
	o.SetResourceVersion(strconv.Itoa(s.rv))
	s.Versions = append(s.Versions, Version{At: at, Type: kind, Object: o.DeepCopyObject().(client.Object)})
}

// drop deletes the object.
func (s *story) drop(o client.Object) {
	at := s.tick()
	o.SetResourceVersion(strconv.Itoa(s.rv))
	s.Versions = append(s.Versions, Version{At: at, Type: watch.Deleted, Object: o.DeepCopyObject().(client.Object)})
}

type runChange func(*batchv1alpha1.JobRun)

// run creates a run of a person, with a Job.
func (s *story) run(name string, changes ...runChange) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Generation: 1}}
	r.Spec.Queue = "q"
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}}
	r.Status.Phase = batchv1alpha1.JobRunQueued
	for _, c := range changes {
		c(r)
	}
	s.put(r)
	return r
}

func typed(name string) runChange { return func(r *batchv1alpha1.JobRun) { r.Spec.Type = name } }

func claims(name string, n int32) runChange {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.Claims = append(r.Spec.Claims, batchv1alpha1.ResourceClaim{Name: name, Count: n})
	}
}

func uid(uid types.UID) runChange { return func(r *batchv1alpha1.JobRun) { r.UID = uid } }

func viaHTTP(r *batchv1alpha1.JobRun) {
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{}}
}

func retriesAtMost(n int32) runChange {
	return func(r *batchv1alpha1.JobRun) { r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To(n)} }
}

func prio(n int32) runChange { return func(r *batchv1alpha1.JobRun) { r.Spec.Priority = ptr.To(n) } }

// change stores the run with changes of it.
func (s *story) change(r *batchv1alpha1.JobRun, changes ...runChange) {
	for _, c := range changes {
		c(r)
	}
	s.put(r)
}

// claim is the step Queued → Running, by the process "one".
func (s *story) claim(r *batchv1alpha1.JobRun, changes ...runChange) {
	if r.Status.Sequence == 0 {
		r.Status.Sequence = int64(version(r))
	}
	r.Status.Phase, r.Status.Slot = batchv1alpha1.JobRunRunning, batchv1alpha1.SlotHeld
	r.Status.Queue = r.Spec.Queue
	r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "one", Epoch: "5.1"}
	r.Status.StartedAt = ptr.To(metav1.NewTime(s.now))
	if isHTTP(r) {
		r.Status.Deadline = ptr.To(metav1.NewTime(s.now.Add(time.Minute)))
	}
	s.change(r, changes...)
}

// finish gives the run its outcome; its slot is free with it.
func (s *story) finish(r *batchv1alpha1.JobRun, phase batchv1alpha1.JobRunPhase, changes ...runChange) {
	if r.Status.Sequence == 0 {
		r.Status.Sequence = int64(version(r))
	}
	r.Status.Phase, r.Status.Reason = phase, "Because"
	r.Status.FinishedAt = ptr.To(metav1.NewTime(s.now))
	if r.Status.Slot != "" {
		r.Status.Slot = batchv1alpha1.SlotFree
	}
	if r.Spec.RetryOf == "" {
		switch {
		case phase != batchv1alpha1.JobRunFailed:
			tell(r, batchv1alpha1.ConditionComplete)
		case halted(r) || attemptOf(r) >= maxRetries(r):
			tell(r, batchv1alpha1.ConditionFailed)
		}
	}
	s.change(r, changes...)
}

func held(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotHeld }

func because(reason string) runChange {
	return func(r *batchv1alpha1.JobRun) { r.Status.Reason = reason }
}

func tell(r *batchv1alpha1.JobRun, kind string) {
	r.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
}

func says1(kind string) runChange { return func(r *batchv1alpha1.JobRun) { tell(r, kind) } }

// retry creates the automatic retry of a failed run and records it.
func (s *story) retry(f *batchv1alpha1.JobRun, changes ...runChange) *batchv1alpha1.JobRun {
	c := s.retryUnrecorded(f, changes...)
	s.record(f, c)
	return c
}

func (s *story) retryUnrecorded(f *batchv1alpha1.JobRun, changes ...runChange) *batchv1alpha1.JobRun {
	c := carries(f)
	name := c.RootName + "-r" + strconv.Itoa(int(attemptOf(f)+1))
	return s.run(name, append([]runChange{func(r *batchv1alpha1.JobRun) {
		r.Spec.JobRunTemplateSpec = f.Spec.JobRunTemplateSpec
		r.Spec.RetryOf, r.Spec.Attempt, r.Spec.Chain = f.Name, attemptOf(f)+1, &c
	}}, changes...)...)
}

func (s *story) record(f, c *batchv1alpha1.JobRun) {
	s.change(f, func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: c.Name, UID: c.UID}
	})
}

// begin writes into the log that the work of the run begins, and returns what to end it with.
func (s *story) begin(r *batchv1alpha1.JobRun, changes ...func(*Act)) Act {
	s.now = s.now.Add(time.Millisecond)
	a := Act{At: s.now, Began: true, Work: Pod, Execution: "x" + strconv.Itoa(len(s.Acts)), Namespace: "ns", Name: r.Name, UID: r.UID, Key: keyOf(r), Attempt: attemptOf(r)}
	if isHTTP(r) {
		a.Work, a.UID, a.Manager = Call, "", "one"
	}
	for _, c := range changes {
		c(&a)
	}
	s.Acts = append(s.Acts, a)
	return a
}

// end writes the end of it into the log.
func (s *story) end(a Act) {
	s.now = s.now.Add(time.Millisecond)
	s.Acts = append(s.Acts, a.End(s.now, false))
}

func manager(id string) func(*Act) { return func(a *Act) { a.Manager = id } }

// whole runs a run from its claim to its end.
func (s *story) whole(r *batchv1alpha1.JobRun, phase batchv1alpha1.JobRunPhase, changes ...runChange) {
	s.claim(r)
	a := s.begin(r)
	s.wait(time.Second)
	s.end(a)
	s.finish(r, phase, changes...)
}

func (s *story) reserve(name string) *batchv1alpha1.DirectReservation {
	d := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Generation: 1}}
	d.Spec = batchv1alpha1.DirectReservationSpec{Queue: "q", LeaseDurationSeconds: 30, WaitTimeoutSeconds: 60}
	d.Status.Phase = batchv1alpha1.ReservationPending
	s.put(d)
	return d
}

func (s *story) grant(d *batchv1alpha1.DirectReservation) {
	d.Status.Phase = batchv1alpha1.ReservationGranted
	d.Status.GrantedAt, d.Status.ExpiresAt = ptr.To(metav1.NewTime(s.now)), ptr.To(metav1.NewTime(s.now.Add(30*time.Second)))
	s.put(d)
}

func (s *story) over(d *batchv1alpha1.DirectReservation, phase batchv1alpha1.DirectReservationPhase) {
	d.Status.Phase = phase
	d.Status.FinishedAt = ptr.To(metav1.NewTime(s.now))
	s.put(d)
}

// limit changes the limit of the queue.
func (s *story) limit(n int32, changes ...func(*batchv1alpha1.JobQueue)) {
	s.queue(append([]func(*batchv1alpha1.JobQueue){func(q *batchv1alpha1.JobQueue) { q.Spec.Concurrency.Limit = ptr.To(n) }}, changes...)...)
}

func (s *story) queue(changes ...func(*batchv1alpha1.JobQueue)) {
	var last *batchv1alpha1.JobQueue
	for _, v := range s.Versions {
		if q, ok := v.Object.(*batchv1alpha1.JobQueue); ok {
			last = q.DeepCopy()
		}
	}
	last.Generation++
	for _, c := range changes {
		c(last)
	}
	s.put(last)
}

func (s *story) pod(r *batchv1alpha1.JobRun, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: r.Name, UID: "pod-" + r.UID, Labels: map[string]string{batchv1alpha1.LabelRunUID: string(r.UID)}}}
	p.Status.Phase = phase
	s.put(p)
	return p
}

// check checks the story up to now.
func (s *story) check() Report {
	h := s.History
	if h.Until.IsZero() {
		h.Until = s.now
	}
	return Check(h)
}

// cases are stories that break one invariant, or none (0).
type cases map[string]one

type one struct {
	limit  int32
	queue  func(*batchv1alpha1.JobQueue) // nil: as it is
	broken int
	tell   func(*story)
}

func (o one) changes() []func(*batchv1alpha1.JobQueue) {
	if o.queue == nil {
		return nil
	}
	return []func(*batchv1alpha1.JobQueue){o.queue}
}

func (c cases) test(t *testing.T, invariant int) {
	t.Helper()
	for name, one := range c {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStory(max(one.limit, 1), one.changes()...)
			one.tell(s)
			report := s.check()
			g.Expect(report.Broken(invariant)).To(Equal(one.broken), "%s", report)
			if one.broken == 0 {
				g.Expect(report.Violations).To(BeEmpty(), "%s", report)
			}
			g.Expect(report.Checked).To(HaveKey(invariant), "nothing was looked at")
		})
	}
}
