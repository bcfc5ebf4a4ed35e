// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

// patience bounds every wait of these tests. A wait ends as soon as it can.
const patience = 90 * time.Second

// world is one test's namespace, and a server that its runs call.
type world struct {
	*WithT
	t   *testing.T
	ctx context.Context
	client.Client
	ns  string
	url string

	mu      sync.Mutex
	calls   []string // of runs, in the order of arrival
	release chan struct{}
}

// newWorld makes a namespace that goes with the test. The server answers 200, but for the paths /fail (503), /none (204) and
// /hold, which waits until let is called.
func newWorld(t *testing.T) *world {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	c, err := client.New(plane.Config(), client.Options{Scheme: operator.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gitops-"}}
	g.Expect(c.Create(ctx, ns)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(context.Background(), ns) })
	w := &world{WithT: g, t: t, ctx: ctx, Client: c, ns: ns.Name, release: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	w.url = s.URL
	return w
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // a client that leaves is not waited for
	w.mu.Lock()
	w.calls = append(w.calls, strings.TrimPrefix(r.Header.Get("Reprise-Run"), w.ns+"/"))
	w.mu.Unlock()
	switch r.URL.Path {
	case "/fail":
		rw.WriteHeader(http.StatusServiceUnavailable)
	case "/none":
		rw.WriteHeader(http.StatusNoContent)
	case "/hold":
		select {
		case <-w.release:
		case <-r.Context().Done():
		}
	}
}

// let lets every call of /hold end, those to come too.
func (w *world) let() { close(w.release) }

// called returns the names of the runs that called, in order.
func (w *world) called() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// start runs a manager for the test's namespace until the test ends, or until what it returns is called.
func (w *world) start(change ...func(*operator.Options)) (stop func()) {
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
	for _, c := range change {
		c(&o)
	}
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

// kubectl runs kubectl in the test's namespace and returns all that it prints.
func (w *world) kubectl(stdin string, args ...string) (string, error) {
	w.t.Helper()
	cmd := plane.Kubectl(w.ctx, append([]string{"-n", w.ns}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// does is kubectl that must succeed.
func (w *world) does(stdin string, args ...string) string {
	w.t.Helper()
	out, err := w.kubectl(stdin, args...)
	w.Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, out)
	return out
}

// apply applies manifests as a person or a tool does. URL stands for the address of the server.
func (w *world) apply(manifests string) {
	w.t.Helper()
	w.does(w.manifests(manifests), "apply", "--server-side", "--validate=strict", "-f", "-")
}

// manifests completes manifests of our kinds: each begins with its kind, and URL stands for the address of the server.
func (w *world) manifests(text string) string {
	var all []string
	for _, m := range strings.Split(text, "\n---\n") {
		if !strings.Contains(m, "apiVersion:") {
			m = "apiVersion: " + batchv1alpha1.GroupVersion.String() + "\n" + strings.TrimSpace(m)
		}
		all = append(all, strings.ReplaceAll(m, "URL", w.url))
	}
	return strings.Join(all, "\n---\n") + "\n"
}

// patch changes the spec of an object as its user does.
func (w *world) patch(kind, name, spec string) {
	w.t.Helper()
	w.does("", "patch", kind, name, "--type=merge", "-p", `{"spec":`+spec+`}`)
}

// read reads an object as a tool that knows nothing of its kind does.
func (w *world) read(kind, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind(kind))
	return u, w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, u)
}

// get is read of an object that is there.
func (w *world) get(kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	u, err := w.read(kind, name)
	w.Expect(err).NotTo(HaveOccurred())
	return u
}

// gone waits until there is no such object.
func (w *world) gone(kind, name string) {
	w.t.Helper()
	w.Eventually(func() bool {
		_, err := w.read(kind, name)
		return apierrors.IsNotFound(err)
	}).Should(BeTrue(), "%s %s is gone", kind, name)
}

// phase reads the phase of an object, for Eventually.
func (w *world) phase(kind, name string) func() string {
	return func() string {
		u, err := w.read(kind, name)
		if err != nil {
			return err.Error()
		}
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		return phase
	}
}

// reaches waits until an object is in the phase and returns it.
func (w *world) reaches(kind, name, phase string) *unstructured.Unstructured {
	w.t.Helper()
	w.Eventually(w.phase(kind, name)).Should(Equal(phase), "%s %s", kind, name)
	return w.get(kind, name)
}

// condition returns the reason of a condition that holds, "" if it does not.
func condition(u *unstructured.Unstructured, kind string) string {
	for _, c := range conditions(u) {
		if c["type"] == kind && c["status"] == "True" {
			reason, _ := c["reason"].(string)
			return reason
		}
	}
	return ""
}

func conditions(u *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var all []map[string]any
	for _, c := range list {
		if m, ok := c.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// says waits until a condition of an object holds for the reason, and returns the object.
func (w *world) says(kind, name, what, reason string) *unstructured.Unstructured {
	w.t.Helper()
	var u *unstructured.Unstructured
	w.Eventually(func() string {
		var err error
		if u, err = w.read(kind, name); err != nil {
			return err.Error()
		}
		return condition(u, what)
	}).Should(Equal(reason), "condition %s of %s %s", what, kind, name)
	return u
}
