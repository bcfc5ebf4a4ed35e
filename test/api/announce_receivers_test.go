// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	svix "github.com/svix/svix-webhooks/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// receiversAt names receivers by their addresses.
func receiversAt(urls map[string]string, change ...func(*batchv1alpha1.NotificationReceiver)) *batchv1alpha1.Notifications {
	n := &batchv1alpha1.Notifications{}
	for name, url := range urls {
		r := batchv1alpha1.NotificationReceiver{Name: name, URL: url}
		for _, c := range change {
			c(&r)
		}
		n.Receivers = append(n.Receivers, r)
	}
	return n
}

// telling is a change of a queue that names those receivers.
func telling(n *batchv1alpha1.Notifications) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) { q.Spec.Notifications = n }
}

func signedWith(keys ...string) func(*batchv1alpha1.NotificationReceiver) {
	return func(r *batchv1alpha1.NotificationReceiver) {
		for _, key := range keys {
			r.SigningKeys = append(r.SigningKeys, batchv1alpha1.SecretKeyRef{Name: "hook", Key: key})
		}
	}
}

// signingKey is one as a Secret has it.
func signingKey(b byte) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

func (w *world) hook(all map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "hook"}, StringData: all}
}

// announcement returns what a run has on record for a receiver, for Eventually.
func (w *world) announcement(run, receiver string) func() batchv1alpha1.Announcement {
	return func() batchv1alpha1.Announcement {
		all := w.get(run).Status.Announcements
		i := slices.IndexFunc(all, func(a batchv1alpha1.Announcement) bool { return a.Receiver == receiver })
		if i < 0 {
			return batchv1alpha1.Announcement{}
		}
		return all[i]
	}
}

func inState(state batchv1alpha1.AnnouncementState) types.GomegaMatcher {
	return HaveField("State", state)
}

func TestEveryMessageIsACloudEventThatOthersVerifyBySignature(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t)
	w.create(w.hook(map[string]string{"old": signingKey('o'), "new": signingKey('n') + "\n"}))
	w.queue("default", 1, telling(receiversAt(map[string]string{"r": r.URL + "/told"}, signedWith("new", "old"))))
	m := w.start()
	s := newServer(t, map[string]http.HandlerFunc{"/bad": http.NotFound})
	w.create(w.httpRun("bad", s.URL+"/bad", retries(0)), w.httpRun("fine", s.URL))
	w.create(w.group("release", []batchv1alpha1.GroupMember{w.calling("build", s.URL)}))
	for _, name := range []string{"bad", "fine", "release-build"} {
		w.Eventually(w.phase(name)).Should(BeElementOf("Completed", "Failed"))
		w.delivered(name)
	}
	w.Eventually(r.events).Should(ConsistOf("job.run.failed bad", "job.run.permanently_failed bad", "job.run.completed fine",
		"job.run.completed release-build", "job.group.completed release"))
	for _, c := range r.log() {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.Body))
		request.Header = c.Header
		e, err := cehttp.NewEventFromHTTPRequest(request)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(e.Validate()).To(Succeed())
		w.Expect(c.Header.Get("webhook-id")).To(Equal(e.ID()))
		for _, key := range []string{signingKey('o'), signingKey('n')} {
			standard, err := webhooks.NewWebhook(key)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(standard.Verify([]byte(c.Body), c.Header)).To(Succeed())
			other, err := svix.NewWebhook(key)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(other.Verify([]byte(c.Body), c.Header)).To(Succeed())
		}
	}
	for _, line := range m.log.all() {
		w.Expect(line).NotTo(ContainSubstring("whsec_"))
	}
}

func TestAReceiverHearsWhatItAskedForAndThatOfAScheduledJobOfItsRunsAndTheirRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ofQueue, ofSchedule := newReceiver(t), newReceiver(t)
	failures := func(r *batchv1alpha1.NotificationReceiver) {
		r.Events = []batchv1alpha1.EventType{batchv1alpha1.EventRunPermanentlyFailed, batchv1alpha1.EventGroupFailed}
	}
	w.queue("default", 1, telling(receiversAt(map[string]string{"r": ofQueue.URL + "/told"}, failures)))
	s := newServer(t, map[string]http.HandlerFunc{"/bad": http.NotFound})
	w.create(w.schedule("nightly", s.URL+"/bad", func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.RunTemplate.RetryPolicy = w.httpRun("", s.URL).Spec.RetryPolicy
		sj.Spec.Notifications = receiversAt(map[string]string{"r": ofSchedule.URL + "/told"})
	}))
	w.create(w.schedule("release", "", runsAt(time.Now()), func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.RunTemplate = nil
		sj.Spec.GroupTemplate = &batchv1alpha1.JobGroupTemplateSpec{Members: []batchv1alpha1.GroupMember{w.calling("build", s.URL)}}
		sj.Spec.Notifications = receiversAt(map[string]string{"r": ofSchedule.URL + "/told"})
	}))
	m := w.start()
	scheduled := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "tonight"}}
	scheduled.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
	w.create(scheduled, w.httpRun("other", s.URL+"/bad", retries(0)))
	w.eventually("tonight-r1", batchv1alpha1.JobRunFailed)
	byHand := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "by-hand"}}
	byHand.Spec.RetryOf = "tonight-r1"
	w.create(byHand)
	for _, name := range []string{"tonight", "tonight-r1", "by-hand", "other"} {
		w.Eventually(w.phase(name)).Should(Equal("Failed"))
		w.delivered(name)
	}
	w.Expect(ofSchedule.events()).To(ContainElements(
		"job.run.failed tonight", "job.run.failed tonight-r1", "job.run.permanently_failed tonight-r1", "job.run.failed by-hand"))
	w.Eventually(ofSchedule.events).Should(ContainElement(HavePrefix("job.group.completed release-")))
	w.Expect(ofSchedule.events()).NotTo(ContainElement(Or(ContainSubstring("other"), HavePrefix("job.run.completed"))))
	w.Expect(ofQueue.events()).To(ContainElements("job.run.permanently_failed tonight-r1", "job.run.permanently_failed other"))
	w.Expect(ofQueue.events()).To(HaveEach(HavePrefix("job.run.permanently_failed ")))
	w.idempotent(m)
}

