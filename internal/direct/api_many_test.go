// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAThousandClientsAtOnceAreBoundedAndNobodyHangs(t *testing.T) {
	const clients, waiting = 1000, 40
	g := NewWithT(t)
	var calls, atOnce, most atomic.Int32
	tm := quick()
	tm.lease, tm.header = 30*time.Second, patience // so many at once are slow
	s := set(t, tm, func(http.ResponseWriter, *http.Request) {
		calls.Add(1)
		most.Store(max(most.Load(), atOnce.Add(1)))
		atOnce.Add(-1)
	}, func(q *batchv1alpha1.JobQueue) {
		q.Spec.Direct.MaxWaiting, q.Spec.Direct.WaitTimeoutSeconds = ptr.To[int32](waiting), ptr.To[int32](120)
	})
	s.leader.offer(0)
	token := s.user()
	answers := make(chan got, clients)
	for range clients {
		go func() { answers <- s.send(s.direct(token, http.MethodGet, "/", nil)) }()
	}
	for range clients - waiting {
		answer := await(t, "an answer", answers)
		g.Expect(answer.err).NotTo(HaveOccurred())
		g.Expect(answer.status).To(Equal(http.StatusTooManyRequests), answer.body)
		g.Expect(answer.Error).To(Equal("TooManyWaiting"))
		g.Expect(answer.header.Get("Retry-After")).NotTo(BeEmpty())
	}
	g.Eventually(s.reservations, patience, 100*time.Millisecond).Should(HaveLen(waiting))
	g.Expect(calls.Load()).To(BeZero())
	s.leader.offer(3)
	for range waiting {
		g.Expect(await(t, "an answer", answers).status).To(Equal(http.StatusOK))
	}
	g.Expect(calls.Load()).To(Equal(int32(waiting)))
	g.Expect(s.leader.most.Load()).To(BeNumerically("<=", 3))
	g.Expect(most.Load()).To(BeNumerically("<=", 3))
	g.Eventually(func() (left int) {
		for _, d := range s.reservations() {
			if d.Status.Phase != batchv1alpha1.ReservationReleased {
				left++
			}
		}
		return left
	}, patience, 100*time.Millisecond).Should(BeZero())
}

// dial opens a connection on which the test writes and reads by itself.
func (d *door) dial() *tls.Conn {
	d.t.Helper()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(d.t.Context(), "tcp", d.front.Bound().String())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	return conn.(*tls.Conn)
}

// head is the beginning of a direct request that announces a body.
func (s *scene) head(token string) string {
	return fmt.Sprintf("POST /v1/namespaces/%s/queues/main/direct/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 10\r\n\r\n", s.ns, token)
}

// heard reads an answer and waits for the end of the connection.
func heard(t *testing.T, conn *tls.Conn) int {
	t.Helper()
	g := NewWithT(t)
	g.Expect(conn.SetReadDeadline(time.Now().Add(patience))).To(Succeed())
	from := bufio.NewReader(conn)
	response, err := http.ReadResponse(from, nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = from.ReadByte()
	g.Expect(err).To(MatchError(io.EOF), "the connection is of no more use")
	return response.StatusCode
}

func TestAClientThatNeverSendsHoldsNothing(t *testing.T) {
	g := NewWithT(t)
	tm := quick()
	tm.start, tm.idle = 200*time.Millisecond, 200*time.Millisecond
	gone := make(chan struct{})
	s := set(t, tm, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(gone)
	})
	token := s.user()

	stranger := s.dial()
	_, err := io.WriteString(stranger, s.head("nonsense"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(heard(t, stranger)).To(Equal(http.StatusUnauthorized))

	silent := s.dial()
	_, err = io.WriteString(silent, s.head(token))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(heard(t, silent)).To(Equal(http.StatusRequestTimeout))
	g.Expect(s.reservations()).To(BeEmpty())

	faltering := s.dial()
	_, err = io.WriteString(faltering, s.head(token)+"hel")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(heard(t, faltering)).To(Equal(http.StatusRequestTimeout))
	await(t, "the end of the call", gone)
	s.only(batchv1alpha1.ReservationReleased)
}

func TestAClientThatNeverReadsIsCut(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			g := NewWithT(t)
			tm := quick()
			tm.write = 300 * time.Millisecond
			gone := make(chan struct{})
			s := set(t, tm, func(w http.ResponseWriter, _ *http.Request) {
				defer close(gone)
				for chunk := make([]byte, 1<<20); ; {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
			})
			s.http.Transport.(*http.Transport).ForceAttemptHTTP2 = protocol == "HTTP/2.0"
			response, err := s.http.Do(s.direct(s.user(), http.MethodGet, "/", nil))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.Proto).To(Equal(protocol))
			await(t, "the end of the call", gone)
			s.only(batchv1alpha1.ReservationReleased)
			_, err = io.Copy(io.Discard, response.Body)
			g.Expect(err).To(HaveOccurred(), "an answer that was cut must not look whole")
			_ = response.Body.Close()
		})
	}
}

