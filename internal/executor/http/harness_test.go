// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/egress"
	"reprise.dev/reprise/internal/executor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ownEpoch = "1700000000.7"

var (
	start    = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
)

// bench is an executor whose surroundings a test controls.
type bench struct {
	*Executor
	t       *testing.T
	clock   *clocktesting.FakeClock
	leader  *leader
	secrets *secretReader
	// gone lists the incarnations whose process is known to have ended; seeing is the error of looking.
	gone   map[string]bool
	seeing error
}

func newBench(t *testing.T, allowed []netip.Prefix) *bench {
	b := &bench{
		t:       t,
		clock:   clocktesting.NewFakeClock(start),
		leader:  &leader{},
		secrets: &secretReader{data: map[string]map[string][]byte{}},
		gone:    map[string]bool{},
	}
	c := egress.NewClient(allowed)
	t.Cleanup(c.CloseIdleConnections)
	b.Executor = New(Options{
		Reader:         b.secrets,
		Client:         c,
		Clock:          b.clock,
		Leader:         b.leader,
		DefaultTimeout: 10 * time.Minute,
		LeaseDuration:  15 * time.Second,
		Epoch:          func() string { return ownEpoch },
		Ended: func(_ context.Context, i *batchv1alpha1.Incarnation) (bool, error) {
			return i != nil && b.gone[i.ID], b.seeing
		},
		Log: testr.New(t),
	})
	return b
}

// outcome starts the run and returns the outcome of its call.
func (b *bench) outcome(r *batchv1alpha1.JobRun) *executor.Outcome {
	b.t.Helper()
	b.start(r)
	b.awaitEnd(r)
	return b.result(r)
}

func (b *bench) start(r *batchv1alpha1.JobRun) {
	b.t.Helper()
	if err := b.Start(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
}

// awaitEnd waits for the event that tells of the end of the run's call.
func (b *bench) awaitEnd(r *batchv1alpha1.JobRun) {
	b.t.Helper()
	select {
	case e := <-b.Events():
		if e.Object.GetName() != r.Name || e.Object.GetNamespace() != r.Namespace || e.Object.GetUID() != r.UID {
			b.t.Fatalf("event of %s/%s, want %s/%s", e.Object.GetNamespace(), e.Object.GetName(), r.Namespace, r.Name)
		}
	case <-time.After(30 * time.Second):
		b.t.Fatal("the call does not end")
	}
}

func (b *bench) result(r *batchv1alpha1.JobRun) *executor.Outcome {
	b.t.Helper()
	evidence := b.look(r)
	if evidence.Life != executor.Ended || !evidence.Stopped || evidence.Outcome == nil {
		b.t.Fatalf("no outcome: %+v", evidence)
	}
	return evidence.Outcome
}

func (b *bench) look(r *batchv1alpha1.JobRun) executor.Evidence {
	b.t.Helper()
	evidence, err := b.Look(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return evidence
}

func (b *bench) stop(r *batchv1alpha1.JobRun) executor.Evidence {
	b.t.Helper()
	evidence, err := b.Stop(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return evidence
}

func (b *bench) seal(r *batchv1alpha1.JobRun) executor.Evidence {
	b.t.Helper()
	evidence, err := b.Seal(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return evidence
}

// claimed returns a run that this process has claimed.
func claimed(name string, work batchv1alpha1.HTTPWork) *batchv1alpha1.JobRun {
	return &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(start.Add(-time.Minute)),
		},
		Spec: batchv1alpha1.JobRunSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{Work: &batchv1alpha1.Work{HTTP: &work}}},
		Status: batchv1alpha1.JobRunStatus{
			Phase:       batchv1alpha1.JobRunRunning,
			Incarnation: &batchv1alpha1.Incarnation{ID: "self", Epoch: ownEpoch},
			StartedAt:   &metav1.Time{Time: start},
		},
	}
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// silent is a server that never answers. It tells of each request that reached it.
func silent(t *testing.T) (*httptest.Server, <-chan *http.Request) {
	t.Helper()
	reached := make(chan *http.Request, 16)
	return serve(t, func(_ http.ResponseWriter, r *http.Request) {
		// A server notices that a client is gone only once it has read the request.
		_, _ = io.Copy(io.Discard, r.Body)
		reached <- r
		<-r.Context().Done()
	}), reached
}

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("%s does not happen", what)
		panic("unreachable")
	}
}

func want(t *testing.T, o *executor.Outcome, phase batchv1alpha1.JobRunPhase, reason, message string) {
	t.Helper()
	if o.Phase != phase || o.Reason != reason || o.Message != message {
		t.Errorf("got  %s/%s %q\nwant %s/%s %q", o.Phase, o.Reason, o.Message, phase, reason, message)
	}
}

// leader leads unless told otherwise.
type leader struct {
	mu      sync.Mutex
	failing bool
	end     context.CancelFunc
	asked   chan struct{}
	hold    chan struct{}
}

var errNotLeading = errors.New("the lease is over")

func (l *leader) Bound(ctx context.Context) (context.Context, context.CancelFunc, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked != nil {
		l.asked <- struct{}{}
	}
	if l.hold != nil {
		<-l.hold
	}
	if l.failing {
		return nil, nil, errNotLeading
	}
	bound, cancel := context.WithCancel(ctx)
	l.end = cancel
	return bound, cancel, nil
}

func (l *leader) set(failing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failing = failing
}

// lose ends the lease of the last call that asked.
func (l *leader) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// secretReader holds Secrets of namespace "shop".
type secretReader struct {
	client.Reader
	mu    sync.Mutex
	data  map[string]map[string][]byte
	err   error
	asked chan struct{}
	reads int
}

func (s *secretReader) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.asked != nil {
		s.asked <- struct{}{}
	}
	if s.err != nil {
		return s.err
	}
	data, ok := s.data[key.Name]
	if !ok || key.Namespace != "shop" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return fmt.Errorf("%T is no Secret", object)
	}
	secret.Data = data
	return nil
}

func (s *secretReader) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}