func TestWhatCannotBeSignedWaitsForTheSecretAndSaysSoOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t)
	w.queue("default", 1, telling(receiversAt(map[string]string{"r": r.URL + "/told"}, signedWith("key"))))
	m := w.start()
	w.create(w.httpRun("fine", newServer(t, nil).URL))
	const missing = `not sent, since it could not be signed: secret "hook" does not exist`
	w.Eventually(w.announcement("fine", "r")).Should(And(inState(batchv1alpha1.AnnouncementOwed), HaveField("Message", missing)))
	w.Eventually(w.eventsOf("fine", "AnnouncementNotSigned")).Should(ConsistOf(ContainSubstring(missing)))
	m.stop()
	w.Expect(r.log()).To(BeEmpty())

	w.create(w.hook(map[string]string{"key": signingKey('k')}))
	w.start()
	w.delivered("fine")
	verifier, err := svix.NewWebhook(signingKey('k'))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(verifier.Verify([]byte(r.log()[0].Body), r.log()[0].Header)).To(Succeed())
	w.Expect(w.eventsOf("fine", "AnnouncementNotSigned")()).To(HaveLen(1))
}

func TestWhatWasGivenUpIsSentAgainWhenAPersonAsksAlsoWhileNoManagerRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t)
	w.queue("default", 1, telling(receiversAt(map[string]string{"gone": r.URL + "/gone", "r": r.URL + "/told"})))
	r.answers["/gone"] = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusGone) }
	m := w.start()
	run := w.httpRun("fine", newServer(t, nil).URL)
	w.create(run)
	w.Eventually(w.announcement("fine", "gone")).Should(And(inState(batchv1alpha1.AnnouncementAbandoned), HaveField("Attempts", int32(1)),
		HaveField("Message", HavePrefix("the receiver wants no more: "))))
	w.Eventually(w.eventsOf("fine", "AnnouncementAbandoned")).Should(ConsistOf(ContainSubstring(batchv1alpha1.AnnotationResend)))
	w.Eventually(w.announcement("fine", "r")).Should(inState(batchv1alpha1.AnnouncementDelivered))
	m.stop()
	w.patch(run, func() { run.Annotations = map[string]string{batchv1alpha1.AnnotationResend: "1"} })
	m = w.start()
	w.Eventually(w.announcement("fine", "gone")).Should(And(inState(batchv1alpha1.AnnouncementAbandoned), HaveField("Resend", "1")))
	w.Expect(r.events()).To(HaveLen(3), "what was delivered is not sent again")
	w.idempotent(m)
	w.Expect(r.events()).To(HaveLen(3), "each value is acted upon once")
}

func TestABadReceiverIsToldOfByWhatIsWrongWithItAndDelaysNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t)
	hanging, _ := block(t)
	bad := newServer(t, map[string]http.HandlerFunc{
		"/redirects": http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusFound).ServeHTTP,
		"/hangs":     hanging,
		"/busy": func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "1800")
			rw.WriteHeader(http.StatusServiceUnavailable)
		},
	})
	w.queue("default", 1, telling(receiversAt(map[string]string{
		"r": r.URL + "/told", "redirects": bad.URL + "/redirects", "hangs": bad.URL + "/hangs", "busy": bad.URL + "/busy",
		"metadata": "http://169.254.169.254/latest/meta-data/", "nobody": "http://no-such-host.invalid/",
	})))
	w.start()
	w.create(w.httpRun("fine", newServer(t, nil).URL))
	w.Eventually(w.announcement("fine", "r")).Should(inState(batchv1alpha1.AnnouncementDelivered))
	for receiver, problem := range map[string]string{
		"redirects": "answered 302 Found; redirects are not followed",
		"metadata":  "169.254.169.254 is a link-local address",
		"nobody":    "no-such-host.invalid",
		"busy":      "answered 503 Service Unavailable",
	} {
		w.Eventually(w.announcement("fine", receiver)).Should(And(inState(batchv1alpha1.AnnouncementOwed), HaveField("Message", ContainSubstring(problem))), receiver)
	}
	left := w.announcement("fine", "busy")().NextAttemptAt.Sub(w.get("fine").Status.FinishedAt.Time)
	w.Expect(left.Minutes()).To(BeNumerically(">=", 30), "it is left alone for as long as it asks")
	w.Expect(w.announcement("fine", "hangs")()).To(inState(batchv1alpha1.AnnouncementOwed))
}

func TestAReceiverThatAsksForAnUnknownEventIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unknown := func(r *batchv1alpha1.NotificationReceiver) { r.Events = []batchv1alpha1.EventType{"job.run.exploded"} }
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "loud"}}
	q.Spec.Notifications = receiversAt(map[string]string{"r": "https://hook.example/"}, unknown)
	err := w.Create(w.ctx, q, client.DryRunAll)
	w.Expect(err).To(MatchError(And(ContainSubstring(`spec.notifications.receivers[0].events[0]: Unsupported value: "job.run.exploded"`), ContainSubstring("job.run.permanently_failed"))))
}
