// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/internal/incarnation"
	"reprise.dev/reprise/internal/run"
)

// world is a namespace with one ScheduledJob and a reconciler that the test drives by hand, with a clock of its own.
type world struct {
	*WithT
	t     *testing.T
	ctx   context.Context
	api   client.WithWatch // what is really there
	ns    string
	clock *clocktesting.FakePassiveClock
	// born is when the API server created the ScheduledJob: the times of a test count from it.
	born time.Time
	// faults are what the reconciler's client does differently from the real one.
	faults interceptor.Funcs
	// sent is what the reconcilers have asked of the API server since counted.
	sent *[]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute)
	api, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: scheme(t)})
	g.Expect(err).NotTo(HaveOccurred())
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "schedules-"}}
	g.Expect(api.Create(t.Context(), ns)).To(Succeed())
	w := &world{WithT: g, t: t, ctx: t.Context(), api: api, ns: ns.Name, clock: clocktesting.NewFakePassiveClock(time.Time{})}
	t.Cleanup(func() { w.clean(ns) })
	return w
}

// clean removes the namespace, and what would keep it.
func (w *world) clean(ns *corev1.Namespace) {
	ctx := context.Background()
	list := &batchv1alpha1.ScheduledJobList{}
	w.Expect(w.api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
	for i := range list.Items {
		if len(list.Items[i].Finalizers) > 0 {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			w.Expect(w.api.Patch(ctx, &list.Items[i], patch)).To(Succeed())
		}
	}
	w.Expect(w.api.Delete(ctx, ns)).To(Succeed())
}

func scheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(clientgoscheme.AddToScheme(s)).To(Succeed())
	g.Expect(batchv1alpha1.AddToScheme(s)).To(Succeed())
	return s
}

// create creates the ScheduledJob "sj", which ticks every minute unless changed, and sets the clock to its creation. What
// depends on that time is given by later.
func (w *world) create(changes ...change) *batchv1alpha1.ScheduledJob {
	w.t.Helper()
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "sj"}}
	sj.Spec.Schedule = "@every 1m"
	runs(sj)
	for _, c := range changes {
		c(sj)
	}
	w.Expect(w.api.Create(w.ctx, sj)).To(Succeed())
	w.born = sj.CreationTimestamp.Time
	w.clock.SetTime(w.born)
	return sj
}

// once makes it a one-time ScheduledJob, that far from the real present: the API server knows no other at its creation.
func (w *world) once(from time.Duration) change {
	runAt := metav1.NewTime(clock.RealClock{}.Now().Add(from).Truncate(time.Second))
	return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule, sj.Spec.RunAt = "", &runAt }
}

func ttl(seconds int32) change {
	return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.TTLSecondsAfterFired = &seconds }
}

func policy(p batchv1alpha1.MissedRunPolicy) change {
	return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.MissedRunPolicy = p }
}

// at sets the clock to that long after the creation of the ScheduledJob.
func (w *world) at(after time.Duration) { w.clock.SetTime(w.born.Add(after)) }

func (w *world) key() types.NamespacedName { return types.NamespacedName{Namespace: w.ns, Name: "sj"} }

// reconciler is a manager of its own: it remembers nothing of others.
func (w *world) reconciler() *Reconciler {
	w.t.Helper()
	faulty := interceptor.NewClient(w.api, w.faults)
	cached := interceptor.NewClient(faulty, interceptor.Funcs{List: byIndex(w.t)})
	return &Reconciler{Client: cached, Live: w.live(), Self: w.leading(), Gate: open{}, Clock: w.clock}
}

// counted notes what the managers ask of the API server from now on.
func (w *world) counted() *[]string {
	w.sent = &[]string{}
	w.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		*w.sent = append(*w.sent, "create")
		return c.Create(ctx, o, opts...)
	}
	w.faults.SubResourceUpdate = func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		*w.sent = append(*w.sent, "record")
		return c.SubResource(sub).Update(ctx, o, opts...)
	}
	return w.sent
}

