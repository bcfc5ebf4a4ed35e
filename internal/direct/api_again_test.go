// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// faulty is a client of the API some of whose writes go wrong.
type faulty struct {
	client.Client
	create, update func(context.Context, client.Object) error // nil, and a nil error: send it
}

func (f *faulty) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if f.create != nil {
		if err := f.create(ctx, o); err != nil {
			return err
		}
	}
	return f.Client.Create(ctx, o, opts...)
}

func (f *faulty) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	if f.update != nil {
		if err := f.update(ctx, o); err != nil {
			return err
		}
	}
	return f.Client.Update(ctx, o, opts...)
}

// keyed makes a direct request with an Idempotency-Key.
func (s *scene) keyed(d *door, token string) *http.Request {
	r := d.request(token, http.MethodPost, "/v1/namespaces/"+s.ns+"/queues/main/direct/", nil)
	r.Header.Set(HeaderIdempotencyKey, "once")
	return r
}

func TestAKeyThatWasNeverPassedOnCanBeUsedAgain(t *testing.T) {
	for how, c := range map[string]struct {
		code  string
		spoil func(*scene, *faulty)
		mend  func(*scene)
	}{
		"the acknowledgement has no answer": {"NotGrantedInTime", func(_ *scene, f *faulty) {
			f.update = func(_ context.Context, o client.Object) error {
				if d, ok := o.(*batchv1alpha1.DirectReservation); ok && !d.Spec.Release {
					return errAway
				}
				return nil
			}
		}, nil},
		"the call could not be made": {"SecretNotFound", func(s *scene, _ *faulty) {
			s.change(func(d *batchv1alpha1.QueueDirect) {
				d.Headers = []batchv1alpha1.HTTPHeader{{Name: "X-Key", SecretKeyRef: &batchv1alpha1.SecretKeyRef{Name: "nowhere", Key: "value"}}}
			})
		}, func(s *scene) { s.change(func(d *batchv1alpha1.QueueDirect) { d.Headers = nil }) }},
	} {
		t.Run(how, func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			s := set(t, quick(), func(http.ResponseWriter, *http.Request) { calls.Add(1) },
				func(q *batchv1alpha1.JobQueue) { q.Spec.Direct.WaitTimeoutSeconds = ptr.To[int32](2) })
			over := &faulty{Client: cached}
			c.spoil(s, over)
			token, bad := s.user(), s.open("front-2", quick(), over)
			first := bad.send(s.keyed(bad, token))
			g.Expect(first.Error).To(Equal(c.code))
			s.only(batchv1alpha1.ReservationReleased)
			g.Expect(calls.Load()).To(BeZero())
			if c.mend != nil {
				c.mend(s)
			}
			g.Expect(s.send(s.keyed(s.door, token)).status).To(Equal(http.StatusOK))
			g.Expect(calls.Load()).To(Equal(int32(1)))
			s.only(batchv1alpha1.ReservationReleased)
			g.Expect(s.send(s.keyed(s.door, token)).Error).To(Equal("AlreadyServed"))
		})
	}
}

// change changes spec.direct of the queue, and waits until the fronts see it.
func (s *scene) change(to func(*batchv1alpha1.QueueDirect)) {
	s.t.Helper()
	g := NewWithT(s.t)
	key := client.ObjectKeyFromObject(s.queue)
	g.Eventually(func() error {
		q := &batchv1alpha1.JobQueue{}
		if err := live.Get(s.t.Context(), key, q); err != nil {
			return err
		}
		to(q.Spec.Direct)
		err := live.Update(s.t.Context(), q)
		s.queue = q
		return err
	}, patience, interval).Should(Succeed())
	g.Eventually(func() int64 {
		q := &batchv1alpha1.JobQueue{}
		g.Expect(cached.Get(s.t.Context(), key, q)).To(Succeed())
		return q.Generation
	}, patience, interval).Should(Equal(s.queue.Generation))
}

func TestAQueueThatChangesWhileARequestWaitsCountsAsItIsThen(t *testing.T) {
	for how, c := range map[string]struct {
		upstream func(other string) string
		status   int
		code     string
	}{
		"it has another upstream": {func(other string) string { return other }, http.StatusTeapot, ""},
		"it has none any more":    {func(string) string { return "" }, http.StatusNotFound, "NoUpstream"},
	} {
		t.Run(how, func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			s := set(t, quick(), func(http.ResponseWriter, *http.Request) { calls.Add(1) })
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
			defer other.Close()
			s.leader.offer(0)
			answer := s.sent(s.direct(s.user(), http.MethodGet, "/", nil))
			s.only(batchv1alpha1.ReservationPending)
			s.change(func(d *batchv1alpha1.QueueDirect) { d.Upstream = c.upstream(other.URL) })
			s.leader.offer(1)
			got := await(t, "the answer", answer)
			g.Expect(got.status).To(Equal(c.status))
			g.Expect(got.Error).To(Equal(c.code))
			g.Expect(calls.Load()).To(BeZero())
			s.only(batchv1alpha1.ReservationReleased)
		})
	}
}

func TestWhatOnlyWaitsDoesNotHoldUpTheEndOfTheProcess(t *testing.T) {
	g := NewWithT(t)
	s := set(t, quick(), echo)
	s.front.DrainTimeout = time.Hour
	s.leader.offer(0)
	token := s.user()
	answer := s.sent(s.keyed(s.door, token))
	waits := s.only(batchv1alpha1.ReservationPending)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.end()
	}()
	got := await(t, "the answer", answer)
	g.Expect(got.status).To(Equal(http.StatusServiceUnavailable))
	g.Expect(got.Error).To(Equal("ShuttingDown"))
	g.Expect(got.header.Get("Retry-After")).To(Equal("1"))
	await(t, "the end", ended)
	g.Expect(s.read(waits.Name).Spec.Release).To(BeTrue(), "its place is given back before the process ends")
}

