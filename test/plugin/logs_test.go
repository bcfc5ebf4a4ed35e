// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestLogsOfCallsArePrintedThroughTheirRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t)
	w.manage()
	w.create(jobRun("call", httpWork(s.URL+"/broken", 1)))
	followed := w.begin("logs", "call", "--follow").result()
	w.Expect(followed.code).To(BeZero(), followed.err)
	w.Expect(followed.out).To(Equal("[call] hello from /broken\n[call-r1] hello from /broken\n"))
	w.Expect(followed.err).To(ContainSubstring("run call-r1: HTTP 500"))
	w.Expect(w.does("logs", "call-r1")).To(Equal(followed.out), "a retry stands for its chain")
	w.Expect(w.does("logs", "call", "--previous")).To(Equal("hello from /broken\n"))
	w.Expect(w.reprise("logs", "call", "--attempt=5").code).To(Equal(1))
	misspelt := w.reprise("logs", "cal")
	w.Expect(misspelt.code).To(Equal(1))
	w.Expect(misspelt.err).To(ContainSubstring("did you mean call"))
}

func TestFollowingLogsCanBeInterruptedAndTheRunGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t)
	w.manage()
	w.create(jobRun("call", httpWork(s.URL+"/slow", 0)))
	w.Eventually(w.phase("call")).Should(Equal(batchv1alpha1.JobRunRunning))
	p := w.begin("logs", "call", "-f")
	w.Consistently(p.done, "500ms").ShouldNot(BeClosed())
	p.signal(syscall.SIGINT)
	w.Expect(p.result().code).To(Equal(130))
	w.Expect(w.phase("call")()).To(Equal(batchv1alpha1.JobRunRunning))
	s.release()
	w.Eventually(w.phase("call")).Should(Equal(batchv1alpha1.JobRunCompleted))
}
