// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"errors"
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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/internal/incarnation"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// world is a namespace with one group, a reconciler that the test drives by hand, and a run controller played by the test.
type world struct {
	*WithT
	t     *testing.T
	ctx   context.Context
	api   client.WithWatch // what is really there
	ns    string
	clock *clocktesting.FakePassiveClock
	// faults are what the reconciler's client does differently from the real one.
	faults interceptor.Funcs
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute)
	api, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: scheme(t)})
	g.Expect(err).NotTo(HaveOccurred())
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "groups-"}}
	g.Expect(api.Create(t.Context(), ns)).To(Succeed())
	w := &world{WithT: g, t: t, ctx: t.Context(), api: api, ns: ns.Name, clock: clocktesting.NewFakePassiveClock(clock.RealClock{}.Now())}
	t.Cleanup(func() { g.Expect(api.Delete(context.Background(), ns)).To(Succeed()) })
	return w
}

func scheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(clientgoscheme.AddToScheme(s)).To(Succeed())
	g.Expect(batchv1alpha1.AddToScheme(s)).To(Succeed())
	return s
}

type change func(*batchv1alpha1.JobGroup)

// create creates the group g, a sequence of the members a, b and c whose runs are not retried, unless changed.
func (w *world) create(changes ...change) *batchv1alpha1.JobGroup {
	w.t.Helper()
	g := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "g"}}
	members("a", "b", "c")(g)
	for _, c := range changes {
		c(g)
	}
	w.Expect(w.api.Create(w.ctx, g)).To(Succeed())
	return g
}

func members(names ...string) change {
	return func(g *batchv1alpha1.JobGroup) {
		g.Spec.Members = nil
		for _, n := range names {
			g.Spec.Members = append(g.Spec.Members, batchv1alpha1.GroupMember{Name: n, RunTemplate: batchv1alpha1.JobRunTemplateSpec{
				Work:        &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://localhost/"}},
				RetryPolicy: &batchv1alpha1.RetryPolicy{MaxRetries: new(int32(0))},
			}})
		}
	}
}

func parallel(g *batchv1alpha1.JobGroup) { g.Spec.Mode = batchv1alpha1.GroupParallel }

func on(p batchv1alpha1.GroupFailurePolicy) change {
	return func(g *batchv1alpha1.JobGroup) { g.Spec.OnFailure = p }
}

func retried(n int32) change {
	return func(g *batchv1alpha1.JobGroup) {
		for i := range g.Spec.Members {
			g.Spec.Members[i].RunTemplate.RetryPolicy.MaxRetries = &n
		}
	}
}

func cancelled(g *batchv1alpha1.JobGroup) { g.Spec.Cancel = true }

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: name}
}

// reconciler is a manager of its own: it remembers nothing of others.
func (w *world) reconciler() *Reconciler {
	w.t.Helper()
	faulty := interceptor.NewClient(w.api, w.faults)
	cached := interceptor.NewClient(faulty, interceptor.Funcs{List: byIndex(w.t)})
	return &Reconciler{Client: cached, Live: w.api, Self: w.leading(), Gate: open{}, Clock: w.clock}
}