func TestABodyThatGrowsTooLongIsCut(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			g := NewWithT(t)
			const limit = 1 << 20
			s := set(t, quick(), echo, func(q *batchv1alpha1.JobQueue) { q.Spec.Direct.MaxBodyBytes = ptr.To[int64](limit) })
			s.http.Transport.(*http.Transport).ForceAttemptHTTP2 = protocol == "HTTP/2.0"
			token := s.user()
			whole := s.send(s.direct(token, http.MethodPost, "/", struct{ io.Reader }{strings.NewReader(strings.Repeat("x", limit))}))
			g.Expect(whole.status).To(Equal(http.StatusOK))
			g.Expect(whole.body).To(HaveLen(limit))
			// A client that still writes when it is cut off may miss the answer.
			g.Eventually(func() int {
				return s.send(s.direct(token, http.MethodPost, "/", struct{ io.Reader }{strings.NewReader(strings.Repeat("x", limit+1))})).status
			}).WithTimeout(time.Minute).Should(Equal(http.StatusRequestEntityTooLarge))
		})
	}
}

func TestAnotherFrontTakesOverTheKeyOfOneThatDied(t *testing.T) {
	g := NewWithT(t)
	tm := quick()
	tm.lease = 2 * time.Second
	var calls atomic.Int32
	s := set(t, tm, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	s.leader.offer(0)
	var dead atomic.Bool
	old := s.open("front-0", tm, interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return cached.Get(ctx, key, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if dead.Load() {
				return errAway
			}
			return c.Update(ctx, o, opts...)
		},
	}))
	token := s.user()
	path := "/v1/namespaces/" + s.ns + "/queues/main/direct/"
	first := old.request(token, http.MethodGet, path, nil)
	first.Header.Set(HeaderIdempotencyKey, "once")
	lost := old.sent(first)
	found := s.only(batchv1alpha1.ReservationPending)
	dead.Store(true)

	second := s.direct(token, http.MethodGet, "/", nil)
	second.Header.Set(HeaderIdempotencyKey, "once")
	answer := s.send(second)
	g.Expect(answer.status).To(Equal(http.StatusConflict))
	g.Expect(answer.Error).To(Equal("InProgress"))
	g.Expect(answer.header.Get("Retry-After")).NotTo(BeEmpty())
	answers := make(chan got, 1)
	go func() { // as a client that comes again
		for {
			answer := s.send(second.Clone(t.Context()))
			if answer.status != http.StatusConflict {
				answers <- answer
				return
			}
		}
	}()
	left := await(t, "the answer to the first", lost)
	g.Expect(left.status).To(Equal(http.StatusServiceUnavailable))
	g.Expect(left.Error).To(Equal("ReservationLost"))
	g.Eventually(func() string { return front(s.read(found.Name)) }, patience, interval).Should(Equal("front-1"))
	taken := s.only(batchv1alpha1.ReservationPending)
	g.Expect(taken.UID).To(Equal(found.UID), "it keeps its place")
	g.Expect(taken.Spec.Release).To(BeFalse())
	s.leader.offer(1)
	g.Expect(await(t, "the answer to the second", answers).status).To(Equal(http.StatusOK))
	g.Expect(calls.Load()).To(Equal(int32(1)))
}

