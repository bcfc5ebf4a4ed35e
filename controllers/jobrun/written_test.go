// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestARunThatTheCacheShowsAsItWasBeforeOurOwnWriteIsNotDecidedAgain(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", calling, running(before)))
	b.r.written = newWritten(b.clock)
	b.work.look = unknownOver
	older := b.run("a")
	b.step("a")
	b.stale["a"] = older
	writes, asked := b.writes, len(b.work.asked)
	g.Expect(b.step("a")).To(Equal(ctrl.Result{RequeueAfter: mostLag, Priority: new(0)}))
	g.Expect(b.writes).To(Equal(writes))
	g.Expect(b.work.asked).To(HaveLen(asked))

	delete(b.stale, "a")
	g.Expect(b.step("a")).To(Equal(still), "it is the version that was written")
	b.edit("a", func(r *batchv1alpha1.JobRun) { r.Labels = map[string]string{"edited": "yes"} })
	g.Expect(b.step("a")).To(Equal(still), "it is a later one")
}

func TestWhatWasWrittenIsForgotten(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", cancelled))
	b.r.written = newWritten(b.clock)
	b.stale["a"] = b.run("a")
	b.step("a")
	b.clock.SetTime(b.clock.Now().Add(mostLag + time.Second))
	g.Expect(b.step("a")).NotTo(Equal(still), "its write meets a conflict")
	g.Expect(b.writes).To(Equal(2))
}

func TestAWriteThatTheCacheHasShownIsNotRemembered(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", cancelled))
	b.r.written = newWritten(b.clock)
	before := b.run("a")
	b.step("a")
	b.r.written.shown(before)
	g.Expect(b.r.written.versions.Keys()).To(HaveLen(1))
	b.step("a")
	g.Expect(b.r.written.versions.Keys()).To(BeEmpty())
}

func TestAVersionThatCannotBeComparedIsDecidedUpon(t *testing.T) {
	g := NewWithT(t)
	w := newWritten(start(t).clock)
	version := func(v string) *batchv1alpha1.JobRun {
		r := queued("a")
		r.ResourceVersion = v
		return r
	}
	w.note(version("10"))
	g.Expect(w.after(version("9"))).To(BeTrue())
	g.Expect(w.after(version("10"))).To(BeFalse())
	g.Expect(w.after(version("11"))).To(BeFalse())
	g.Expect(w.after(version("opaque"))).To(BeFalse())
	namesake := version("9")
	namesake.UID = "another"
	g.Expect(w.after(namesake)).To(BeFalse())
}
