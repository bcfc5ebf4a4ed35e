// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAChainGoesWhenItsTimeToLiveIsOverTheRootLast(t *testing.T) {
	w := newWorld(t)
	root := w.run("a", ttl(1800), failing)
	w.run("a-r1", retryOf(root, 1), failing)
	w.run("a-r2", retryOf(root, 2))
	w.run("other")
	w.at(29 * time.Minute)
	result := w.chain(root)
	w.Expect(result.RequeueAfter).To(Equal(time.Minute))
	w.Expect(result.Priority).To(HaveValue(BeZero()), "or it would starve behind the first list after a restart")
	w.Expect(w.deleted).To(BeEmpty())

	w.at(30 * time.Minute)
	w.Expect(w.chain(root)).To(BeZero())
	w.Expect(w.deleted).To(Equal([]string{"a-r2", "a-r1", "a"}))
	w.Expect(w.left()).To(Equal([]string{"other"}))
	w.Expect(w.chain(root)).To(BeZero())
}

func TestNothingGoesWithinTenMinutesOfTheLastChange(t *testing.T) {
	w := newWorld(t)
	root := w.run("a", ttl(0))
	w.at(time.Minute)
	w.Expect(w.chain(root).RequeueAfter).To(BeNumerically("~", 9*time.Minute, 10*time.Second), "the API server's clock is the real one")
	w.Expect(w.left()).To(Equal([]string{"a"}))
}

func TestAChainThatARestartFailedStaysForADay(t *testing.T) {
	w := newWorld(t)
	root := w.run("a", ttl(0), failing, because(batchv1alpha1.ReasonCrashRecovery))
	w.run("a-r1", retryOf(root, 1))
	w.at(23 * time.Hour)
	w.Expect(w.chain(root).RequeueAfter).To(BeNumerically("~", time.Hour, 10*time.Second))
	w.Expect(w.deleted).To(BeEmpty())
	w.at(25 * time.Hour)
	w.chain(root)
	w.Expect(w.left()).To(BeEmpty())
}

func TestAnEditOfTheTimeToLiveOnTheRootCounts(t *testing.T) {
	w := newWorld(t)
	root := w.run("a")
	w.Expect(w.chain(root)).To(BeZero())
	root.Spec.TTLSecondsAfterFinished = ptr.To[int32](60)
	w.Expect(w.api.Update(w.ctx, root)).To(Succeed())
	w.chain(root)
	w.Expect(w.left()).To(BeEmpty())
}

func TestDyingInBetweenLeavesTheRootAndTheNextManagerGoesOn(t *testing.T) {
	w := newWorld(t)
	root := w.run("a", ttl(0), failing)
	w.run("a-r1", retryOf(root, 1))
	crash := errors.New("the manager ends here")
	w.onDelete = func(o client.Object) error {
		if o.GetName() == "a" {
			return crash
		}
		return nil
	}
	_, err := w.reconciler().ReconcileChain(w.ctx, w.request(string(root.UID)))
	w.Expect(err).To(MatchError(crash))
	w.Expect(w.left()).To(Equal([]string{"a"}))
	w.onDelete = nil
	w.chain(root)
	w.Expect(w.left()).To(BeEmpty())
}

func TestAChangeInBetweenSavesTheChain(t *testing.T) {
	w := newWorld(t)
	root := w.run("a", ttl(0), failing)
	latest := w.run("a-r1", retryOf(root, 1), failing)
	w.onDelete = func(client.Object) error {
		w.onDelete = nil
		latest.Status.Retry = &batchv1alpha1.RetryRecord{Name: "again", UID: "again", Manual: true}
		w.write(latest)
		return nil
	}
	w.Expect(w.chain(root).RequeueAfter).To(Equal(again))
	w.Expect(w.left()).To(Equal([]string{"a", "a-r1"}))
}

func TestAChainWithARetryThatWasRecordedAMomentAgoStays(t *testing.T) {
	w := newWorld(t)
	root := w.run("a", ttl(0), failing)
	retry := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "again"}}
	retry.Spec.RetryOf = "a"
	w.Expect(w.api.Create(w.ctx, retry)).To(Succeed())
	root.Status.Retry = &batchv1alpha1.RetryRecord{Name: "again", UID: retry.UID, Manual: true}
	w.write(root)
	w.Expect(w.chain(root).RequeueAfter).To(Equal(10 * time.Minute))
	w.Expect(w.left()).To(Equal([]string{"a", "again"}))

	w.Expect(w.api.Delete(w.ctx, retry)).To(Succeed())
	w.chain(root)
	w.Expect(w.left()).To(BeEmpty(), "a retry that a person deleted keeps nothing")
}

func TestAScheduledJobKeepsItsNewestChains(t *testing.T) {
	w := newWorld(t)
	w.schedule(2, 1)
	for i, name := range numbered("ok", 4) {
		w.run(name, scheduled, endedAfter(w, i))
	}
	for i, name := range numbered("bad", 3) {
		root := w.run(name, scheduled, failing, endedAfter(w, i))
		w.run(name+"-r1", retryOf(root, 1), failing, endedAfter(w, i))
	}
	w.run("another")
	w.Expect(w.limits()).To(BeZero())
	w.Expect(w.left()).To(ConsistOf("another", "ok2", "ok3", "bad2", "bad2-r1"))
	w.Expect(w.limits()).To(BeZero())
}

func endedAfter(w *world, seconds int) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.FinishedAt = ptr.To(metav1.NewTime(w.begun.Add(time.Duration(seconds) * time.Second)))
	}
}

func TestTheLimitsSpareWhatAPersonsRetryKeepsBusy(t *testing.T) {
	w := newWorld(t)
	w.schedule(0, 0)
	root := w.run("a", scheduled, failing)
	retry := w.run("again", func(r *batchv1alpha1.JobRun) {
		retryOf(root, 1)(r)
		r.Spec.ScheduledJobRef = nil
	}, failing, holding)
	w.Expect(w.limits().RequeueAfter).To(Equal(10 * time.Minute))
	w.Expect(w.left()).To(Equal([]string{"a", "again"}))
	retry.Status.Slot = batchv1alpha1.SlotFree
	w.write(retry)
	w.limits()
	w.Expect(w.left()).To(BeEmpty())
}

func TestWithoutItsScheduledJobARunIsLeftToItsTimeToLive(t *testing.T) {
	w := newWorld(t)
	kept, dated := w.run("kept", scheduled), w.run("dated", scheduled, ttl(60))
	w.Expect(w.limits()).To(BeZero())
	w.chain(kept)
	w.chain(dated)
	w.Expect(w.left()).To(Equal([]string{"kept"}))
}

func TestRetriesWhoseRootAPersonDeletedGoToo(t *testing.T) {
	w := newWorld(t)
	root := w.run("a", ttl(60), failing)
	w.run("a-r1", retryOf(root, 1), ttl(60))
	w.Expect(w.api.Delete(w.ctx, root)).To(Succeed())
	w.chain(root)
	w.Expect(w.left()).To(BeEmpty())
}
