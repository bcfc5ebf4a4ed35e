// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestARequestIsPassedOnWhileItHoldsItsSlotAndGivesItBack(t *testing.T) {
	g := NewWithT(t)
	var s *scene
	during := make(chan *batchv1alpha1.DirectReservation, 1)
	headers := make(chan http.Header, 1)
	s = set(t, quick(), func(w http.ResponseWriter, r *http.Request) {
		during <- s.read(r.Header.Get(HeaderReservation))
		headers <- r.Header
		w.Header().Set("Set-Cookie", "a=b")
		echo(w, r)
	}, func(q *batchv1alpha1.JobQueue) {
		q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Resources: []batchv1alpha1.QueueResource{{Name: "ollama", Capacity: 1}}}
		q.Spec.Direct.Headers = []batchv1alpha1.HTTPHeader{
			{Name: "X-Key", SecretKeyRef: &batchv1alpha1.SecretKeyRef{Name: "key", Key: "value"}}, {Name: "X-Team", Value: ptr.To("blue")},
		}
		q.Spec.Direct.Type = "chat"
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "key"}, StringData: map[string]string{"value": "hunter2\n"}}
	g.Expect(live.Create(t.Context(), secret)).To(Succeed())
	token := s.user()
	r := s.direct(token, http.MethodPost, "/api/a%2Fb/chat?q=secret&r", strings.NewReader("hello"))
	for name, value := range map[string]string{
		HeaderClaims: "ollama=1", "Cookie": "c=d", "X-Forwarded-For": "192.0.2.1", "X-Team": "red", "X-Own": "kept", "Reprise-Run": "forged",
	} {
		r.Header.Set(name, value)
	}
	answer := s.send(r)

	g.Expect(answer.status).To(Equal(http.StatusOK))
	g.Expect(answer.body).To(Equal("hello"))
	g.Expect(answer.header.Get("Echo-Path")).To(Equal("/base/api/a%2Fb/chat?q=secret&r"))
	g.Expect(answer.header).NotTo(HaveKey("Set-Cookie"))
	held := <-during
	g.Expect(held.Status.Phase).To(Equal(batchv1alpha1.ReservationGranted))
	g.Expect(held.Name).To(Equal(answer.header.Get(HeaderReservation)))
	g.Expect(held.Spec.HolderIdentity).To(HavePrefix("system:serviceaccount:" + s.ns + ":user-"))
	g.Expect(held.Spec.Queue).To(Equal("main"))
	g.Expect(held.Spec.Type).To(Equal("chat"))
	g.Expect(held.Spec.Claims).To(Equal([]batchv1alpha1.ResourceClaim{{Name: "ollama", Count: 1}}))
	g.Expect(held.Spec.WaitTimeoutSeconds).To(Equal(int32(20)))
	g.Expect(*held.Spec.TTLSecondsAfterFinished).To(Equal(int32(600)))
	g.Expect(held.Annotations).To(HaveKeyWithValue(batchv1alpha1.AnnotationFront, "front-1"))
	passed := <-headers
	for _, name := range []string{"Authorization", "Cookie", HeaderClaims, "Reprise-Run"} {
		g.Expect(passed).NotTo(HaveKey(name))
	}
	g.Expect(passed.Get("X-Key")).To(Equal("hunter2"))
	g.Expect(passed.Get("X-Team")).To(Equal("blue"))
	g.Expect(passed.Get("X-Own")).To(Equal("kept"))
	g.Expect(passed.Get("X-Forwarded-For")).To(Equal("192.0.2.1, 127.0.0.1"))

	g.Expect(s.only(batchv1alpha1.ReservationReleased).Status.GrantedAt).NotTo(BeNil())
	runs := &batchv1alpha1.JobRunList{}
	g.Expect(live.List(t.Context(), runs, client.InNamespace(s.ns))).To(Succeed())
	g.Expect(runs.Items).To(BeEmpty())
	g.Eventually(s.log, patience, interval).Should(And(ContainSubstring(held.Name), ContainSubstring(`"status"=200`), ContainSubstring(`"bytesIn"=5`)))
	for _, secret := range []string{token, "hunter2", "hello", "q=secret", "c=d"} {
		g.Expect(s.log()).NotTo(ContainSubstring(secret))
	}
}

