// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
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
)

// world is a namespace and a reconciler that the test drives by hand, with a clock of its own. The clock stands an hour
// after the beginning of the test, so that what the API server has just created is old enough to go.
type world struct {
	*WithT
	t     *testing.T
	ctx   context.Context
	api   client.WithWatch // what is really there
	ns    string
	clock *clocktesting.FakePassiveClock
	// begun is when the test began.
	begun time.Time
	// deleted are the names that were asked to be deleted, in order.
	deleted []string
	// onDelete comes before a deletion; its error is the answer.
	onDelete func(client.Object) error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(batchv1alpha1.AddToScheme(scheme)).To(Succeed())
	api, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "history-"}}
	g.Expect(api.Create(t.Context(), ns)).To(Succeed())
	t.Cleanup(func() { _ = api.Delete(context.Background(), ns) })
	w := &world{WithT: g, t: t, ctx: t.Context(), api: api, ns: ns.Name, begun: ns.CreationTimestamp.Time}
	w.clock = clocktesting.NewFakePassiveClock(w.begun.Add(time.Hour))
	return w
}

// at sets the clock to that long after the beginning of the test.
func (w *world) at(after time.Duration) { w.clock.SetTime(w.begun.Add(after)) }

func (w *world) reconciler() *Reconciler {
	w.t.Helper()
	cached := interceptor.NewClient(w.api, interceptor.Funcs{List: byIndex(w.t), Delete: w.delete})
	return &Reconciler{Client: cached, Live: w.api, Self: w.leading(), Gate: open{}, Clock: w.clock}
}

func (w *world) delete(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	if w.onDelete != nil {
		if err := w.onDelete(o); err != nil {
			return err
		}
	}
	w.deleted = append(w.deleted, o.GetName())
	return c.Delete(ctx, o, opts...)
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

// chain looks at the chain of a root by its time to live.
func (w *world) chain(root *batchv1alpha1.JobRun) ctrl.Result {
	w.t.Helper()
	result, err := w.reconciler().ReconcileChain(w.ctx, w.request(string(root.UID)))
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

// expire looks at the group by its time to live.
func (w *world) expire(g *batchv1alpha1.JobGroup) ctrl.Result {
	w.t.Helper()
	result, err := w.reconciler().ReconcileGroup(w.ctx, w.request(g.Name))
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

// reservation looks at the reservation by its time to live.
func (w *world) reservation(dr *batchv1alpha1.DirectReservation) ctrl.Result {
	w.t.Helper()
	result, err := w.reconciler().ReconcileReservation(w.ctx, w.request(dr.Name))
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

// limits looks at the limits of the ScheduledJob "sj".
func (w *world) limits() ctrl.Result {
	w.t.Helper()
	result, err := w.reconciler().ReconcileScheduledJob(w.ctx, w.request("sj"))
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

func (w *world) request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.ns, Name: name}}
}

// schedule creates the ScheduledJob "sj" with its limits.
func (w *world) schedule(completed, failed int32) *batchv1alpha1.ScheduledJob {
	w.t.Helper()
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "sj"}}
	sj.Spec.RunTemplate = &batchv1alpha1.JobRunTemplateSpec{Work: work()}
	sj.Spec.CompletedHistoryLimit, sj.Spec.FailedHistoryLimit = &completed, &failed
	w.Expect(w.api.Create(w.ctx, sj)).To(Succeed())
	return sj
}

func work() *batchv1alpha1.Work {
	return &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://localhost/"}}
}

type change func(*batchv1alpha1.JobRun)

func scheduled(r *batchv1alpha1.JobRun) {
	r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"}
}

func ttl(seconds int32) change {
	return func(r *batchv1alpha1.JobRun) { r.Spec.TTLSecondsAfterFinished = &seconds }
}

func failing(r *batchv1alpha1.JobRun) { r.Status.Phase = batchv1alpha1.JobRunFailed }

func because(reason string) change {
	return func(r *batchv1alpha1.JobRun) { r.Status.Reason = reason }
}

func holding(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotHeld }

// retryOf makes the run the retry of another, as the manager makes it.
func retryOf(root *batchv1alpha1.JobRun, attempt int32) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.ScheduledJobRef = root.Spec.ScheduledJobRef
		r.Spec.RetryOf = root.Name
		r.Spec.Attempt = attempt
		r.Spec.Chain = &batchv1alpha1.Chain{
			RootName: root.Name, RootUID: root.UID, QueuedAt: root.CreationTimestamp, IdempotencyKey: string(root.UID),
		}
	}
}

