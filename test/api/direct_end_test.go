// SPDX-License-Identifier: Apache-2.0

package api

import (
	"io"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// How a manager with a front ends.

// longer is more than a manager takes to end that has nothing to drain.
const longer = 12 * time.Second

// ending asks a manager to end. The channel is closed when it has.
func (w *world) ending(m *manager) <-chan struct{} {
	w.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.stop()
	}()
	w.Eventually(func() int { return len(m.log.with("draining calls")) }).Should(Equal(1))
	return ended
}

func TestAManagerThatEndsGivesADirectRequestItsDrainTimeoutToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	chat := s.streams("chat")
	w.upstream(s, 1)
	d, m := w.opens(drainsFor(patience))
	from := d.reads(w.client(), "chat")
	w.create(w.act(s, "next"))
	ended := w.ending(m)
	w.Consistently(ended, longer).ShouldNot(BeClosed())
	chat.more <- struct{}{}
	from.line("1")
	close(chat.done)
	_, err := io.Copy(io.Discard, from)
	w.Expect(err).NotTo(HaveOccurred(), "it is whole")
	w.Eventually(ended).Should(BeClosed())
	w.Expect(w.reservations()).To(ConsistOf(HaveField("Spec.Release", true)), "given back before the process ended")

	w.Expect(s.began("")).To(Equal([]string{"chat"}))
	m = w.start()
	s.end("next")
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
}