func TestWhatTheEndOfTheProcessCutsIsNotSaidNeverToHaveBeenPassedOn(t *testing.T) {
	g := NewWithT(t)
	called := make(chan struct{})
	s := set(t, quick(), func(_ http.ResponseWriter, r *http.Request) {
		close(called)
		<-r.Context().Done()
	})
	s.front.DrainTimeout = 50 * time.Millisecond
	answer := s.sent(s.direct(s.user(), http.MethodGet, "/", nil))
	await(t, "the call", called)
	s.end()
	got := await(t, "the answer", answer)
	g.Expect(got.status).To(Equal(http.StatusServiceUnavailable))
	g.Expect(got.Error).To(Equal("SlotLost"))
	g.Expect(got.header.Get("Retry-After")).To(BeEmpty())
}

func TestWhoeverMakesTokensUpKeepsNoUserOut(t *testing.T) {
	g := NewWithT(t)
	tm := quick()
	tm.remember = 0 // each token is asked about each time
	s := set(t, tm, echo)
	var asked atomic.Int32
	end := make(chan struct{})
	slow := s.open("front-2", tm, &faulty{Client: cached, create: func(_ context.Context, o client.Object) error {
		r, ok := o.(*authenticationv1.TokenReview)
		if !ok || !strings.HasPrefix(r.Spec.Token, "made-up") {
			return nil
		}
		asked.Add(1)
		<-end
		return errAway
	}})
	slow.front.gate.limit, slow.front.strangers.limit = 1, maxReviews+1
	token := s.user()
	path := "/v1/namespaces/" + s.ns + "/queues/main/direct/"
	g.Expect(slow.send(slow.request(token, http.MethodGet, path, nil)).status).To(Equal(http.StatusOK), "it is known from now on")
	answers := make(chan got, maxReviews+1)
	for i := range maxReviews + 1 {
		r := slow.request("made-up-"+strings.Repeat("x", i), http.MethodGet, path, nil)
		go func() { answers <- slow.send(r) }()
	}
	waiting := func() int {
		slow.front.strangers.mu.Lock()
		defer slow.front.strangers.mu.Unlock()
		return slow.front.strangers.n
	}
	g.Eventually(waiting, patience, interval).Should(Equal(maxReviews + 1))
	g.Eventually(asked.Load, patience, interval).Should(BeNumerically("==", maxReviews), "nothing more is asked of the API server")
	g.Expect(slow.send(slow.request("made-up", http.MethodGet, path, nil)).Error).To(Equal("Overloaded"))
	g.Expect(slow.send(slow.request(token, http.MethodGet, path, nil)).status).To(Equal(http.StatusOK))
	close(end)
	for range maxReviews + 1 {
		g.Expect(await(t, "an answer", answers).Error).To(Equal("APIUnavailable"))
	}
	g.Expect(waiting()).To(BeZero())
}

func TestConnectionsAreBounded(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	b.server.limit = 1
	g.Expect(b.Listen()).To(Succeed())
	defer b.unlisten()
	g.Expect(newBench(t).server.limit).To(Equal(maxConnections))
	accepted := make(chan func() error, 2)
	go func() {
		for range 2 {
			if conn, err := b.server.listener.Accept(); err == nil {
				accepted <- conn.Close
			}
		}
	}()
	for range 2 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.Bound().String())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = conn.Close() })
	}
	first := await(t, "the first", accepted)
	g.Consistently(accepted, 50*time.Millisecond, interval).ShouldNot(Receive())
	g.Expect(first()).To(Succeed())
	g.Expect(await(t, "the second", accepted)()).To(Succeed())
}

func TestAListenerThatFailsIsReplacedAndTheProcessGoesOn(t *testing.T) {
	g := NewWithT(t)
	s := set(t, quick(), echo)
	token := s.user()
	address := s.front.Bound()
	for range 2 {
		s.front.server.mu.Lock()
		broken := s.front.server.listener
		s.front.server.mu.Unlock()
		g.Expect(broken.Close()).To(Succeed())
		s.http.CloseIdleConnections()
		g.Eventually(func() int { return s.send(s.direct(token, http.MethodGet, "/", nil)).status }, patience, interval).Should(Equal(http.StatusOK))
		g.Expect(s.front.Bound()).To(Equal(address))
	}
	g.Expect(s.log()).To(ContainSubstring("direct access cannot be served"))
	s.end() // it returns no error
}

func TestWhatFailsIsTriedAgainLaterAndLater(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	tries := make(chan time.Time)
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		b.persist(ctx, "it fails", func(context.Context) error {
			tries <- b.clock.Now()
			return errAway
		})
	}()
	last := await(t, "the first try", tries)
	for _, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
		b.step(1, time.Duration(seconds)*time.Second)
		next := await(t, "another try", tries)
		g.Expect(next.Sub(last)).To(Equal(time.Duration(seconds) * time.Second))
		last = next
	}
	cancel()
	await(t, "the end", done)
}

// panicking is an upstream that cannot be called.
type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("the call") }

func TestARequestThatPanicsLeavesNothingBehind(t *testing.T) {
	g := NewWithT(t)
	s := set(t, quick(), echo)
	token := s.user()
	s.front.Egress = panicking{}
	answer := s.send(s.direct(token, http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 2*maxAhead))))
	g.Expect(answer.err).To(HaveOccurred())
	s.only(batchv1alpha1.ReservationReleased)
	g.Eventually(func() int { return len(s.front.budget) }, patience, interval).Should(BeZero(), "its body is not read any more")
	s.end()
}
