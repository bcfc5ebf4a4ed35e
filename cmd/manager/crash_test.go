// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAfterSIGKILLTheNextManagerRecoversTheRunAndItsRetryCarriesTheSameKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ env, args []string }{
		"a manager that is alone": {nil, []string{"--leader-elect=false"}},
		"a container that is started again in its pod": {
			[]string{"POD_NAME=reprise-manager-0", "POD_NAMESPACE=none", "POD_UID=5c5b6ed8-6d2a-4b0e-9c0f-6c1f3c1d4a10"},
			[]string{"--leader-elect", "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newServer(t)
			first := w.leads(w.runAs(plane.Kubeconfig(), c.env, c.args...))
			w.create(w.httpRun("victim", s.URL+"/slow"), w.httpRun("next", s.URL))
			w.Eventually(s.log).Should(HaveLen(1))
			first.kill()
			w.Expect(w.get("victim").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning), "nobody has said otherwise")

			s.release()
			second := w.leads(w.runAs(plane.Kubeconfig(), c.env, c.args...))
			r := w.eventually("victim", batchv1alpha1.JobRunFailed)
			w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
			w.Expect(r.Status.Message).To(Equal("Scheduler crash recovery: run was Running when previous instance " + r.Status.Incarnation.ID + " stopped"))
			w.eventually("victim-r1", batchv1alpha1.JobRunCompleted)
			w.eventually("next", batchv1alpha1.JobRunCompleted)
			w.Eventually(func() []map[string]any { return second.said("scheduler_startup_cleanup") }).
				Should(ConsistOf(HaveKeyWithValue("running_failed", BeEquivalentTo(1))))

			key := string(r.UID)
			w.Expect(s.log()).To(ContainElements(call{"victim", key, "0"}, call{"victim-r1", key, "1"}))
			w.Expect(s.log()).To(HaveLen(3))
		})
	}
}

func TestASecondManagerStandsByAndTakesOverSoonAfterSIGTERMOfTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t)
	first := w.leads(w.run("--leader-elect"))
	second := w.ready(w.run("--leader-elect"))
	w.create(w.httpRun("before", s.URL))
	w.eventually("before", batchv1alpha1.JobRunCompleted)
	w.Expect(second.said("leading")).To(BeEmpty(), "one leads")
	leader := w.holder()

	code, _ := first.terminate()
	w.Expect(code).To(BeZero())
	released := time.Now()
	w.leads(second)
	w.Expect(time.Since(released)).To(BeNumerically("<", 10*time.Second), "it does not wait for the end of the lease of 15 s")
	w.Expect(w.holder()).NotTo(Or(BeEmpty(), Equal(leader)))
	w.create(w.httpRun("after", s.URL))
	w.eventually("after", batchv1alpha1.JobRunCompleted)
	w.Expect(s.log()).To(HaveLen(2))
}