// live reads past the cache.
func (w *world) live() client.Reader {
	return interceptor.NewClient(w.api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if w.sent != nil {
			*w.sent = append(*w.sent, "read")
		}
		return c.Get(ctx, key, o, opts...)
	}})
}

// leading is a process that leads.
func (w *world) leading() *incarnation.Self {
	w.t.Helper()
	self := incarnation.New(incarnation.Options{
		ID: "manager", Lease: types.NamespacedName{Namespace: w.ns, Name: "leader"}, Alone: true,
		Reader: w.api, Client: w.api, Clock: clock.RealClock{}, Log: logr.Discard(),
		Exit: func() { w.t.Error("the manager ended itself") },
	})
	w.Expect(self.Begin(w.ctx)).To(Succeed())
	return self
}

type open struct{}

func (open) Wait(context.Context) error { return nil }

// indexes are the very functions that the cache of a manager indexes by.
type indexes map[string]client.IndexerFunc

func (i indexes) IndexField(_ context.Context, _ client.Object, field string, of client.IndexerFunc) error {
	i[field] = of
	return nil
}

// byIndex answers a list by index from the API server, so that tests need no cache to catch up.
func byIndex(t *testing.T) func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
	of := indexes{}
	NewWithT(t).Expect(index.Register(t.Context(), of)).To(Succeed())
	return func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		o := (&client.ListOptions{}).ApplyOptions(opts)
		by := o.FieldSelector.Requirements()[0]
		if err := api.List(ctx, list, client.InNamespace(o.Namespace)); err != nil {
			return err
		}
		switch list := list.(type) {
		case *batchv1alpha1.JobRunList:
			list.Items = slices.DeleteFunc(list.Items, func(r batchv1alpha1.JobRun) bool { return !slices.Contains(of[by.Field](&r), by.Value) })
		case *batchv1alpha1.JobGroupList:
			list.Items = slices.DeleteFunc(list.Items, func(g batchv1alpha1.JobGroup) bool { return !slices.Contains(of[by.Field](&g), by.Value) })
		}
		return nil
	}
}

// pass reconciles once, as a manager that was started just now.
func (w *world) pass() ctrl.Result {
	w.t.Helper()
	result, err := w.try()
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

func (w *world) try() (ctrl.Result, error) {
	w.t.Helper()
	return w.reconcile(w.reconciler())
}

// reconcile has a manager look at the ScheduledJob.
func (w *world) reconcile(r *Reconciler) (ctrl.Result, error) {
	w.t.Helper()
	return r.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()})
}

// quiet expects that a pass changes nothing.
func (w *world) quiet() {
	w.t.Helper()
	sj, runs, groups := w.get(), w.runs(), w.groups()
	w.pass()
	w.Expect(w.get()).To(Equal(sj))
	w.Expect(w.runs()).To(Equal(runs))
	w.Expect(w.groups()).To(Equal(groups))
}

func (w *world) get() *batchv1alpha1.ScheduledJob {
	w.t.Helper()
	sj := &batchv1alpha1.ScheduledJob{}
	w.Expect(w.api.Get(w.ctx, w.key(), sj)).To(Succeed())
	return sj
}

func (w *world) gone() bool {
	w.t.Helper()
	err := w.api.Get(w.ctx, w.key(), &batchv1alpha1.ScheduledJob{})
	w.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return apierrors.IsNotFound(err)
}

// edit changes the ScheduledJob as a person does.
func (w *world) edit(changes ...change) {
	w.t.Helper()
	sj := w.get()
	for _, c := range changes {
		c(sj)
	}
	w.Expect(w.api.Update(w.ctx, sj)).To(Succeed())
}

