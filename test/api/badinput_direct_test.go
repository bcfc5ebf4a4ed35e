// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// The run that comes behind a bad request completes only if that holds nothing any more.

func TestADirectRequestThatCannotBeServedIsToldWhyAndReservesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.upstream(s, 1, bounding(sharing()))
	w.queue("bare", 1)
	d, m := w.opens()
	token := w.client()
	_, foreign := w.user("another.example", "directreservations")
	user, powerless := w.user(audience, "jobruns")
	for name, c := range map[string]struct {
		token, queue  string
		change        func(*http.Request)
		status        int
		code, message string
	}{
		"an unknown queue":               {token, "nowhere", with("X-Own", "x"), 404, "QueueNotFound", `there is no queue "nowhere"`},
		"a queue without an upstream":    {token, "bare", with("X-Own", "x"), 404, "NoUpstream", "spec.direct.upstream"},
		"an unknown type":                {token, "default", with("Reprise-Type", "poem"), 400, batchv1alpha1.ReasonUnknownType, `"poem" is none of them`},
		"an unknown resource":            {token, "default", with("Reprise-Claims", "gpu"), 400, batchv1alpha1.ReasonUnknownResource, `no resource "gpu"`},
		"more than there is":             {token, "default", with("Reprise-Claims", "ollama=2"), 400, batchv1alpha1.ReasonExceedsCapacity, `it claims 2 of resource "ollama", and the queue has 1`},
		"claims that are none":           {token, "default", with("Reprise-Claims", "ollama=-1"), 400, "InvalidClaims", "ollama=1, remote=2"},
		"no token":                       {"", "default", with("X-Own", "x"), 401, "Unauthorized", "Authorization: Bearer"},
		"a token that is none":           {"garbage", "default", with("X-Own", "x"), 401, "Unauthorized", "kubectl create token"},
		"two schemes at once":            {"", "default", with("Authorization", "Basic "+token), 401, "Unauthorized", "Authorization: Bearer"},
		"a token of another audience":    {foreign, "default", with("X-Own", "x"), 401, "Unauthorized", "--audience=reprise"},
		"a user without the right":       {powerless, "default", with("X-Own", "x"), 403, "Forbidden", user},
		"the same, of an unknown queue":  {powerless, "nowhere", with("X-Own", "x"), 403, "Forbidden", "directreservations"},
		"a path that is none":            {token, "default/x", with("X-Own", "x"), 404, "NotFound", "/v1/namespaces/"},
		"a queue whose name can be none": {token, "No_Queue", with("X-Own", "x"), 404, "NotFound", "/v1/namespaces/"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			back := d.send(d.direct(c.token, c.queue, "chat", c.change))
			g.Expect(back.err).NotTo(HaveOccurred())
			g.Expect(back.status).To(Equal(c.status), back.body)
			g.Expect(back.Error).To(Equal(c.code))
			g.Expect(back.Message).To(ContainSubstring(c.message))
		})
	}
	w.create(w.act(s, "next"))
	s.end("next")
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.began("")).To(Equal([]string{"next"}))
	w.Expect(w.reservations()).To(BeEmpty())
	for _, secret := range []string{token, foreign, powerless} {
		w.Expect(strings.Join(m.log.all(), "\n")).NotTo(ContainSubstring(secret))
	}
	w.idempotent(m)
}

func TestAnUpstreamThatHangsOrIsAwayIsGivenUpAndItsSlotIsFree(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, q *batchv1alpha1.JobQueue)
		status int
		code   string
		calls  []string
	}{
		"it hangs": {
			func(_ *testing.T, q *batchv1alpha1.JobQueue) { q.Spec.Direct.TimeoutSeconds = ptr.To[int32](1) },
			504, "UpstreamTimeout", []string{"chat", "next"},
		},
		"nobody listens": {
			func(t *testing.T, q *batchv1alpha1.JobQueue) {
				q.Spec.Direct.Upstream = "http://" + closedPort(t).address
			},
			502, "UpstreamFailed", []string{"next"},
		},
		"a secret is missing": {
			func(_ *testing.T, q *batchv1alpha1.JobQueue) {
				q.Spec.Direct.Headers = []batchv1alpha1.HTTPHeader{{Name: "X-Key", SecretKeyRef: &batchv1alpha1.SecretKeyRef{Name: "none", Key: "key"}}}
			},
			502, batchv1alpha1.ReasonSecretNotFound, []string{"next"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			w.upstream(s, 1, func(q *batchv1alpha1.JobQueue) { c.change(t, q) })
			d, m := w.opens()
			back := d.send(d.direct(w.client(), "default", "chat"))
			w.Expect(back.err).NotTo(HaveOccurred())
			w.Expect(back.status).To(Equal(c.status), back.body)
			w.Expect(back.Error).To(Equal(c.code))
			w.create(w.act(s, "next"))
			s.end("next")
			w.eventually("next", batchv1alpha1.JobRunCompleted)
			w.Expect(s.began("")).To(Equal(c.calls))
			w.Expect(s.most("")).To(Equal(1))
			w.only(batchv1alpha1.ReservationReleased)
			w.idempotent(m)
		})
	}
}

