// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

// Direct access over HTTP with the whole manager. The stage is the upstream and what the runs call, so its log tells the order.

// add keeps a line.
func (l *logs) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// kept returns all that the namespace holds, Events included, as text.
func (w *world) kept() string {
	w.t.Helper()
	config := plane.Config()
	config.WarningHandler = rest.NoWarnings{} // some of the kinds are deprecated
	c, err := dynamic.NewForConfig(config)
	w.Expect(err).NotTo(HaveOccurred())
	kinds, err := resources()
	w.Expect(err).NotTo(HaveOccurred())
	events := []schema.GroupVersionResource{{Version: "v1", Resource: "events"}, {Group: "events.k8s.io", Version: "v1", Resource: "events"}}
	var all strings.Builder
	for _, kind := range append(events, kinds...) {
		list, err := c.Resource(kind).Namespace(w.ns).List(w.ctx, metav1.ListOptions{})
		w.Expect(err).NotTo(HaveOccurred())
		text, err := list.MarshalJSON()
		w.Expect(err).NotTo(HaveOccurred())
		all.Write(text)
	}
	return all.String()
}

func TestADirectRequestIsServedBetweenTheRunningRunAndTheRestOfTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.upstream(s, 1)
	said := &logs{}
	d, _ := w.opens(func(o *operator.Options) { o.Log = funcr.NewJSON(said.add, funcr.Options{Verbosity: 9}) })
	user, token := w.user(audience, "directreservations")
	w.create(w.act(s, "running"))
	w.Eventually(s.atWork).Should(Equal([]string{"running"}))
	w.create(w.act(s, "second"), w.act(s, "third"))
	answer := d.sent(d.direct(token, "default", "api/chat?q=secret-query", with("X-Own", "secret-header")))
	w.only(batchv1alpha1.ReservationActive)
	w.Expect(s.atWork()).To(Equal([]string{"running"}))

	s.end("running")
	w.Eventually(s.atWork).Should(Equal([]string{"chat"}))
	dr := w.only(batchv1alpha1.ReservationGranted)
	w.Expect(dr.Spec.HolderIdentity).To(Equal(user))
	s.end("chat")
	back := d.got(answer)
	w.Expect(back.err).NotTo(HaveOccurred())
	w.Expect(back.status).To(Equal(http.StatusOK))
	w.Expect(back.body).To(Equal("done"))
	w.Expect(back.header.Get("Reprise-Reservation")).To(Equal(dr.Name))
	s.end("second", "third")
	w.eventually("third", batchv1alpha1.JobRunCompleted)
	w.only(batchv1alpha1.ReservationReleased)
	w.Expect(s.began("")).To(Equal([]string{"running", "chat", "second", "third"}))
	w.Expect(s.most("")).To(Equal(1))

	runs := &batchv1alpha1.JobRunList{}
	w.Expect(w.List(w.ctx, runs, client.InNamespace(w.ns))).To(Succeed())
	w.Expect(runs.Items).To(HaveLen(3), "there is no run for the request")
	w.Eventually(func() []map[string]any { return said.with("request") }).Should(ContainElement(And(
		HaveKeyWithValue("user", user), HaveKeyWithValue("queue", "default"), HaveKeyWithValue("reservation", dr.Name), HaveKeyWithValue("status", BeEquivalentTo(200)))))
	everything := strings.Join(said.all(), "\n") + w.kept()
	w.Expect(strings.Count(everything, dr.Name)).To(BeNumerically(">=", 2))
	for _, secret := range []string{token, token[strings.LastIndex(token, ".")+1:], "secret-query", "secret-header"} {
		w.Expect(everything).NotTo(ContainSubstring(secret))
	}
}