// runs are the runs in the namespace, in the order of their names.
func (w *world) runs() []batchv1alpha1.JobRun {
	w.t.Helper()
	list := &batchv1alpha1.JobRunList{}
	w.Expect(w.api.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	return list.Items
}

// groups are the groups in the namespace, in the order of their names.
func (w *world) groups() []batchv1alpha1.JobGroup {
	w.t.Helper()
	list := &batchv1alpha1.JobGroupList{}
	w.Expect(w.api.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	return list.Items
}

// ticks are the ticks of the runs and groups there are, as time from the creation of the ScheduledJob, in their order.
func (w *world) ticks() []time.Duration {
	w.t.Helper()
	var ticks []time.Duration
	for _, p := range products(w.runs(), w.groups()) {
		if p.tick != nil {
			ticks = append(ticks, p.tick.Sub(w.born))
		}
	}
	slices.Sort(ticks)
	return ticks
}

// active are the ticks that status names as active.
func (w *world) active() []time.Duration {
	w.t.Helper()
	var ticks []time.Duration
	for _, a := range w.get().Status.Active {
		ticks = append(ticks, a.ScheduledTime.Sub(w.born))
	}
	return ticks
}

// end gives a run its end, as the run controller does.
func (w *world) end(r *batchv1alpha1.JobRun, p batchv1alpha1.JobRunPhase) {
	w.t.Helper()
	if p == batchv1alpha1.JobRunCompleted || p == batchv1alpha1.JobRunFailed {
		w.begin(r)
	}
	ended(p)(r)
	r.Status.Conditions[0].Reason = "Test"
	r.Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.clock.Now())
	r.Status.FinishedAt = ptr.To(metav1.NewTime(w.clock.Now()))
	if p == batchv1alpha1.JobRunSkipped || p == batchv1alpha1.JobRunCancelled {
		r.Status.Slot = "" // it never held one
	}
	w.Expect(w.api.Status().Update(w.ctx, r)).To(Succeed())
}

func (w *world) begin(r *batchv1alpha1.JobRun) {
	w.t.Helper()
	running(r)
	w.Expect(w.api.Status().Update(w.ctx, r)).To(Succeed())
}

// move takes a group to a phase, as the group controller does.
func (w *world) move(g *batchv1alpha1.JobGroup, phase batchv1alpha1.JobGroupPhase) {
	w.t.Helper()
	g.Status.Phase = phase
	w.Expect(w.api.Status().Update(w.ctx, g)).To(Succeed())
}

// obey ends everything that was asked to end, as the run and group controllers do once it has stopped.
func (w *world) obey() {
	w.t.Helper()
	for _, r := range w.runs() {
		if r.Status.Halt != nil && !r.Status.Phase.Terminal() {
			w.stopped(&r)
		}
	}
	for _, g := range w.groups() {
		if g.Status.Halt != nil && !g.Status.Phase.Terminal() {
			w.move(&g, batchv1alpha1.JobGroupCancelled)
		}
	}
}

// stopped ends a run as Cancelled, and the chain of which it is the retry.
func (w *world) stopped(r *batchv1alpha1.JobRun) {
	w.t.Helper()
	if r.Status.Phase == batchv1alpha1.JobRunRunning {
		r.Status.Phase = batchv1alpha1.JobRunCancelling
		w.Expect(w.api.Status().Update(w.ctx, r)).To(Succeed())
	}
	slot := r.Status.Slot
	ended(batchv1alpha1.JobRunCancelled)(r)
	if slot == "" {
		r.Status.Slot = "" // it never held one
	}
	r.Status.Conditions[0].Reason = "Test"
	r.Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.clock.Now())
	conditions := r.Status.Conditions
	if r.Spec.RetryOf != "" {
		r.Status.Conditions = nil // the first run tells
	}
	w.Expect(w.api.Status().Update(w.ctx, r)).To(Succeed())
	if r.Spec.RetryOf == "" {
		return
	}
	first := &batchv1alpha1.JobRun{}
	w.Expect(w.api.Get(w.ctx, types.NamespacedName{Namespace: w.ns, Name: run.Chain(r).RootName}, first)).To(Succeed())
	first.Status.Conditions = conditions
	w.Expect(w.api.Status().Update(w.ctx, first)).To(Succeed())
}

func (w *world) remove(o client.Object) {
	w.t.Helper()
	w.Expect(w.api.Delete(w.ctx, o)).To(Succeed())
}