func TestARequestThatGetsNoSlotInTimeIsToldSoAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.upstream(s, 1, func(q *batchv1alpha1.JobQueue) { q.Spec.Direct.WaitTimeoutSeconds = ptr.To[int32](1) })
	d, m := w.opens()
	w.create(w.act(s, "running"))
	w.Eventually(s.atWork).Should(HaveLen(1))
	back := d.send(d.direct(w.client(), "default", "chat"))
	w.Expect(back.status).To(Equal(http.StatusServiceUnavailable), back.body)
	w.Expect(back.Error).To(Equal("NotGrantedInTime"))
	w.Expect(back.header.Get("Retry-After")).NotTo(BeEmpty())
	w.create(w.act(s, "next"))
	s.end("running", "next")
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.began("")).To(Equal([]string{"running", "next"}))
	w.Expect(w.reservations()[0].Status.GrantedAt).To(BeNil())
	w.idempotent(m)
}

func TestAClientThatNeverSendsWhatItAnnouncedReservesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.upstream(s, 1)
	d, m := w.opens()
	conn, err := (&tls.Dialer{Config: d.http.Transport.(*http.Transport).TLSClientConfig}).DialContext(t.Context(), "tcp", d.address)
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/namespaces/%s/queues/default/direct/chat HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 10\r\n\r\n",
		w.ns, d.address, w.client())
	w.Expect(err).NotTo(HaveOccurred())
	w.create(w.act(s, "next"))
	s.end("next")
	w.eventually("next", batchv1alpha1.JobRunCompleted)

	answers := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(conn) // until the front gives up
		answers <- string(text)
	}()
	w.Eventually(answers).Should(Receive(And(HavePrefix("HTTP/1.1 408 "), ContainSubstring(`"BodyTimeout"`))))
	w.Expect(w.reservations()).To(BeEmpty())
	w.Expect(s.began("")).To(Equal([]string{"next"}))
	w.idempotent(m)
}

func TestAClientThatNeverReadsLosesItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	s.acts["flood"] = func(rw http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 1<<20); ; {
			if _, err := rw.Write(chunk); err != nil {
				return
			}
		}
	}
	w.upstream(s, 1)
	d, m := w.opens()
	response, err := d.http.Do(d.direct(w.client(), "default", "flood"))
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = response.Body.Close() })
	w.create(w.act(s, "next"))
	w.Expect(s.began("")).To(Equal([]string{"flood"}))
	s.end("next")
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.most("")).To(Equal(1))
	w.only(batchv1alpha1.ReservationReleased)
	_, err = io.Copy(io.Discard, response.Body)
	w.Expect(err).To(HaveOccurred(), "it does not look whole")
	w.idempotent(m)
}

func TestAThousandClientsAtOnceAreAllAnsweredAndRunsHaveTheirTurn(t *testing.T) {
	t.Parallel()
	const clients, waiting, inARow = 1000, 30, 7
	w := newWorld(t)
	s := newStage(t)
	w.upstream(s, 1, func(q *batchv1alpha1.JobQueue) {
		q.Spec.Direct.MaxWaiting, q.Spec.Direct.MaxConsecutive = ptr.To[int32](waiting), ptr.To[int32](inARow)
	})
	d, m := w.opens()
	token := w.client()
	w.create(w.act(s, "running"))
	w.Eventually(s.atWork).Should(HaveLen(1))
	w.create(w.act(s, "next"))
	replies := make(chan reply, clients)
	for range clients {
		r := d.direct(token, "default", "chat")
		go func() { replies <- d.send(r) }()
	}
	for range clients - waiting {
		back := d.got(replies)
		w.Expect(back.err).NotTo(HaveOccurred())
		w.Expect(back.status).To(Equal(http.StatusTooManyRequests), back.body)
		w.Expect(back.Error).To(Equal("TooManyWaiting"))
		w.Expect(back.header.Get("Retry-After")).NotTo(BeEmpty())
	}
	w.Eventually(w.reservations).Should(HaveLen(waiting))
	s.endAll()
	for range waiting {
		back := d.got(replies)
		w.Expect(back.err).NotTo(HaveOccurred())
		w.Expect(back.status).To(Equal(http.StatusOK), back.body)
	}
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.began("chat")).To(HaveLen(waiting))
	w.Expect(s.began("")[1+inARow]).To(Equal("next"), "a run has its turn after %d requests", inARow)
	w.Expect(s.most("")).To(Equal(1))
	w.Eventually(w.phases).Should(HaveEach(batchv1alpha1.ReservationReleased))
	w.idempotent(m)
}
