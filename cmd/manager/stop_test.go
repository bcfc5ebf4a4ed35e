// SPDX-License-Identifier: Apache-2.0

package main

import (
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// stopBound is what a manager may need beside its drain timeout: to record outcomes, and to end its controllers.
const stopBound = 15 * time.Second

func TestSIGTERMLetsACallEndRecordsItAndReleasesTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t)
	p := w.leads(w.run("--leader-elect"))
	w.Expect(w.holder()).NotTo(BeEmpty())
	w.create(w.httpRun("slow", s.URL+"/slow"), w.httpRun("next", s.URL))
	w.Eventually(s.log).Should(HaveLen(1))
	begun := time.Now()
	p.signal(syscall.SIGTERM)
	w.Eventually(func() []map[string]any { return p.said("ending: nothing more is admitted, draining calls") }).
		Should(ConsistOf(HaveKeyWithValue("calls", BeEquivalentTo(1))))
	w.Expect(w.holder()).NotTo(BeEmpty(), "nobody else leads while a call goes on")
	s.release()
	w.Expect(p.exitCode()).To(BeZero())
	w.Expect(time.Since(begun)).To(BeNumerically("<", stopBound))
	w.Expect(w.get("slow").Status.Phase).To(Equal(batchv1alpha1.JobRunCompleted), "what was drained is on record")
	w.Expect(w.get("next").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued), "nothing more was admitted")
	w.Expect(w.holder()).To(BeEmpty())
	w.Expect(s.log()).To(HaveLen(1))
	w.Expect(p.said("ended")).To(HaveLen(1))
	for _, line := range p.lines() {
		w.Expect(line).To(And(HaveKey("level"), HaveKey("ts"), HaveKey("msg")))
		// The library may call the release of the lease its loss.
		w.Expect(line).To(Or(Not(HaveKeyWithValue("level", "error")), HaveKeyWithValue("error", "leader election lost")), "a good end is no error")
	}
}

func TestSIGTERMAbortsACallThatDoesNotEndInTimeAndRecordsThat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t)
	p := w.run("--leader-elect=false", "--drain-timeout=1s")
	w.create(w.httpRun("slow", s.URL+"/slow"))
	w.Eventually(s.log).Should(HaveLen(1))
	code, took := p.terminate()
	w.Expect(code).To(BeZero())
	w.Expect(took).To(And(BeNumerically(">=", time.Second), BeNumerically("<", time.Second+stopBound)))
	r := w.get("slow")
	w.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonManagerShutdown))
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))

	s.release()
	w.run("--leader-elect=false")
	w.eventually("slow-r1", batchv1alpha1.JobRunCompleted)
}

func TestSIGTERMEndsAManagerThatOnlyStandsByOrHasNothingToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.leads(w.run("--leader-elect"))
	second := w.ready(w.run("--leader-elect"))
	for _, p := range []*process{second, first} {
		code, took := p.terminate()
		w.Expect(code).To(BeZero())
		w.Expect(took).To(BeNumerically("<", stopBound))
	}
	w.Expect(second.said("leading")).To(BeEmpty())
}