func TestWhoMayNotUseAQueueHearsNothingOfIt(t *testing.T) {
	var calls atomic.Int32
	s := set(t, quick(), func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	s.user()
	powerless := s.token(audience, "jobruns")
	for name, c := range map[string]struct {
		token, queue, code string
		status             int
	}{
		"without a token":                   {"", "main", http.StatusText(http.StatusUnauthorized), 401},
		"a token that is none":              {"nonsense", "main", http.StatusText(http.StatusUnauthorized), 401},
		"a token for another audience":      {s.token("another.test", "directreservations"), "main", http.StatusText(http.StatusUnauthorized), 401},
		"a user without the right":          {powerless, "main", "Forbidden", 403},
		"a user without it, and no queue":   {powerless, "nowhere", "Forbidden", 403},
		"a user without it, in the default": {powerless, "default", "Forbidden", 403},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			answer := s.send(s.request(c.token, http.MethodGet, "/v1/namespaces/"+s.ns+"/queues/"+c.queue+"/direct/", nil))
			g.Expect(answer.status).To(Equal(c.status))
			g.Expect(answer.Error).To(Equal(c.code))
			g.Expect(answer.Message).NotTo(BeEmpty())
			g.Expect(answer.header.Get("WWW-Authenticate") != "").To(Equal(c.status == 401))
		})
	}
	g := NewWithT(t)
	other := s.user()
	g.Expect(s.send(s.request(other, http.MethodGet, "/v1/namespaces/default/queues/main/direct/", nil)).status).To(Equal(403), "a right in one namespace is none in another")
	g.Expect(calls.Load()).To(BeZero())
	g.Expect(s.reservations()).To(BeEmpty())
}

func TestBadInputIsRefusedBeforeAnythingIsReserved(t *testing.T) {
	s := set(t, quick(), echo, func(q *batchv1alpha1.JobQueue) { q.Spec.Direct.MaxBodyBytes = ptr.To[int64](10) })
	g := NewWithT(t)
	bare := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "bare"}}
	g.Expect(live.Create(t.Context(), bare)).To(Succeed())
	token := s.user()
	g.Eventually(func() string {
		return s.send(s.request(token, http.MethodGet, "/v1/namespaces/"+s.ns+"/queues/bare/direct/", nil)).Error
	}, patience, interval).Should(Equal("NoUpstream"))
	for name, c := range map[string]struct {
		path, header, value, body string
		status                    int
		code                      string
	}{
		"an unknown queue":         {path: "/queues/nowhere/direct/", status: 404, code: "QueueNotFound"},
		"an unknown path":          {path: "/queues/main/indirect", status: 404, code: "NotFound"},
		"an upgrade":               {path: "/queues/main/direct/", header: "Upgrade", value: "websocket", status: 501, code: "UpgradeNotSupported"},
		"a path that leads up":     {path: "/queues/main/direct/a/%2e%2e/%2e%2e/x", status: 400, code: "InvalidPath"},
		"claims that are none":     {path: "/queues/main/direct/", header: HeaderClaims, value: "ollama=lots", status: 400, code: "InvalidClaims"},
		"a type that is none":      {path: "/queues/main/direct/", header: HeaderType, value: "Not A Type", status: 400, code: "InvalidType"},
		"a type the queue has not": {path: "/queues/main/direct/", header: HeaderType, value: "unknown", status: 400, code: "UnknownType"},
		"an endless key":           {path: "/queues/main/direct/", header: HeaderIdempotencyKey, value: strings.Repeat("k", 256), status: 400, code: "InvalidIdempotencyKey"},
		"a body that is too long":  {path: "/queues/main/direct/", body: "12345678901", status: 413, code: "BodyTooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := s.request(token, http.MethodPost, "/v1/namespaces/"+s.ns+c.path, strings.NewReader(c.body))
			if c.header != "" {
				r.Header.Set(c.header, c.value)
			}
			answer := s.send(r)
			g.Expect(answer.status).To(Equal(c.status))
			g.Expect(answer.Error).To(Equal(c.code))
			g.Expect(answer.Message).NotTo(BeEmpty())
		})
	}
	g.Expect(s.reservations()).To(BeEmpty())
}

