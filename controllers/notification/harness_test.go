// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

var finished = time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)

// newAPI returns a client over those objects.
func newAPI(objects ...client.Object) client.WithWatch {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&batchv1alpha1.JobRun{}, &batchv1alpha1.JobGroup{}).WithObjects(objects...).Build()
}

// queueNaming returns the queue "main" with receivers given as name, url, name, url …
func queueNaming(pairs ...string) *batchv1alpha1.JobQueue {
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "main"}}
	q.Spec.Notifications = &batchv1alpha1.Notifications{}
	for i := 0; i < len(pairs); i += 2 {
		q.Spec.Notifications.Receivers = append(q.Spec.Notifications.Receivers,
			batchv1alpha1.NotificationReceiver{Name: pairs[i], URL: pairs[i+1]})
	}
	return q
}

// failedRun owes its failure to the receivers of the queue.
func failedRun(name string, queue *batchv1alpha1.JobQueue) *batchv1alpha1.JobRun {
	at := metav1.NewTime(finished)
	r := &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name)},
		Spec:       batchv1alpha1.JobRunSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{Work: &batchv1alpha1.Work{}}},
		Status: batchv1alpha1.JobRunStatus{
			Phase: batchv1alpha1.JobRunFailed, Reason: batchv1alpha1.ReasonWorkFailed, Queue: "main",
			Slot: batchv1alpha1.SlotFree, FinishedAt: &at,
		},
	}
	r.Status.Announcements = notify.Owed(r, notify.Sources{Queue: queue}, false)
	return r
}

// failedGroup owes its failure to the receivers of the queue.
func failedGroup(name string, queue *batchv1alpha1.JobQueue) *batchv1alpha1.JobGroup {
	at := metav1.NewTime(finished)
	g := &batchv1alpha1.JobGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-group-" + name)},
		Status: batchv1alpha1.JobGroupStatus{
			Phase: batchv1alpha1.JobGroupFailed, Reason: batchv1alpha1.ReasonMemberFailed, FinishedAt: &at,
			Members: []batchv1alpha1.GroupMemberStatus{{Name: "build", Phase: batchv1alpha1.MemberFailed}},
		},
	}
	g.Spec.Members = []batchv1alpha1.GroupMember{{Name: "build", RunTemplate: batchv1alpha1.JobRunTemplateSpec{Queue: queue.Name, Work: &batchv1alpha1.Work{}}}}
	g.Status.Announcements = notify.OwedByGroup(g, notify.Sources{Queue: queue})
	return g
}

// scheduleNaming returns the ScheduledJob "nightly" with receivers, as queueNaming does.
func scheduleNaming(pairs ...string) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly"}}
	sj.Spec.Notifications = queueNaming(pairs...).Spec.Notifications
	return sj
}

// scheduledRun comes from the ScheduledJob "nightly", and its chain has failed for good.
func scheduledRun(name string, from notify.Sources) *batchv1alpha1.JobRun {
	r := failedRun(name, nil)
	r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
	r.Status.Announcements = notify.Owed(r, from, true)
	return r
}

// scheduledGroup comes from the ScheduledJob "nightly", and has failed.
func scheduledGroup(name string, from notify.Sources) *batchv1alpha1.JobGroup {
	g := failedGroup(name, from.Queue)
	g.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
	g.Status.Announcements = notify.OwedByGroup(g, from)
	return g
}

// aRun and aGroup name one of the namespace.
func aRun(name string) notify.Name {
	return notify.Name{Kind: notify.KindRun, NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
}

func aGroup(name string) notify.Name {
	return notify.Name{Kind: notify.KindGroup, NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
}

// bench is one manager process as far as this controller is concerned. Nothing is reconciled but by step. The watch is told
// of the process's own writes alone; see makes up for the rest.
type bench struct {
	t     *testing.T
	r     *Reconciler
	api   client.WithWatch
	clock *clocktesting.FakePassiveClock
	queue workqueue.TypedInterface[notify.Name] // of both kinds
	notes *notes
	stop  func()
}

// start starts one over the API, with the client that it is given for reading and writing.
func start(t *testing.T, api client.WithWatch, through interceptor.Funcs) *bench {
	t.Helper()
	b := &bench{t: t, api: api, clock: clocktesting.NewFakePassiveClock(finished.Add(time.Second))}
	b.queue, b.notes = workqueue.NewTyped[notify.Name](), &notes{}
	transport := &http.Transport{}
	b.r = &Reconciler{
		Client: interceptor.NewClient(interceptor.NewClient(api, interceptor.Funcs{SubResourceUpdate: b.watched}), through),
		Live:   api,
		Sender: &notify.Sender{Client: &http.Client{Transport: transport}},
		Clock:  b.clock, Recorder: b.notes,
	}
	b.r.prepare()
	for kind, line := range b.r.lines {
		line.add = func(req ctrl.Request) { b.queue.Add(notify.Name{Kind: kind, NamespacedName: req.NamespacedName}) }
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.r.courier.Start(ctx)
	}()
	b.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		b.queue.ShutDown()
		transport.CloseIdleConnections()
	})
	t.Cleanup(b.stop)
	return b
}

