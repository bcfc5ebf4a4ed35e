// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

// patience bounds every wait of these tests. It is long because the machine may be busy; a wait ends as soon as it can.
const patience = 60 * time.Second

// world is one test's namespace and what is in it.
type world struct {
	*WithT
	t   *testing.T
	ctx context.Context
	client.Client
	ns string
}

// newWorld makes a namespace that goes with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	c, err := client.New(plane.Config(), client.Options{Scheme: operator.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "api-"}}
	g.Expect(c.Create(ctx, ns)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(context.Background(), ns) })
	return &world{WithT: g, t: t, ctx: ctx, Client: c, ns: ns.Name}
}

// manager is a manager process that runs inside the test.
type manager struct {
	id     string
	change []func(*operator.Options)
	log    *logs
	stop   func() // in good order
	done   chan error
}

// start runs a manager for the test's namespace alone. Without leader election it is alone by declaration, as a restarted
// single manager is.
func (w *world) start(change ...func(*operator.Options)) *manager {
	w.t.Helper()
	return w.startOn(plane.Config(), change...)
}

// startOn is start with a connection to the API server that the test makes.
func (w *world) startOn(config *rest.Config, change ...func(*operator.Options)) *manager {
	w.t.Helper()
	log := &logs{}
	o := operator.DefaultOptions()
	o.Namespaces = []string{w.ns}
	o.LeaseNamespace = w.ns
	o.LeaderElect = false
	o.ProbeAddress, o.MetricsAddress = "0", "0"
	o.Startup.Window = 0 // the tests of the throttle turn it on
	o.AllowedOutgoing = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	o.DrainTimeout = time.Second
	o.Pod = nil
	o.Log = log.logger()
	o.Exit = func() { w.t.Error("the manager ended itself") }
	for _, c := range change {
		c(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	op, err := operator.New(ctx, config, o)
	w.Expect(err).NotTo(HaveOccurred())
	m := &manager{id: o.ID, change: change, log: log, done: make(chan error, 1)}
	go func() { m.done <- op.Run(ctx) }()
	var once sync.Once
	m.stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-m.done:
				w.Expect(err).NotTo(HaveOccurred())
			case <-time.After(patience):
				w.t.Error("the manager did not end")
			}
		})
	}
	w.t.Cleanup(m.stop)
	return m
}

// logs keeps the log lines of a manager.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) logger() logr.Logger {
	return funcr.NewJSON(func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{})
}

// all returns the lines.
func (l *logs) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// with returns the lines that have the message, decoded.
func (l *logs) with(message string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for _, line := range l.lines {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(line), &fields); err == nil && fields["msg"] == message {
			found = append(found, fields)
		}
	}
	return found
}

// call is one request that the work server has received.
type call struct {
	Path, Key, Run, Attempt string
	Body                    string
	Header                  http.Header
}

// server is the thing that runs call: it keeps a log in the order of arrival.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	calls   []call
	answers map[string]http.HandlerFunc
	most    atomic.Int64 // calls at once
	now     atomic.Int64
}

// newServer answers 200 to everything that answers has no handler for.
func newServer(t *testing.T, answers map[string]http.HandlerFunc) *server {
	s := &server{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) serve(rw http.ResponseWriter, r *http.Request) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for m := s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.calls = append(s.calls, call{
		Path: r.URL.Path, Key: r.Header.Get("Idempotency-Key"), Run: r.Header.Get("Reprise-Run"), Attempt: r.Header.Get("Reprise-Attempt"),
		Body: string(body), Header: r.Header.Clone(),
	})
	s.mu.Unlock()
	if answer := s.answers[r.URL.Path]; answer != nil {
		answer(rw, r)
		return
	}
	_, _ = io.WriteString(rw, "done")
}

// log returns the calls so far.
func (s *server) log() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// runs returns the names of the runs that called, in order.
func (s *server) runs() []string {
	var names []string
	for _, c := range s.log() {
		names = append(names, c.Run[strings.LastIndex(c.Run, "/")+1:])
	}
	return names
}

// block makes a handler that waits until it is released, and the function that releases it.
func block(t *testing.T) (http.HandlerFunc, func()) {
	released := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(released) }) }
	t.Cleanup(release)
	return func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
			_, _ = io.WriteString(rw, "done")
		case <-r.Context().Done():
		}
	}, release
}

// httpRun builds a run that calls the URL.
func (w *world) httpRun(name, url string, change ...func(*batchv1alpha1.JobRun)) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: url}}
	r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](1), BaseDelaySeconds: ptr.To[int32](1)}
	for _, c := range change {
		c(r)
	}
	return r
}

// create creates objects in order.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.Expect(w.Create(w.ctx, o)).To(Succeed(), "creating %T %s", o, o.GetName())
	}
}

// queue creates a JobQueue with a limit.
func (w *world) queue(name string, limit int32, change ...func(*batchv1alpha1.JobQueue)) *batchv1alpha1.JobQueue {
	w.t.Helper()
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Limit: &limit}
	for _, c := range change {
		c(q)
	}
	w.create(q)
	return q
}

// get reads a run.
func (w *world) get(name string) *batchv1alpha1.JobRun {
	w.t.Helper()
	r := &batchv1alpha1.JobRun{}
	w.Expect(w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, r)).To(Succeed())
	return r
}

// phase reads the phase of a run, for Eventually.
func (w *world) phase(name string) func() string {
	return func() string {
		r := &batchv1alpha1.JobRun{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, r); err != nil {
			return err.Error()
		}
		return string(r.Status.Phase)
	}
}

// eventually waits until a run is in the phase and returns it.
func (w *world) eventually(name string, phase batchv1alpha1.JobRunPhase) *batchv1alpha1.JobRun {
	w.t.Helper()
	w.Eventually(w.phase(name)).Should(Equal(string(phase)), func() string { return w.story() })
	return w.get(name)
}

// story tells what is in the namespace, for a failed expectation.
func (w *world) story() string {
	runs := &batchv1alpha1.JobRunList{}
	if err := w.List(w.ctx, runs, client.InNamespace(w.ns)); err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, r := range runs.Items {
		fmt.Fprintf(&b, "%s: %s %s %s slot=%s\n", r.Name, r.Status.Phase, r.Status.Reason, r.Status.Message, r.Status.Slot)
	}
	queues := &batchv1alpha1.JobQueueList{}
	if err := w.List(w.ctx, queues, client.InNamespace(w.ns)); err != nil {
		return err.Error()
	}
	for _, q := range queues.Items {
		fmt.Fprintf(&b, "queue %s: %+v\n", q.Name, q.Status)
	}
	return b.String()
}

// setStatus writes a status as an earlier manager may have left it.
func (w *world) setStatus(r *batchv1alpha1.JobRun, change func(*batchv1alpha1.JobRunStatus)) {
	w.t.Helper()
	change(&r.Status)
	w.Expect(w.Status().Update(w.ctx, r)).To(Succeed())
}