func TestEventsArriveAsTheyAreSentInBothDirections(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			g := NewWithT(t)
			s := set(t, quick(), func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				control := http.NewResponseController(w)
				_ = control.EnableFullDuplex()
				lines := bufio.NewScanner(r.Body)
				for lines.Scan() {
					_, _ = io.WriteString(w, "data: "+lines.Text()+"\n\n")
					_ = control.Flush()
				}
			})
			s.http.Transport.(*http.Transport).ForceAttemptHTTP2 = protocol == "HTTP/2.0"
			from, to := io.Pipe()
			r := s.direct(s.user(), http.MethodPost, "/", from)
			go func() { _, _ = io.WriteString(to, "0\n") }()
			response, err := s.http.Do(r)
			g.Expect(err).NotTo(HaveOccurred())
			defer func() { _ = response.Body.Close() }()
			g.Expect(response.Proto).To(Equal(protocol))
			events := bufio.NewReader(response.Body)
			for _, next := range []string{"1", "2", "3", ""} { // the next is sent only when the one before has come
				line, err := events.ReadString('\n')
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(line).To(HavePrefix("data: "))
				_, err = events.ReadString('\n')
				g.Expect(err).NotTo(HaveOccurred())
				if next == "" {
					_ = to.Close()
					break
				}
				_, err = io.WriteString(to, next+"\n")
				g.Expect(err).NotTo(HaveOccurred())
			}
			rest, err := io.ReadAll(events)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rest).To(BeEmpty())
			s.only(batchv1alpha1.ReservationReleased)
		})
	}
}

func TestAClientThatGoesAwayFreesItsSlotAtOnce(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for when, slots := range map[string]int32{"while it waits": 0, "while it streams": 1} {
			t.Run(protocol+" "+when, func(t *testing.T) {
				g := NewWithT(t)
				called, gone := make(chan struct{}), make(chan struct{})
				s := set(t, quick(), func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.ReadAll(r.Body) // or the server does not notice
					_ = http.NewResponseController(w).Flush()
					close(called)
					<-r.Context().Done()
					close(gone)
				})
				s.http.Transport.(*http.Transport).ForceAttemptHTTP2 = protocol == "HTTP/2.0"
				s.leader.offer(slots)
				ctx, leave := context.WithCancel(t.Context())
				answer := s.sent(s.direct(s.user(), http.MethodPost, "/", strings.NewReader("hello")).WithContext(ctx))
				if slots == 0 {
					s.only(batchv1alpha1.ReservationPending)
				} else {
					await(t, "the call", called)
				}
				leave()
				g.Expect((<-answer).err).To(HaveOccurred())
				g.Expect(s.only(batchv1alpha1.ReservationReleased).Status.Reason).To(Equal(batchv1alpha1.ReasonReleased))
				if slots > 0 {
					await(t, "the end of the call", gone)
				}
				g.Eventually(s.log, patience, interval).Should(ContainSubstring(`"code"="ClientGone"`))
			})
		}
	}
}

func TestTheCallIsCutWhileItsSlotStillCounts(t *testing.T) {
	g := NewWithT(t)
	tm := quick()
	tm.lease = 2 * time.Second
	var s *scene
	cut := make(chan *batchv1alpha1.DirectReservation, 1)
	s = set(t, tm, func(w http.ResponseWriter, r *http.Request) {
		name := r.Header.Get(HeaderReservation)
		s.leader.away.Store(true) // nobody shows renewals any more
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		cut <- s.read(name)
	})
	answer := s.send(s.direct(s.user(), http.MethodGet, "/", nil))
	at := time.Now()
	g.Expect(answer.status).To(Equal(http.StatusOK))
	g.Expect(answer.err).To(HaveOccurred(), "an answer that was cut must not look whole")
	g.Expect(answer.body).To(Equal("begun"))
	found := await(t, "the end of the call", cut)
	g.Expect(found.Status.Phase).To(Equal(batchv1alpha1.ReservationGranted))
	g.Expect(at).To(BeTemporally("<", found.Status.ExpiresAt.Add(5*time.Second)))
	g.Eventually(s.log, patience, interval).Should(ContainSubstring("SlotLost"))
	s.leader.away.Store(false)
	s.only(batchv1alpha1.ReservationReleased)
}

func TestALeaseIsRenewedForAsLongAsItStreams(t *testing.T) {
	g := NewWithT(t)
	tm := quick()
	tm.lease = 3 * time.Second
	called, end := make(chan string, 1), make(chan struct{})
	s := set(t, tm, func(_ http.ResponseWriter, r *http.Request) {
		called <- r.Header.Get(HeaderReservation)
		<-end
	})
	answer := s.sent(s.direct(s.user(), http.MethodGet, "/", nil))
	name := await(t, "the call", called)
	first := s.read(name).Status.ExpiresAt
	g.Eventually(func() bool { return s.read(name).Status.ExpiresAt.After(first.Add(4 * time.Second)) }, patience, interval).Should(BeTrue())
	close(end)
	g.Expect((<-answer).status).To(Equal(http.StatusOK))
}