// leading is a process that leads.
func (w *world) leading() *incarnation.Self {
	w.t.Helper()
	self := incarnation.New(incarnation.Options{
		ID: "manager", Lease: w.key("leader"), Alone: true,
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
		if o.FieldSelector == nil {
			return api.List(ctx, list, opts...)
		}
		by := o.FieldSelector.Requirements()[0]
		if err := api.List(ctx, list, client.InNamespace(o.Namespace)); err != nil {
			return err
		}
		switch found := list.(type) {
		case *batchv1alpha1.JobRunList:
			found.Items = slices.DeleteFunc(found.Items, func(r batchv1alpha1.JobRun) bool { return !slices.Contains(of[by.Field](&r), by.Value) })
		case *batchv1alpha1.JobGroupList:
			found.Items = slices.DeleteFunc(found.Items, func(g batchv1alpha1.JobGroup) bool { return !slices.Contains(of[by.Field](&g), by.Value) })
		default:
			return errors.New("no such index")
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
	return w.reconciler().Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("g")})
}

// quiet expects that a pass changes nothing.
func (w *world) quiet() {
	w.t.Helper()
	g, runs := w.get(), w.runs()
	w.pass()
	w.Expect(w.get()).To(Equal(g))
	w.Expect(w.runs()).To(Equal(runs))
}

func (w *world) get() *batchv1alpha1.JobGroup {
	w.t.Helper()
	g := &batchv1alpha1.JobGroup{}
	w.Expect(w.api.Get(w.ctx, w.key("g"), g)).To(Succeed())
	return g
}

// shows expects the phase of the group, and those of its members.
func (w *world) shows(phase batchv1alpha1.JobGroupPhase, members ...batchv1alpha1.GroupMemberPhase) {
	w.t.Helper()
	s := w.get().Status
	var got []batchv1alpha1.GroupMemberPhase
	for _, m := range s.Members {
		got = append(got, m.Phase)
	}
	w.Expect(got).To(Equal(members))
	w.Expect(s.Phase).To(Equal(phase))
}

// edit changes the group as a person does.
func (w *world) edit(changes ...change) {
	w.t.Helper()
	g := w.get()
	for _, c := range changes {
		c(g)
	}
	w.Expect(w.api.Update(w.ctx, g)).To(Succeed())
}

// runs are the runs in the namespace, in the order of their names.
func (w *world) runs() []batchv1alpha1.JobRun {
	w.t.Helper()
	list := &batchv1alpha1.JobRunList{}
	w.Expect(w.api.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	return list.Items
}

// names are those of the runs.
func (w *world) names() []string {
	w.t.Helper()
	names := []string{}
	for _, r := range w.runs() {
		names = append(names, r.Name)
	}
	return names
}

func (w *world) run(name string) *batchv1alpha1.JobRun {
	w.t.Helper()
	r := &batchv1alpha1.JobRun{}
	w.Expect(w.api.Get(w.ctx, w.key(name), r)).To(Succeed())
	return r
}

// write changes the status of a run as the run controller does.
func (w *world) write(name string, how func(*batchv1alpha1.JobRun)) {
	w.t.Helper()
	r := w.run(name)
	how(r)
	w.Expect(w.api.Status().Update(w.ctx, r)).To(Succeed())
}

func (w *world) begin(name string) {
	w.t.Helper()
	w.write(name, func(r *batchv1alpha1.JobRun) { run.Claim{}.Apply(r, w.clock.Now()) })
}

// end gives a run that is at work its outcome.
func (w *world) end(name string, p batchv1alpha1.JobRunPhase, stopped bool) {
	w.t.Helper()
	w.write(name, func(r *batchv1alpha1.JobRun) {
		run.Finish(r, p, "ByTheWork", "the work says so", stopped, w.clock.Now())
		retry.Conclude(r, w.clock.Now())
	})
}

// does lets a run begin and end.
func (w *world) does(name string, p batchv1alpha1.JobRunPhase) {
	w.t.Helper()
	w.begin(name)
	w.end(name, p, true)
}

// retry makes the retry of a failed run.
func (w *world) retry(name string) {
	w.t.Helper()
	r := w.run(name)
	child := retry.Child(r, nil, 0)
	w.Expect(w.api.Create(w.ctx, child)).To(Succeed())
	w.write(name, func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: child.Name, UID: child.UID}
	})
}

// tell has a root tell how its chain stands.
func (w *world) tell(name string) {
	w.t.Helper()
	w.write(name, func(root *batchv1alpha1.JobRun) {
		others := func(r batchv1alpha1.JobRun) bool { return run.ChainUID(&r) != root.UID }
		retry.Tell(root, slices.DeleteFunc(w.runs(), others), w.clock.Now())
	})
}

// obey carries out what the run was asked.
func (w *world) obey(name string) {
	w.t.Helper()
	w.write(name, func(r *batchv1alpha1.JobRun) {
		halt := run.Halted(r)
		w.Expect(halt).NotTo(BeNil())
		if r.Status.Phase == batchv1alpha1.JobRunRunning {
			run.BeginCancel(r, w.clock.Now())
			w.Expect(w.api.Status().Update(w.ctx, r)).To(Succeed())
		}
		run.Finish(r, halt.Phase, halt.Reason, halt.Message, true, w.clock.Now())
		retry.Conclude(r, w.clock.Now())
	})
}

func (w *world) remove(o client.Object, opts ...client.DeleteOption) {
	w.t.Helper()
	w.Expect(w.api.Delete(w.ctx, o, opts...)).To(Succeed())
}
