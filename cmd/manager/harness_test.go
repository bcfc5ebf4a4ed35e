// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
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
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "manager-"}}
	g.Expect(c.Create(t.Context(), ns)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(context.Background(), ns) })
	return &world{WithT: g, t: t, Client: c, ns: ns.Name}
}

// run starts a manager for the namespace of the test alone, with further flags.
func (w *world) run(args ...string) *process {
	w.t.Helper()
	return w.runAs(plane.Kubeconfig(), nil, args...)
}

// runAs is run with a kubeconfig and an environment. The addresses and the namespaces win over those among the flags.
func (w *world) runAs(kubeconfig string, env []string, args ...string) *process {
	w.t.Helper()
	probes, metrics := address(w.t), address(w.t)
	p := launch(w.t, env, append(slices.Clone(args),
		"--kubeconfig="+kubeconfig, "--namespaces="+w.ns, "--leader-elect-namespace="+w.ns,
		"--health-probe-bind-address="+probes, "--metrics-bind-address="+metrics, "--allow-outgoing-cidr=127.0.0.0/8", "--startup-window=0",
	)...)
	p.probes, p.metrics = probes, metrics
	return p
}

// ready waits until the manager says that it is.
func (w *world) ready(p *process) *process {
	w.t.Helper()
	w.Eventually(func() bool { return p.answers("/readyz") }).Should(BeTrue())
	return p
}

// leads waits until the manager leads.
func (w *world) leads(p *process) *process {
	w.t.Helper()
	w.Eventually(func() []map[string]any { return p.said("leading") }).Should(HaveLen(1))
	return p
}

// httpRun builds a run that calls the URL, and is retried once after a second.
func (w *world) httpRun(name, url string) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: url}}
	r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](1), BaseDelaySeconds: ptr.To[int32](1)}
	return r
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.Expect(w.Create(w.t.Context(), o)).To(Succeed(), "creating %T %s", o, o.GetName())
	}
}

// get reads a run.
func (w *world) get(name string) *batchv1alpha1.JobRun {
	w.t.Helper()
	r := &batchv1alpha1.JobRun{}
	w.Expect(w.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, r)).To(Succeed())
	return r
}

// eventually waits until a run is in the phase and returns it.
func (w *world) eventually(name string, phase batchv1alpha1.JobRunPhase) *batchv1alpha1.JobRun {
	w.t.Helper()
	r := &batchv1alpha1.JobRun{}
	w.Eventually(func() string {
		if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, r); err != nil {
			return err.Error()
		}
		return string(r.Status.Phase)
	}).Should(Equal(string(phase)), func() string { return w.story() })
	return r
}

// story tells what is in the namespace, for a failed expectation.
func (w *world) story() string {
	runs := &batchv1alpha1.JobRunList{}
	if err := w.List(w.t.Context(), runs, client.InNamespace(w.ns), client.Limit(50)); err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, r := range runs.Items {
		fmt.Fprintf(&b, "%s: %s %s %s slot=%s\n", r.Name, r.Status.Phase, r.Status.Reason, r.Status.Message, r.Status.Slot)
	}
	return b.String()
}

// holder returns who holds the leader lease.
func (w *world) holder() string {
	w.t.Helper()
	lease := &coordinationv1.Lease{}
	w.Expect(w.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: "reprise-manager"}, lease)).To(Succeed())
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// server is what runs call: /slow waits until it is released, everything else answers at once.
type server struct {
	*httptest.Server
	release func()
	mu      sync.Mutex
	calls   []call
}

type call struct{ run, key, attempt string }

func newServer(t *testing.T) *server {
	released := make(chan struct{})
	s := &server{release: sync.OnceFunc(func() { close(released) })}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		name := r.Header.Get("Reprise-Run")
		s.calls = append(s.calls, call{name[strings.LastIndex(name, "/")+1:], r.Header.Get("Idempotency-Key"), r.Header.Get("Reprise-Attempt")})
		s.mu.Unlock()
		if r.URL.Path == "/slow" {
			select {
			case <-released:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = io.WriteString(rw, "done")
	}))
	t.Cleanup(func() {
		s.release()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// log returns the calls so far.
func (s *server) log() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}
