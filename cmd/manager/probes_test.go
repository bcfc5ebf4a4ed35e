// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// It runs alone: it measures time.
func TestTheProbesAnswerWithinFiveSecondsOfTheStartWhateverWaits(t *testing.T) {
	const backlog, writers = 5000, 32
	w := newWorld(t)
	s := newServer(t)
	held := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "held"}}
	held.Spec.Suspend = true
	w.create(held)
	var group errgroup.Group
	group.SetLimit(writers)
	for i := range backlog {
		group.Go(func() error {
			r := w.httpRun(fmt.Sprintf("run-%04d", i), s.URL)
			r.Spec.Queue = "held"
			return w.Create(t.Context(), r)
		})
	}
	w.Expect(group.Wait()).To(Succeed())

	p := w.run()
	for _, probe := range []string{"/healthz", "/readyz"} {
		w.Eventually(p.answers).WithArguments(probe).WithPolling(10*time.Millisecond).Should(BeTrue(), probe)
		took := time.Since(p.begun)
		t.Logf("%s answered %s after the start", probe, took)
		w.Expect(took).To(BeNumerically("<", 5*time.Second), probe)
	}
	w.create(w.httpRun("next", s.URL))
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Eventually(func() int32 {
		w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(held), held)).To(Succeed())
		return held.Status.Queued
	}).Should(BeEquivalentTo(backlog), "all of them are there")
	w.Expect(s.log()).To(HaveLen(1))
}
