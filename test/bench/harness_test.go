// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

// writers is how many clients create runs at once.
const writers = 32

// bench is one benchmark's namespace, work server and manager.
type bench struct {
	*testing.B
	client.Client
	ns     string
	server *httptest.Server
	calls  atomic.Int64
	writes writes
}

// writes counts the write requests that the manager sends, by the kind of object.
type writes struct {
	mu     sync.Mutex
	byKind map[string]int
}

func (w *writes) count(r *http.Request) {
	if r.Method == http.MethodGet {
		return
	}
	kind := "other"
	for _, k := range []string{"jobruns", "queueledgers", "jobqueues", "leases", "jobs"} {
		if strings.Contains(r.URL.Path, "/"+k) {
			kind = k
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byKind[kind]++
}

func (w *writes) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counted := w.byKind
	w.byKind = map[string]int{}
	return counted
}

type counting struct {
	next   http.RoundTripper
	writes *writes
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.writes.count(r)
	return c.next.RoundTrip(r)
}

func newBench(b *testing.B, limit int32, suspended bool) *bench {
	b.Helper()
	c, err := client.New(plane.Config(), client.Options{Scheme: operator.Scheme()})
	must(b, err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	must(b, c.Create(b.Context(), ns))
	be := &bench{B: b, Client: c, ns: ns.Name, writes: writes{byKind: map[string]int{}}}
	be.server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { be.calls.Add(1) }))
	b.Cleanup(be.server.Close)
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: be.ns, Name: batchv1alpha1.DefaultQueue}}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Limit: &limit}
	q.Spec.Suspend = suspended
	must(b, c.Create(b.Context(), q))
	return be
}

// manage starts the manager and returns the function that ends it.
func (b *bench) manage(change ...func(*operator.Options)) func() {
	o := operator.DefaultOptions()
	o.Namespaces, o.LeaseNamespace, o.LeaderElect = []string{b.ns}, b.ns, false
	o.ProbeAddress, o.MetricsAddress = "0", "0"
	o.Startup.Window = 0
	o.AllowedOutgoing = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	o.Log = logr.Discard()
	for _, c := range change {
		c(&o)
	}
	config := plane.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next: next, writes: &b.writes} })
	ctx, cancel := context.WithCancel(context.Background())
	op, err := operator.New(ctx, rest.CopyConfig(config), o)
	must(b, err)
	done := make(chan error, 1)
	go func() { done <- op.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		must(b, <-done)
	})
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress(b testing.TB) string {
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	must(b, err)
	defer func() { must(b, l.Close()) }()
	return l.Addr().String()
}

// ready reports whether the manager's /readyz says so.
func ready(address string) bool {
	response, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// submit creates n runs, many at once.
func (b *bench) submit(n int) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error {
			r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: b.ns, Name: fmt.Sprintf("run-%d", i)}}
			r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: b.server.URL}}
			r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](0)}
			return b.Create(context.Background(), r)
		})
	}
	must(b, group.Wait())
}

// release lifts the suspension of the queue.
func (b *bench) release() {
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: b.ns, Name: batchv1alpha1.DefaultQueue}}
	must(b, b.Patch(context.Background(), q, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))))
}

// held returns how many runs are at work.
func (b *bench) held() int {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind("JobRunList"))
	must(b, b.List(context.Background(), list, client.InNamespace(b.ns), client.MatchingFields{"status.slot": string(batchv1alpha1.SlotHeld)}))
	return len(list.Items)
}

// ended waits until no run waits or is at work.
func (b *bench) ended() {
	b.Helper()
	b.wait(func() bool {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind("JobRunList"))
		err := b.List(context.Background(), list, client.InNamespace(b.ns), client.MatchingFields{"status.phase": string(batchv1alpha1.JobRunQueued)})
		return err == nil && len(list.Items) == 0 && b.held() == 0
	})
}

// pace of polling: what is read from the API server must not disturb what is measured.
const pace = 100 * time.Millisecond

// wait polls until done.
func (b *bench) wait(done func() bool) {
	b.Helper()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	limit := time.NewTimer(10 * time.Minute)
	defer limit.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-limit.C:
			b.Fatal("it did not end within 10 minutes")
		}
	}
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (w *writes) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := 0
	for _, n := range w.byKind {
		total += n
	}
	return total
}
