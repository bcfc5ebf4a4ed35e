// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// The API server carries a write out, and its answer never arrives.

func TestAWriteWhoseAnswerIsLostIsNotDoneTwice(t *testing.T) {
	for name, match := range map[string]func(request) bool{
		"the claim of a run":  claimOf("call"),
		"the swap of intents": swapOf("default"),
		"the making of the ledger": func(r request) bool {
			return r.method == http.MethodPost && strings.HasSuffix(r.path, "/queueledgers")
		},
		"the creation of a Job": creationOfJob,
		"the outcome of a run": func(r request) bool {
			return r.method == http.MethodPut && strings.HasSuffix(r.path, "/jobruns/call/status") && strings.Contains(r.body, `"phase":"Failed"`)
		},
		"the creation of a retry": func(r request) bool {
			return r.method == http.MethodPost && strings.HasSuffix(r.path, "/jobruns")
		},
		"the record of a retry": func(r request) bool {
			return r.method == http.MethodPut && strings.HasSuffix(r.path, "/jobruns/call/status") && strings.Contains(r.body, `"retry":{`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsAtFirst})
			w.queue("default", 1)
			x := newWire(t)
			lost := x.lose(match)
			m := w.startOn(x.config())
			w.create(w.httpRun("call", s.URL+"/flaky"), w.jobRun("job", exits("0")), w.httpRun("last", s.URL))
			w.Expect(w.answered(lost)).To(BeNumerically("<", 300))
			for _, name := range []string{"call", "job", "last"} {
				w.settled(name, batchv1alpha1.ConditionComplete)
			}
			w.Expect(s.runs()).To(ConsistOf("call", "call-r1", "last"))
			w.Expect(w.lives()).To(Equal([]string{"Started job", "Ended job"}))
			w.Expect(s.most.Load()).To(BeEquivalentTo(1))
			w.idempotent(m)
		})
	}
}

// failsAtFirst refuses the first attempt of a run.
func failsAtFirst(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Reprise-Attempt") == "0" {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(rw, "done")
}

// answered waits until a trap has caught a request and returns the status code of its answer.
func (w *world) answered(p *trap) int {
	w.t.Helper()
	var code int
	w.Eventually(p.code).Should(Receive(&code))
	return code
}

func TestAGrantWhoseAnswerIsLostIsAGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 1)
	x := newWire(t)
	lost := x.lose(claimOf("dr"))
	m := w.startOn(x.config())
	w.create(w.reserve("dr"))
	w.Expect(w.answered(lost)).To(Equal(http.StatusOK))
	dr := w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.create(w.httpRun("waiting", s.URL))
	w.settle()
	w.Expect(w.readReservation("dr").Status.GrantedAt).To(Equal(dr.Status.GrantedAt))
	w.Expect(s.log()).To(BeEmpty())
	w.release("dr")
	w.eventually("waiting", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
}

// firstOfEach matches the first write of every kind: each verb, at each collection, object or status.
func firstOfEach() func(request) bool {
	seen := map[string]bool{}
	return func(r request) bool {
		key := r.method + " " + r.path
		if r.method == http.MethodGet || strings.Contains(r.path, "/leases") || seen[key] {
			return false
		}
		seen[key] = true
		return true
	}
}

func TestEverythingIsDoneOnceThoughTheFirstAnswerToEachKindOfWriteIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsAtFirst})
	w.queue("default", 2)
	x := newWire(t)
	x.loseAll(firstOfEach())
	m := w.startOn(x.config())
	at := metav1.Now().Rfc3339Copy()
	w.create(w.schedule("once", s.URL, func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.RunAt = &at }))
	const runs = 4
	for i := range runs {
		w.create(w.httpRun(fmt.Sprintf("call-%d", i), s.URL+"/flaky"), w.jobRun(fmt.Sprintf("job-%d", i), exits("0")))
	}
	var calls, pods []string
	for i := range runs {
		call, job := fmt.Sprintf("call-%d", i), fmt.Sprintf("job-%d", i)
		w.settled(call, batchv1alpha1.ConditionComplete)
		w.settled(job, batchv1alpha1.ConditionComplete)
		calls = append(calls, call, call+"-r1")
		pods = append(pods, "Started "+job, "Ended "+job)
	}
	w.Eventually(func() []string {
		var names []string
		for _, tick := range w.ticks("once") {
			names = append(names, fmt.Sprintf("once-%d", tick.Unix()))
		}
		return names
	}).Should(Equal([]string{fmt.Sprintf("once-%d", at.Unix())}))
	w.Expect(s.runs()).To(ConsistOf(append(calls, fmt.Sprintf("once-%d", at.Unix()))))
	w.Expect(w.lives()).To(ConsistOf(pods))
	w.Expect(s.most.Load()).To(BeNumerically("<=", 2))
	list := &batchv1alpha1.JobRunList{}
	w.Expect(w.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	w.Expect(list.Items).To(HaveLen(3*runs + 1))
	w.idempotent(m)
}
