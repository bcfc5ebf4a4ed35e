// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/fakekubelet"
)

// deed is one thing that a person does in a mixed history, and how long she waits before it.
type deed struct {
	after time.Duration
	what  string
	do    func(*history) error
}

func (d deed) String() string { return fmt.Sprintf("after %s %s", d.after, d.what) }

// deeds does them in order. That something is not there, or has changed meanwhile, is no error.
func (h *history) deeds(all []deed) {
	for _, d := range all {
		h.pass(d.after)
		err := d.do(h)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			h.giveUp("%s: %v", d.what, err)
		}
	}
}

// mix draws a mixed history: work that ends well, badly or when it is told to, retries, cancels, deletions, names that are used
// again, a schedule, a group and reservations. Without calls all work is Job work.
func mix(random *rand.Rand, calls bool) []deed {
	m := &mixing{random: random, calls: calls}
	for range 3 + random.IntN(3) {
		m.run()
	}
	for range 5 + random.IntN(6) {
		[]func(){m.run, m.run, m.endless, m.again, m.reservation, m.cancel, m.remove, m.retryByHand, m.askAgain}[random.IntN(9)]()
	}
	m.schedule()
	m.group()
	return append(m.deeds, m.last...)
}

// mixing is a history that is being drawn.
type mixing struct {
	random *rand.Rand
	calls  bool
	deeds  []deed
	last   []deed // ends what would not end by itself
	runs   []string
}

func (m *mixing) pause() time.Duration { return time.Duration(m.random.IntN(400)) * time.Millisecond }

func (m *mixing) add(what string, do func(*history) error) {
	m.deeds = append(m.deeds, deed{m.pause(), what, do})
}

// task is work, and how it ends.
type task struct {
	call bool
	path string
}

func (t task) String() string {
	if t.call {
		return "call " + t.path
	}
	return "Job " + t.path
}

// The ways in which work ends.
const (
	fine     = "/fine/-"             // well, at once
	slow     = "/hold/slow"          // well, after a while, or when a call has taken too long
	flaky    = "/fails/once?fails=1" // badly at first, if it is a call; a Job does so each time
	hopeless = "/fails/ever?fails=9" // badly each time
	endless  = "/hold/endless"       // when it is told to, or when it has taken too long
)

func (m *mixing) task() task {
	return task{m.calls && m.random.IntN(2) == 0, []string{fine, fine, slow, flaky, hopeless}[m.random.IntN(5)]}
}

// template is a run that has the task.
func (t task) template(h *history) template {
	s := template{RetryPolicy: retries(1), Work: &batchv1alpha1.Work{}}
	if t.call || t.path == endless {
		s.TimeoutSeconds = ptr.To[int64](3)
	}
	if t.call {
		s.Work.HTTP = &batchv1alpha1.HTTPWork{URL: works.URL + "/" + h.ns + t.path}
		return s
	}
	behaviour := map[string]map[string]string{
		slow:     {fakekubelet.AnnotationRunsFor: "500ms"},
		flaky:    {fakekubelet.AnnotationExitCode: "1"},
		hopeless: {fakekubelet.AnnotationExitCode: "1"},
		endless:  {fakekubelet.AnnotationRunsFor: fakekubelet.RunsUntilFinished},
	}[t.path]
	s.Work.Job = &batchv1alpha1.JobWork{Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: behaviour},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/work"}}},
	}}}}
	return s
}

func (m *mixing) name() string {
	name := fmt.Sprintf("run-%d", len(m.runs))
	m.runs = append(m.runs, name)
	return name
}

// create adds the creation of a run.
func (m *mixing) create(name string, t task, change ...func(*batchv1alpha1.JobRun)) {
	m.add(fmt.Sprintf("create %s: %s", name, t), func(h *history) error { return h.newRun(name, t, change...) })
}

func (h *history) newRun(name string, t task, change ...func(*batchv1alpha1.JobRun)) error {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name}}
	r.Spec.JobRunTemplateSpec = t.template(h)
	for _, f := range change {
		f(r)
	}
	return h.client.Create(h.ctx, r)
}

func (m *mixing) run() { m.create(m.name(), m.task()) }

// endless is work that goes on until it is cancelled; without retries, so that one cancel is enough.
func (m *mixing) endless() {
	name := m.name()
	t := task{call: m.calls && m.random.IntN(2) == 0, path: endless}
	m.create(name, t, func(r *batchv1alpha1.JobRun) { r.Spec.RetryPolicy.MaxRetries = ptr.To[int32](0) })
	m.last = append(m.last, deed{m.pause(), "cancel " + name, func(h *history) error { return h.cancelNamed(name) }})
}