// run creates a run that has ended at the beginning of the test, Completed unless changed, and as a root tells its end.
func (w *world) run(name string, changes ...change) *batchv1alpha1.JobRun {
	w.t.Helper()
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	r.Spec.Work = work()
	for _, c := range changes {
		c(r)
	}
	w.Expect(w.api.Create(w.ctx, r)).To(Succeed())
	r.Status.Phase, r.Status.Slot = batchv1alpha1.JobRunRunning, batchv1alpha1.SlotHeld
	w.write(r)
	r.Status.Phase, r.Status.Slot = batchv1alpha1.JobRunCompleted, batchv1alpha1.SlotFree
	r.Status.FinishedAt = ptr.To(metav1.NewTime(w.begun))
	for _, c := range changes {
		c(r)
	}
	if r.Spec.Chain == nil {
		r.Status.Conditions = []metav1.Condition{{
			Type: batchv1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.NewTime(w.begun),
		}}
		if r.Status.Phase == batchv1alpha1.JobRunFailed {
			r.Status.Conditions[0].Type = batchv1alpha1.ConditionFailed
		}
	}
	w.write(r)
	return r
}

func (w *world) write(o client.Object) {
	w.t.Helper()
	w.Expect(w.api.Status().Update(w.ctx, o)).To(Succeed())
}

type changeGroup func(*batchv1alpha1.JobGroup)

// group creates a group that has ended at the beginning of the test, Completed unless changed.
func (w *world) group(name string, changes ...changeGroup) *batchv1alpha1.JobGroup {
	w.t.Helper()
	g := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	g.Spec.Members = []batchv1alpha1.GroupMember{{Name: "member", RunTemplate: batchv1alpha1.JobRunTemplateSpec{Work: work()}}}
	for _, c := range changes {
		c(g)
	}
	w.Expect(w.api.Create(w.ctx, g)).To(Succeed())
	g.Status.Phase = batchv1alpha1.JobGroupCompleted
	g.Status.FinishedAt = ptr.To(metav1.NewTime(w.begun))
	for _, c := range changes {
		c(g)
	}
	w.write(g)
	return g
}

func groupTTL(seconds int32) changeGroup {
	return func(g *batchv1alpha1.JobGroup) { g.Spec.TTLSecondsAfterFinished = &seconds }
}

func groupIn(phase batchv1alpha1.JobGroupPhase) changeGroup {
	return func(g *batchv1alpha1.JobGroup) { g.Status.Phase = phase }
}

func groupScheduled(g *batchv1alpha1.JobGroup) {
	g.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"}
}

// memberOf makes the run a member of the group, as the manager makes it.
func memberOf(g *batchv1alpha1.JobGroup) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.GroupRef = &batchv1alpha1.GroupMemberRef{Name: g.Name, Member: "member"}
		ownedBy(g)(r)
	}
}

func ownedBy(g *batchv1alpha1.JobGroup) change {
	return func(r *batchv1alpha1.JobRun) {
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(g, batchv1alpha1.GroupVersion.WithKind("JobGroup"))}
	}
}

// groupsLeft are the names of the groups that there are.
func (w *world) groupsLeft() []string {
	w.t.Helper()
	list := &batchv1alpha1.JobGroupList{}
	w.Expect(w.api.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	names := []string{}
	for _, g := range list.Items {
		names = append(names, g.Name)
	}
	return names
}

// reserve creates a reservation that was released at the beginning of the test, with its time to live.
func (w *world) reserve(name string, ttl *int32) *batchv1alpha1.DirectReservation {
	w.t.Helper()
	dr := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	dr.Spec.TTLSecondsAfterFinished = ttl
	w.Expect(w.api.Create(w.ctx, dr)).To(Succeed())
	dr.Status.Phase = batchv1alpha1.ReservationReleased
	dr.Status.FinishedAt = ptr.To(metav1.NewTime(w.begun))
	w.write(dr)
	return dr
}

// reservationsLeft are the names of the reservations that there are.
func (w *world) reservationsLeft() []string {
	w.t.Helper()
	list := &batchv1alpha1.DirectReservationList{}
	w.Expect(w.api.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	names := []string{}
	for _, dr := range list.Items {
		names = append(names, dr.Name)
	}
	return names
}

// left are the names of the runs that there are.
func (w *world) left() []string {
	w.t.Helper()
	list := &batchv1alpha1.JobRunList{}
	w.Expect(w.api.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	names := []string{}
	for _, r := range list.Items {
		names = append(names, r.Name)
	}
	return names
}

// numbered are names in their order.
func numbered(prefix string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s%d", prefix, i))
	}
	return names
}
