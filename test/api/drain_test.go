// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

// What a manager does that is asked to end, as SIGTERM asks it.

func drainsFor(d time.Duration) func(*operator.Options) {
	return func(o *operator.Options) { o.DrainTimeout = d }
}

func TestACallThatEndsWithinTheDrainTimeoutIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, release := busy(t)
	w.queue("default", 1)
	m := w.start(drainsFor(patience))
	w.create(w.httpRun("a", s.URL+"/hold"), w.httpRun("b", s.URL))
	w.Eventually(s.runs).Should(Equal([]string{"a"}))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		m.stop()
	}()
	w.Eventually(func() int { return len(m.log.with("draining calls")) }).Should(Equal(1))
	release()
	w.Eventually(stopped).Should(BeClosed())
	r := w.get("a")
	w.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunCompleted))
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	w.Expect(w.get("b").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued), "a manager that ends admits nothing")

	m = w.start()
	w.Expect(w.summary(m)).To(counts(0, 0, 0, 0))
	w.eventually("b", batchv1alpha1.JobRunCompleted)
	w.Expect(s.runs()).To(Equal([]string{"a", "b"}))
	w.idempotent(m)
}

func TestACallThatOutlastsTheDrainTimeoutIsAbortedAndMadeAgainByTheNextManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, release := busy(t)
	w.queue("default", 1)
	m := w.start(drainsFor(200 * time.Millisecond))
	w.create(w.httpRun("a", s.URL+"/hold"))
	w.Eventually(s.runs).Should(Equal([]string{"a"}))
	m.stop()
	r := w.get("a")
	w.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonManagerShutdown))
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	w.Eventually(s.now.Load).Should(BeZero())

	release()
	m = w.start()
	w.Expect(w.summary(m)).To(counts(0, 0, 0, 0))
	w.settled("a", batchv1alpha1.ConditionComplete)
	calls := s.log()
	w.Expect(s.runs()).To(Equal([]string{"a", "a-r1"}))
	w.Expect(calls[0].Key).To(Equal(calls[1].Key))
	w.idempotent(m)
}

func TestAManagerThatEndsLeavesPodsAtWorkAndTheNextOneTakesThemOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.start()
	w.create(w.jobRun("a", adopting))
	r := w.eventually("a", batchv1alpha1.JobRunRunning)
	w.podOf(r)
	m.stop()
	w.Expect(w.get("a").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	m = w.start()
	w.Expect(w.summary(m)).To(counts(0, 0, 1, 0))
	w.endPod(r, 0)
	w.eventually("a", batchv1alpha1.JobRunCompleted)
	w.Expect(w.lives()).To(Equal([]string{"Started a", "Ended a"}))
	w.idempotent(m)
}

func TestALeaderThatEndsHandsTheLeaseOverAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	patiently := func(o *operator.Options) {
		o.LeaderElect = true
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = time.Hour, 30*time.Minute, 100*time.Millisecond
	}
	first := w.start(patiently)
	w.create(w.httpRun("a", s.URL))
	w.eventually("a", batchv1alpha1.JobRunCompleted)
	second := w.start(patiently)
	first.stop()
	w.create(w.httpRun("b", s.URL))
	w.Expect(w.eventually("b", batchv1alpha1.JobRunCompleted).Status.Incarnation.ID).To(Equal(second.id))
	w.Expect(w.get("a").Status.Incarnation.ID).To(Equal(first.id))
	w.Expect(w.epochOf(second).Compare(w.epochOf(first))).To(BeNumerically(">", 0))
	w.idempotent(second)
}

// deaf lets no list or watch of runs through.
type deaf struct {
	http.RoundTripper
	asked chan struct{} // closed when there was one
	once  *sync.Once
}

// RoundTrip waits until the caller gives up.
func (d deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/jobruns") {
		return d.RoundTripper.RoundTrip(r)
	}
	d.once.Do(func() { close(d.asked) })
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAManagerThatIsAskedToEndWhileItsCachesFillEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, once := make(chan struct{}), &sync.Once{}
	config := plane.Config()
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return deaf{base, asked, once} })
	m := w.startOn(config)
	w.Eventually(asked).Should(BeClosed())
	m.stop() // waits for the end
}