func TestTheSameKeyIsServedOnce(t *testing.T) {
	g := NewWithT(t)
	var calls atomic.Int32
	s := set(t, quick(), func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	s.leader.offer(0)
	keyed := func(token string) *http.Request {
		r := s.direct(token, http.MethodPost, "/", strings.NewReader("hello"))
		r.Header.Set(HeaderIdempotencyKey, "once")
		return r
	}
	ada, bob := s.user(), s.user()
	ctx, leave := context.WithCancel(t.Context())
	left := s.sent(keyed(ada).WithContext(ctx))
	before := s.only(batchv1alpha1.ReservationPending)
	leave()
	<-left
	s.only(batchv1alpha1.ReservationReleased) // it was never granted: the key is free

	answer := s.sent(keyed(ada))
	g.Eventually(func() bool { return s.only(batchv1alpha1.ReservationPending).UID != before.UID }, patience, interval).Should(BeTrue())
	again := s.send(keyed(ada))
	g.Expect(again.status).To(Equal(http.StatusConflict))
	g.Expect(again.Error).To(Equal("InProgress"))
	g.Expect(again.Reservation).To(Equal(before.Name))
	g.Expect(again.header.Get("Retry-After")).NotTo(BeEmpty())
	s.leader.offer(1)
	g.Expect(await(t, "the answer", answer).status).To(Equal(http.StatusOK))
	s.only(batchv1alpha1.ReservationReleased)
	over := s.send(keyed(ada))
	g.Expect(over.status).To(Equal(http.StatusConflict))
	g.Expect(over.Error).To(Equal("AlreadyServed"))
	g.Expect(over.header.Get("Retry-After")).To(BeEmpty())
	g.Expect(s.send(keyed(bob)).status).To(Equal(http.StatusOK), "a key is its user's own")
	g.Expect(calls.Load()).To(Equal(int32(2)))
}

func TestTheEndOfTheProcessCutsWhatDoesNotEndInTimeAndReleasesIt(t *testing.T) {
	g := NewWithT(t)
	called := make(chan struct{}, 2)
	s := set(t, quick(), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		called <- struct{}{}
		<-r.Context().Done()
	})
	s.front.DrainTimeout = 200 * time.Millisecond
	token := s.user()
	streaming := s.sent(s.direct(token, http.MethodGet, "/", nil))
	await(t, "the call", called)
	waiting := s.sent(s.direct(token, http.MethodGet, "/", nil))
	g.Eventually(s.reservations, patience, interval).Should(HaveLen(2))
	s.end()
	cut := await(t, "the answer of the one that streamed", streaming)
	g.Expect(cut.err).To(HaveOccurred())
	g.Expect(cut.body).To(Equal("begun"))
	told := await(t, "the answer of the one that waited", waiting)
	g.Expect(told.status).To(Equal(http.StatusServiceUnavailable))
	g.Expect(told.Error).To(Equal("ShuttingDown"))
	for _, d := range s.reservations() {
		g.Expect(d.Spec.Release).To(BeTrue(), "it was released before the process ended")
	}
	g.Expect(s.send(s.direct(token, http.MethodGet, "/", nil)).err).To(HaveOccurred())
}

func TestAProcessThatEndsLetsAnAnswerComeToItsEnd(t *testing.T) {
	g := NewWithT(t)
	called, go_ := make(chan struct{}), make(chan struct{})
	s := set(t, quick(), func(w http.ResponseWriter, _ *http.Request) {
		close(called)
		<-go_
		_, _ = io.WriteString(w, "whole")
	})
	answer := s.sent(s.direct(s.user(), http.MethodGet, "/", nil))
	await(t, "the call", called)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.end()
	}()
	g.Eventually(s.front.gate.closed, patience, interval).Should(BeTrue())
	close(go_)
	g.Expect(await(t, "the answer", answer).body).To(Equal("whole"))
	await(t, "the end", ended)
}
