// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// receiver is told of the ends of runs. It refuses everything while it is down.
type receiver struct {
	*server
	down atomic.Bool
}

// event is what the tests look at of an announcement.
type event struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Subject string `json:"subject"`
	Data    struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"data"`
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.server = newServer(t, map[string]http.HandlerFunc{"/told": func(rw http.ResponseWriter, _ *http.Request) {
		if r.down.Load() {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	}})
	return r
}

// of is the queue whose receiver this is.
func (r *receiver) of(q *batchv1alpha1.JobQueue) {
	q.Spec.Notifications = &batchv1alpha1.Notifications{Receivers: []batchv1alpha1.NotificationReceiver{{Name: "r", URL: r.URL + "/told"}}}
}

// events returns what was received, whether acknowledged or not, as "<type> <run>".
func (r *receiver) events() []string {
	var all []string
	for _, e := range r.received() {
		all = append(all, e.Type+" "+e.Subject)
	}
	return all
}

func (r *receiver) received() []event {
	var all []event
	for _, c := range r.log() {
		var e event
		if err := json.Unmarshal([]byte(c.Body), &e); err != nil {
			e.Type = err.Error()
		}
		all = append(all, e)
	}
	return all
}

// delivered waits until nothing is owed about a run any more.
func (w *world) delivered(name string) {
	w.t.Helper()
	w.Eventually(func() []batchv1alpha1.Announcement { return w.get(name).Status.Announcements }).Should(And(
		Not(BeEmpty()), HaveEach(HaveField("State", batchv1alpha1.AnnouncementDelivered))), name)
}

func TestEveryEndOfARunIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t)
	s := newServer(t, map[string]http.HandlerFunc{
		"/bad":  func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) },
		"/idle": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotModified) },
	})
	w.queue("default", 3, r.of)
	m := w.start()
	gone := w.httpRun("cancelled", s.URL, toCancel)
	w.create(w.httpRun("fine", s.URL), w.httpRun("bad", s.URL+"/bad"), gone, w.httpRun("idle", s.URL+"/idle", func(r *batchv1alpha1.JobRun) {
		r.Spec.Work.HTTP.SkipStatusCodes = []int32{http.StatusNotModified}
	}))
	for _, name := range []string{"fine", "bad", "bad-r1", "cancelled", "idle"} {
		w.Eventually(w.phase(name)).Should(BeElementOf("Completed", "Failed", "Cancelled", "Skipped"))
		w.delivered(name)
	}
	want := []string{
		"job.run.completed fine", "job.run.failed bad", "job.run.failed bad-r1", "job.run.permanently_failed bad-r1",
		"job.run.cancelled cancelled", "job.run.skipped idle",
	}
	w.Expect(r.events()).To(ConsistOf(want))
	w.idempotent(m)
	w.Expect(r.events()).To(ConsistOf(want))
}

func toCancel(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true }

func TestRecoveredRunsAreAnnouncedTooAndWhatIsOwedOutlivesTheManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t)
	r.down.Store(true)
	w.queue("default", 2, r.of)
	s := newServer(t, nil)
	w.claimed(w.httpRun("orphan", s.URL, retries(0)))
	w.workEnded(w.jobRun("ended", exits("0")))
	w.begunToCancel(w.claimed(w.httpRun("cancelling", s.URL)))

	first := w.start()
	for _, name := range []string{"orphan", "ended", "cancelling"} {
		w.Eventually(func() []batchv1alpha1.Announcement { return w.get(name).Status.Announcements }).Should(And(
			Not(BeEmpty()), HaveEach(And(HaveField("State", batchv1alpha1.AnnouncementOwed), HaveField("Attempts", BeNumerically(">", 0))))), name)
	}
	first.stop()
	refused := len(r.log())
	r.down.Store(false)

	m := w.start()
	for _, name := range []string{"orphan", "ended", "cancelling"} {
		w.delivered(name)
	}
	w.Expect(r.events()[refused:]).To(ConsistOf(
		"job.run.failed orphan", "job.run.permanently_failed orphan", "job.run.completed ended",
		"job.run.failed cancelling", "job.run.permanently_failed cancelling"))
	ids := map[string]bool{}
	for _, e := range r.received() {
		ids[e.ID] = true
		if e.Subject == "orphan" {
			w.Expect(e.Data.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
			w.Expect(e.Data.Message).To(Equal(wasRunning))
		}
	}
	w.Expect(ids).To(HaveLen(5), "a repetition has the id of what it repeats")
	w.Expect(ids).To(HaveKey(string(w.get("orphan").UID) + "/permanently_failed"))
	w.idempotent(m)
}
