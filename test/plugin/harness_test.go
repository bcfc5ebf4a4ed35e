// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

// world is one test's namespace and what is in it.
type world struct {
	*WithT
	t *testing.T
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
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "plugin-"}}
	g.Expect(c.Create(t.Context(), ns)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(context.Background(), ns) })
	return &world{WithT: g, t: t, Client: c, ns: ns.Name}
}

// manage runs a manager for the namespace of the test alone, and returns the function that stops it.
func (w *world) manage() (stop func()) {
	w.t.Helper()
	o := operator.DefaultOptions()
	o.Namespaces = []string{w.ns}
	o.LeaseNamespace = w.ns
	o.LeaderElect = false
	o.ProbeAddress, o.MetricsAddress = "0", "0"
	o.Startup.Window = 0
	o.AllowedOutgoing = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	o.DrainTimeout = time.Second
	o.Pod = nil
	o.Log = logr.Discard()
	o.Exit = func() { w.t.Error("the manager ended itself") }
	ctx, cancel := context.WithCancel(context.Background())
	op, err := operator.New(ctx, plane.Config(), o)
	w.Expect(err).NotTo(HaveOccurred())
	done := make(chan error, 1)
	go func() { done <- op.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			w.Expect(err).NotTo(HaveOccurred())
		case <-time.After(patience):
			w.t.Error("the manager did not end")
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// begin starts the plugin in the namespace of the test.
func (w *world) begin(args ...string) *command {
	w.t.Helper()
	return launch(w.t, nil, append(args, "--kubeconfig="+plane.Kubeconfig(), "--namespace="+w.ns)...)
}

// reprise runs the plugin in the namespace of the test to its end.
func (w *world) reprise(args ...string) result {
	w.t.Helper()
	return w.begin(args...).result()
}

// does is reprise of a command that succeeds, and returns what it prints.
func (w *world) does(args ...string) string {
	w.t.Helper()
	r := w.reprise(args...)
	w.Expect(r.code).To(BeZero(), "%v: %s%s", args, r.out, r.err)
	return r.out
}

// create creates objects in order.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		o.SetNamespace(w.ns)
		w.Expect(w.Create(w.t.Context(), o)).To(Succeed(), "creating %T %s", o, o.GetName())
	}
}

// run reads a run.
func (w *world) run(name string) *batchv1alpha1.JobRun {
	w.t.Helper()
	r := &batchv1alpha1.JobRun{}
	w.Expect(w.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, r)).To(Succeed())
	return r
}

// phase reads the phase of a run, for Eventually.
func (w *world) phase(name string) func() batchv1alpha1.JobRunPhase {
	return func() batchv1alpha1.JobRunPhase {
		r := &batchv1alpha1.JobRun{}
		if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, r); err != nil {
			return batchv1alpha1.JobRunPhase(err.Error())
		}
		return r.Status.Phase
	}
}

// httpWork is the template of a run that calls the URL, and is retried that often.
func httpWork(url string, retries int32) batchv1alpha1.JobRunTemplateSpec {
	return batchv1alpha1.JobRunTemplateSpec{
		Work:        &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: url}},
		RetryPolicy: &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To(retries), BaseDelaySeconds: ptr.To[int32](1)},
	}
}

func scheduledJob(name string, t batchv1alpha1.JobRunTemplateSpec) *batchv1alpha1.ScheduledJob {
	return &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1alpha1.ScheduledJobSpec{RunTemplate: &t}}
}

func jobRun(name string, t batchv1alpha1.JobRunTemplateSpec) *batchv1alpha1.JobRun {
	return &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1alpha1.JobRunSpec{JobRunTemplateSpec: t}}
}

// server is what runs call: /ok answers at once, /slow when it is released, and everything else with an error.
type server struct {
	*httptest.Server
	release func()
}

func newServer(t *testing.T) *server {
	released := make(chan struct{})
	s := &server{release: sync.OnceFunc(func() { close(released) })}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
		case "/slow":
			select {
			case <-released:
			case <-r.Context().Done():
				return
			}
		default:
			rw.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(rw, "hello from "+r.URL.Path)
	}))
	t.Cleanup(func() {
		s.release()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}