// notes are the Events that were written.
type notes struct {
	mu  sync.Mutex
	all []string // "<type> <reason> <object>: <note>"
}

func (n *notes) Eventf(regarding, _ runtime.Object, eventtype, reason, _, note string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, fmt.Sprintf("%s %s %s: %s", eventtype, reason, notify.NameOf(notify.Of(regarding)).Name, fmt.Sprintf(note, args...)))
}

func (n *notes) read() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// watched is a status write whose event comes back.
func (b *bench) watched(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
	err := c.SubResource(sub).Update(ctx, o, opts...)
	if err == nil {
		b.r.wake(notify.NameOf(notify.Of(o)))
	}
	return err
}

// see makes the manager notice the runs, as its watch would.
func (b *bench) see(names ...string) {
	for _, name := range names {
		b.r.wake(aRun(name))
	}
}

// step waits for the next run or group in the work queue and reconciles it.
func (b *bench) step() ctrl.Result {
	b.t.Helper()
	name, shut := b.queue.Get()
	if shut {
		b.t.Fatal("the work queue is shut")
	}
	defer b.queue.Done(name)
	result, err := b.r.Reconcile(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// run reads the run as the API has it.
func (b *bench) run(name string) *batchv1alpha1.JobRun {
	b.t.Helper()
	return b.subject(aRun(name)).Object().(*batchv1alpha1.JobRun)
}

func (b *bench) subject(name notify.Name) notify.Subject {
	b.t.Helper()
	s := notify.NewSubject(name.Kind)
	if err := b.api.Get(b.t.Context(), name.NamespacedName, s.Object()); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// announcement reads what the run has on record for the receiver.
func (b *bench) announcement(run, receiver string) batchv1alpha1.Announcement {
	b.t.Helper()
	return b.owedBy(aRun(run), receiver)
}

// owedBy reads what the run or group has on record for the receiver.
func (b *bench) owedBy(name notify.Name, receiver string) batchv1alpha1.Announcement {
	b.t.Helper()
	for _, a := range b.subject(name).Announcements() {
		if a.Receiver == receiver {
			return a
		}
	}
	b.t.Fatalf("%s has no announcement for %s", name, receiver)
	return batchv1alpha1.Announcement{}
}

// settle steps until nothing is owed by the run.
func (b *bench) settle(name string) {
	b.t.Helper()
	b.settleAll(aRun(name))
}

// settleAll steps until nothing is owed by any of them.
func (b *bench) settleAll(names ...notify.Name) {
	b.t.Helper()
	for _, name := range names {
		for notify.InDebt(b.subject(name)) {
			b.step()
		}
	}
}

// receiver is a server that reads events with the CloudEvents SDK. (The SDK's own handler, which the sender is tested
// with, mixes up the answers of concurrent requests.)
type receiver struct {
	URL string

	mu     sync.Mutex
	events []event.Event
	status []int // of the next answers; 200 after them
}

func newReceiver(t *testing.T, status ...int) *receiver {
	t.Helper()
	r := &receiver{status: status}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	e, err := cehttp.NewEventFromHTTPRequest(request)
	if err == nil {
		err = e.Validate()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, *e)
	w.WriteHeader(take(&r.status, http.StatusOK))
}

// take removes the first of a list, and returns what comes after its end.
func take(from *[]int, after int) int {
	if len(*from) == 0 {
		return after
	}
	first := (*from)[0]
	*from = (*from)[1:]
	return first
}

// ids of the events received, in order.
func (r *receiver) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, e := range r.events {
		ids = append(ids, e.ID())
	}
	return ids
}

// hang returns the address of a server that answers nothing until release.
func hang(t *testing.T) (url string, arrived chan struct{}, release func()) {
	t.Helper()
	arrived = make(chan struct{}, 100)
	wait := make(chan struct{})
	release = sync.OnceFunc(func() { close(wait) })
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-wait
	}))
	t.Cleanup(func() { release(); server.Close() })
	return server.URL, arrived, release
}