func TestADirectRequestCanAskForATypeAndClaimsOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.upstream(s, 1, bounding(sharing()), func(q *batchv1alpha1.JobQueue) {
		q.Spec.Direct.Type, q.Spec.Direct.Claims = needsOf("story-ollama")
	})
	d, m := w.opens()
	token := w.client()
	first := d.sent(d.direct(token, "default", "story-ollama-chat"))
	w.Eventually(s.atWork).Should(Equal([]string{"story-ollama-chat"}))
	second := d.sent(d.direct(token, "default", "research-remote-chat", with("Reprise-Type", "research"), with("Reprise-Claims", "remote=2")))
	w.Eventually(s.atWork).Should(Equal([]string{"research-remote-chat", "story-ollama-chat"}))
	w.create(w.act(s, "ollama-1"), w.act(s, "remote-2"), w.act(s, "story-3"), w.act(s, "plain-4"))
	w.Eventually(s.atWork).Should(HaveLen(3))
	w.shows(w.readQueue("default"), 3, 1, 2)
	w.Expect(s.atWork()).To(Equal([]string{"plain-4", "research-remote-chat", "story-ollama-chat"}))
	s.end("research-remote-chat")
	w.Eventually(s.atWork).Should(Equal([]string{"plain-4", "remote-2", "story-ollama-chat"}))
	s.endAll()
	for _, answer := range []<-chan reply{first, second} {
		w.Expect(d.got(answer).status).To(Equal(http.StatusOK))
	}
	for _, name := range []string{"ollama-1", "remote-2", "story-3", "plain-4"} {
		w.eventually(name, batchv1alpha1.JobRunCompleted)
	}
	w.idempotent(m)
}

func TestEventsOfAServerArriveAsTheyAreSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	goOn := make(chan struct{})
	s.acts["chat"] = func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{"one", "two", "three"} {
			_, _ = io.WriteString(rw, "data: "+event+"\n\n")
			rw.(http.Flusher).Flush()
			select {
			case <-goOn:
			case <-r.Context().Done():
				return
			}
		}
	}
	w.upstream(s, 1)
	d, m := w.opens()
	response, err := d.http.Do(d.direct(w.client(), "default", "chat"))
	w.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	w.Expect(response.Header.Get("Content-Type")).To(Equal("text/event-stream"))
	lines := bufio.NewReader(response.Body)
	for _, event := range []string{"one", "two", "three"} { // the server sends the next one only when this has come
		line, err := lines.ReadString('\n')
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(line).To(Equal("data: " + event + "\n"))
		_, err = lines.ReadString('\n')
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.only(batchv1alpha1.ReservationGranted).Status.Phase).To(Equal(batchv1alpha1.ReservationGranted))
		goOn <- struct{}{}
	}
	rest, err := io.ReadAll(lines)
	w.Expect(err).NotTo(HaveOccurred(), "it is whole")
	w.Expect(rest).To(BeEmpty())
	w.only(batchv1alpha1.ReservationReleased)
	w.idempotent(m)
}

func TestAClientThatGoesAwayGivesItsPlaceOrItsSlotToTheNextAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.upstream(s, 1)
	d, m := w.opens()
	token := w.client()
	ctx, leave := context.WithCancel(t.Context())
	chat := d.sent(d.direct(token, "default", "chat", until(ctx)))
	w.Eventually(s.atWork).Should(Equal([]string{"chat"}))
	waits, giveUp := context.WithCancel(t.Context())
	other := d.sent(d.direct(token, "default", "other", until(waits)))
	w.Eventually(w.phases).Should(ContainElement(batchv1alpha1.ReservationActive))
	w.create(w.act(s, "next"))
	giveUp()
	w.Expect(d.got(other).err).To(MatchError(context.Canceled))
	w.Eventually(w.phases).Should(ContainElement(batchv1alpha1.ReservationReleased))
	w.Expect(s.began("")).To(Equal([]string{"chat"}))

	leave()
	w.Expect(d.got(chat).err).To(MatchError(context.Canceled))
	w.Eventually(s.atWork).Should(Equal([]string{"next"}))
	s.end("next")
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(w.phases()).To(HaveEach(batchv1alpha1.ReservationReleased), "no lease had to run out")
	w.Expect(s.began("")).To(Equal([]string{"chat", "next"}))
	w.Expect(s.most("")).To(Equal(1), "the call had ended")
	w.idempotent(m)
}

func TestTheSameKeyIsPassedOnOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.upstream(s, 2)
	d, m := w.opens()
	ask := func(token string) *http.Request {
		return d.direct(token, "default", "chat", with("Idempotency-Key", "once"))
	}
	ada, bob := w.client(), w.client()
	first := d.sent(ask(ada))
	w.Eventually(s.atWork).Should(HaveLen(1))
	dr := w.only(batchv1alpha1.ReservationGranted)
	again := d.send(ask(ada))
	w.Expect(again.status).To(Equal(http.StatusConflict))
	w.Expect(again.Error).To(Equal("InProgress"))
	w.Expect(again.Reservation).To(Equal(dr.Name))
	w.Expect(again.header.Get("Retry-After")).NotTo(BeEmpty())
	s.end("chat")
	w.Expect(d.got(first).status).To(Equal(http.StatusOK))
	w.only(batchv1alpha1.ReservationReleased)
	served := d.send(ask(ada))
	w.Expect(served.status).To(Equal(http.StatusConflict))
	w.Expect(served.Error).To(Equal("AlreadyServed"))
	w.Expect(s.began("")).To(HaveLen(1))

	other := d.sent(ask(bob))
	s.end("chat")
	w.Expect(d.got(other).status).To(Equal(http.StatusOK), "the key of somebody else is another")
	w.Eventually(w.phases).Should(And(HaveLen(2), HaveEach(batchv1alpha1.ReservationReleased)))
	w.idempotent(m)
}

func TestARunIsRetriedByHandOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	d, m := w.opens()
	token := w.client()
	user, powerless := w.user(audience, "directreservations")
	retry := func(token, run string) reply {
		return d.send(d.request(token, http.MethodPost, "/v1/namespaces/"+w.ns+"/jobruns/"+run+"/retry"))
	}
	w.create(w.act(s, "failed", retries(0)), w.act(s, "waiting", backOff(3600)))
	for _, name := range []string{"failed", "waiting"} {
		s.answer(name, http.StatusTeapot)
		w.eventually(name, batchv1alpha1.JobRunFailed)
	}
	w.settled("failed", batchv1alpha1.ConditionFailed)
	w.eventually("waiting-r1", batchv1alpha1.JobRunQueued)
	for name, c := range map[string]struct {
		token, run    string
		status        int
		code, message string
	}{
		"an unknown run":      {token, "nowhere", 404, "RunNotFound", `there is no run "nowhere"`},
		"a retry that waits":  {token, "waiting", 409, batchv1alpha1.ReasonRetryRefused, "waiting-r1"},
		"without the right":   {powerless, "failed", 403, "Forbidden", user},
		"an unknown client":   {"nonsense", "failed", 401, "Unauthorized", "audience"},
		"a client without ID": {"", "failed", 401, "Unauthorized", "Authorization"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			back := retry(c.token, c.run)
			g.Expect(back.status).To(Equal(c.status), back.body)
			g.Expect(back.Error).To(Equal(c.code))
			g.Expect(back.Message).To(ContainSubstring(c.message))
		})
	}
	w.Expect(s.began("")).To(Equal([]string{"failed", "waiting"}))

	back := retry(token, "failed")
	w.Expect(back.status).To(Equal(http.StatusCreated), back.body)
	name := back.field("name")
	s.end(name)
	again := w.eventually(name, batchv1alpha1.JobRunCompleted)
	w.Expect(again.Spec.RetryOf).To(Equal("failed"))
	w.settled("failed", batchv1alpha1.ConditionComplete)
	w.Expect(retry(token, name).status).To(Equal(http.StatusConflict), "only what has failed can be retried")
	w.Expect(w.reservations()).To(BeEmpty())
	w.idempotent(m)
}