func (h *history) cancelNamed(name string) error {
	r := &batchv1alpha1.JobRun{}
	if err := h.client.Get(h.ctx, client.ObjectKey{Namespace: h.ns, Name: name}, r); err != nil {
		return err
	}
	return h.client.Patch(h.ctx, r, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"cancel":true}}`)))
}

func (h *history) remove(name string) error {
	r := &batchv1alpha1.JobRun{}
	if err := h.client.Get(h.ctx, client.ObjectKey{Namespace: h.ns, Name: name}, r); err != nil {
		return err
	}
	h.mu.Lock()
	h.deleted = append(h.deleted, r.UID)
	h.mu.Unlock()
	return h.client.Delete(h.ctx, r, client.Preconditions{UID: &r.UID})
}

// askAgain asks for what was given up of a run's announcements.
func (m *mixing) askAgain() {
	name, value := m.any(), fmt.Sprint(len(m.deeds))
	m.add("ask for the announcements of "+name+" once more", func(h *history) error {
		return h.client.Patch(h.ctx, &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name}},
			client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, batchv1alpha1.AnnotationResend, value)))
	})
}

func (m *mixing) any() string { return m.runs[m.random.IntN(len(m.runs))] }

func (m *mixing) cancel() {
	name := m.any()
	m.add("cancel "+name, func(h *history) error { return h.cancelNamed(name) })
}

func (m *mixing) remove() {
	name := m.any()
	m.add("delete "+name, func(h *history) error { return h.remove(name) })
}

// again deletes a run and creates another of its name at once.
func (m *mixing) again() {
	name, t := m.any(), m.task()
	m.add(fmt.Sprintf("delete %s and create it anew: %s", name, t), func(h *history) error {
		if err := h.remove(name); err != nil {
			return err
		}
		return h.newRun(name, t)
	})
}

func (m *mixing) retryByHand() {
	of := m.any()
	name := fmt.Sprintf("by-hand-%d", len(m.deeds))
	m.add(fmt.Sprintf("create %s: retry of %s", name, of), func(h *history) error {
		r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name}}
		r.Spec.RetryOf = of
		return h.client.Create(h.ctx, r)
	})
	// It waits for a run that does not exist, for as long as it takes.
	m.last = append(m.last, deed{m.pause(), "cancel " + name, func(h *history) error { return h.cancelNamed(name) }})
}

// reservation is held for a while, and then released or left to expire.
func (m *mixing) reservation() {
	name, release := fmt.Sprintf("reserved-%d", len(m.deeds)), m.random.IntN(2) == 0
	m.add("create the reservation "+name, func(h *history) error {
		dr := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name}}
		dr.Spec.LeaseDurationSeconds = 2
		return h.client.Create(h.ctx, dr)
	})
	if release {
		m.last = append(m.last, deed{m.pause(), "release " + name, func(h *history) error {
			dr := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name}}
			return h.client.Patch(h.ctx, dr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"release":true}}`)))
		}})
	}
}

// schedule is one for a time that comes soon. Some are replaced by another of the same name.
func (m *mixing) schedule() {
	for _, what := range m.anew("the schedule once") {
		t := m.task()
		m.deeds[what].do = func(h *history) error {
			sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "once"}}
			sj.Spec.RunAt = ptr.To(metav1.NewTime(time.Now().Add(time.Second).Truncate(time.Second)))
			template := t.template(h)
			sj.Spec.RunTemplate = &template
			sj.Spec.Notifications = ears(h.ear("ear", "schedule"))
			return h.replace(sj, &batchv1alpha1.ScheduledJob{})
		}
	}
}

// group is one of three members. Some are replaced by another of the same name.
func (m *mixing) group() {
	for _, what := range m.anew("the group trio") {
		mode := []batchv1alpha1.GroupMode{batchv1alpha1.GroupSequential, batchv1alpha1.GroupParallel}[m.random.IntN(2)]
		policy := []batchv1alpha1.GroupFailurePolicy{batchv1alpha1.GroupStop, batchv1alpha1.GroupContinue, batchv1alpha1.GroupSkip}[m.random.IntN(3)]
		tasks := []task{m.task(), m.task(), m.task()}
		m.deeds[what].what += fmt.Sprintf(", %s, %s: %v", mode, policy, tasks)
		m.deeds[what].do = func(h *history) error {
			g := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "trio"}}
			g.Spec.Mode, g.Spec.OnFailure = mode, policy
			for i, t := range tasks {
				g.Spec.Members = append(g.Spec.Members, batchv1alpha1.GroupMember{Name: fmt.Sprintf("m%d", i), RunTemplate: t.template(h)})
			}
			return h.replace(g, &batchv1alpha1.JobGroup{})
		}
	}
}

// anew puts the creation of something among the deeds, and of half of them a second one later, which replaces the first. It
// returns where they are.
func (m *mixing) anew(what string) []int {
	at := m.random.IntN(len(m.deeds) + 1)
	m.deeds = slices.Insert(m.deeds, at, deed{after: m.pause(), what: "create " + what})
	if m.random.IntN(2) == 0 {
		return []int{at}
	}
	again := at + 1 + m.random.IntN(len(m.deeds)-at)
	m.deeds = slices.Insert(m.deeds, again, deed{after: m.pause(), what: "delete " + what + " and create it anew"})
	return []int{at, again}
}

// replace creates an object, in the place of the one that has its name, if there is one.
func (h *history) replace(o, old client.Object) error {
	err := h.client.Get(h.ctx, client.ObjectKeyFromObject(o), old)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		h.mu.Lock()
		h.deleted = append(h.deleted, old.GetUID())
		h.mu.Unlock()
		if err := client.IgnoreNotFound(h.client.Delete(h.ctx, old)); err != nil {
			return err
		}
	}
	return h.client.Create(h.ctx, o)
}