func TestASlotThatSomebodyElseTakesAwayCutsTheCall(t *testing.T) {
	for how, take := range map[string]func(*scene, *batchv1alpha1.DirectReservation) error{
		"it is deleted": func(_ *scene, d *batchv1alpha1.DirectReservation) error { return live.Delete(context.Background(), d) },
		"it is released by hand": func(_ *scene, d *batchv1alpha1.DirectReservation) error {
			return live.Patch(context.Background(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"release":true}}`)))
		},
	} {
		t.Run(how, func(t *testing.T) {
			g := NewWithT(t)
			called, gone := make(chan string, 1), make(chan struct{})
			s := set(t, quick(), func(_ http.ResponseWriter, r *http.Request) {
				called <- r.Header.Get(HeaderReservation)
				<-r.Context().Done()
				close(gone)
			})
			answer := s.sent(s.direct(s.user(), http.MethodGet, "/", nil))
			d := s.read(await(t, "the call", called))
			g.Expect(take(s, d)).To(Succeed())
			got := await(t, "the answer", answer)
			g.Expect(got.status).To(Equal(http.StatusServiceUnavailable))
			g.Expect(got.Error).To(Equal("SlotLost"))
			g.Expect(got.Reservation).To(Equal(d.Name))
			await(t, "the end of the call", gone)
		})
	}
}

func TestOneThatWaitsForTooLongIsToldToComeAgain(t *testing.T) {
	g := NewWithT(t)
	s := set(t, quick(), echo, func(q *batchv1alpha1.JobQueue) { q.Spec.Direct.WaitTimeoutSeconds = ptr.To[int32](1) })
	s.leader.offer(0)
	answer := s.send(s.direct(s.user(), http.MethodGet, "/", nil))
	g.Expect(answer.status).To(Equal(http.StatusServiceUnavailable))
	g.Expect(answer.Error).To(Equal("NotGrantedInTime"))
	g.Expect(answer.header.Get("Retry-After")).To(Equal("5"))
	g.Eventually(func() bool { return s.reservations()[0].Status.Phase.Terminal() }, patience, interval).Should(BeTrue())
}

func TestAnUpstreamThatHangsTimesOut(t *testing.T) {
	g := NewWithT(t)
	gone := make(chan struct{})
	s := set(t, quick(), func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(gone)
	}, func(q *batchv1alpha1.JobQueue) { q.Spec.Direct.TimeoutSeconds = ptr.To[int32](1) })
	answer := s.send(s.direct(s.user(), http.MethodGet, "/", nil))
	g.Expect(answer.status).To(Equal(http.StatusGatewayTimeout))
	g.Expect(answer.Error).To(Equal("UpstreamTimeout"))
	await(t, "the end of the call", gone)
	s.only(batchv1alpha1.ReservationReleased)
}

func TestAnUpstreamThatIsNotThereFreesTheSlot(t *testing.T) {
	for why, c := range map[string]struct {
		change func(*scene, *batchv1alpha1.QueueDirect)
		code   string
	}{
		"nobody listens":    {func(s *scene, _ *batchv1alpha1.QueueDirect) { s.server.Close() }, "UpstreamFailed"},
		"a missing Secret":  {nil, "SecretNotFound"},
		"forbidden address": {nil, "AddressForbidden"},
	} {
		t.Run(why, func(t *testing.T) {
			g := NewWithT(t)
			s := set(t, quick(), echo, func(q *batchv1alpha1.JobQueue) {
				switch c.code {
				case "SecretNotFound":
					q.Spec.Direct.Headers = []batchv1alpha1.HTTPHeader{{Name: "X-Key", SecretKeyRef: &batchv1alpha1.SecretKeyRef{Name: "nowhere", Key: "value"}}}
				case "AddressForbidden":
					q.Spec.Direct.Upstream = "http://169.254.169.254"
				}
			})
			if c.change != nil {
				c.change(s, s.queue.Spec.Direct)
			}
			answer := s.send(s.direct(s.user(), http.MethodGet, "/", nil))
			g.Expect(answer.status).To(Equal(http.StatusBadGateway))
			g.Expect(answer.Error).To(Equal(c.code))
			g.Expect(answer.Reservation).NotTo(BeEmpty())
			s.only(batchv1alpha1.ReservationReleased)
		})
	}
}
