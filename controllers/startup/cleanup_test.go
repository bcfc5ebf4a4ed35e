// SPDX-License-Identifier: Apache-2.0

package startup_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/incarnation"
	"reprise.dev/reprise/internal/recovery"
)

const (
	running    = batchv1alpha1.JobRunRunning
	cancelling = batchv1alpha1.JobRunCancelling
)

func failed(kind string) func(*recovery.Summary) {
	return func(s *recovery.Summary) {
		s.Add(recovery.Verdict{Kind: recovery.Fail, Was: running, Type: kind})
	}
}

func TestWithoutOrphansTheGateOpensAtOnceAndTheSummaryIsLoggedAllTheSame(t *testing.T) {
	for name, objects := range map[string][]client.Object{
		"nothing is there":                     nil,
		"runs of this manager are no orphans":  {run("own", running, mine), run("own-cancelling", cancelling, mine)},
		"runs that have ended are none":        {run("over", batchv1alpha1.JobRunFailed, before)},
		"runs that wait are none":              {run("waits", batchv1alpha1.JobRunQueued, "")},
		"reservations that wait are none":      {reserved("waits", batchv1alpha1.ReservationPending, "")},
		"reservations that have ended neither": {reserved("over", batchv1alpha1.ReservationExpired, before)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newTerm(t, objects...)
			m.begin(t.Context())
			g.Expect(<-m.ended).To(Succeed())
			g.Expect(m.open()).To(BeTrue())
			g.Expect(<-m.lines).To(And(
				ContainSubstring("scheduler_startup_cleanup"), ContainSubstring(`"running_failed":0`), ContainSubstring(`"cancelling_failed":0`),
				ContainSubstring(`"adopted":0`), ContainSubstring(`"recorded":0`), ContainSubstring(`"by_type":{}`), ContainSubstring(`"not_evaluated":0`),
			))
		})
	}
}

func TestTheGateStaysClosedUntilEveryOrphanWasEvaluatedOnce(t *testing.T) {
	g := NewWithT(t)
	m := newTerm(t, run("running", running, before), run("cancelling", cancelling, before), run("unknown", running, ""),
		reserved("active", batchv1alpha1.ReservationActive, before), reserved("granted", batchv1alpha1.ReservationGranted, ""))
	m.begin(t.Context())
	g.Eventually(m.clock.HasWaiters).Should(BeTrue())

	for _, uid := range []types.UID{"running", "cancelling", "unknown", "active"} {
		m.cleanup.Evaluated(uid, failed("story"))
		m.cleanup.Evaluated(uid, failed("story"))
		g.Expect(m.open()).To(BeFalse(), "after %s", uid)
	}
	m.cleanup.Evaluated("granted", nil)

	g.Expect(<-m.ended).To(Succeed())
	g.Expect(m.open()).To(BeTrue())
	g.Expect(<-m.lines).To(And(ContainSubstring(`"running_failed":4`), ContainSubstring(`"by_type":{"story":4}`), ContainSubstring(`"not_evaluated":0`)))
}

func TestAnOrphanThatWasEvaluatedBeforeTheListIsNotWaitedFor(t *testing.T) {
	g := NewWithT(t)
	m := newTerm(t, run("quick", running, before))
	m.cleanup.Evaluated("quick", failed(""))
	m.begin(t.Context())
	g.Expect(<-m.ended).To(Succeed())
	g.Expect(<-m.lines).To(And(ContainSubstring(`"running_failed":1`), ContainSubstring(`"by_type":{"(none)":1}`)))
}

func TestAnOrphanThatCannotBeEvaluatedHoldsTheGateForTenSecondsAndNoLonger(t *testing.T) {
	g := NewWithT(t)
	m := newTerm(t, run("stuck", running, before), run("quick", running, before))
	m.begin(t.Context())
	g.Eventually(m.clock.HasWaiters).Should(BeTrue())
	m.cleanup.Evaluated("quick", failed(""))
	m.clock.Step(10*time.Second - time.Nanosecond)
	g.Expect(m.open()).To(BeFalse())

	m.clock.Step(time.Nanosecond)
	g.Expect(<-m.lines).To(And(ContainSubstring(`"running_failed":1`), ContainSubstring(`"not_evaluated":1`)))
	g.Expect(m.open()).To(BeTrue())

	g.Eventually(m.clock.HasWaiters).Should(BeTrue())
	m.clock.Step(time.Second)
	g.Expect(<-m.ended).To(Succeed())
	m.cleanup.Evaluated("stuck", func(*recovery.Summary) { t.Error("counted after the summary was logged") })
}

func TestTheRushIsOverOnceEveryOrphanWasEvaluatedOrNoneWasForASecond(t *testing.T) {
	for name, evaluated := range map[string][]types.UID{"every": {"a", "b", "c"}, "no more": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newTerm(t, run("a", running, before), run("b", running, before), run("c", running, before))
			calm := make(chan error, 1)
			go func() { calm <- m.cleanup.Calm(t.Context()) }()
			m.begin(t.Context())
			g.Eventually(m.clock.HasWaiters).Should(BeTrue())
			m.clock.Step(10 * time.Second)
			g.Expect(<-m.lines).To(ContainSubstring(`"not_evaluated":3`))
			for _, uid := range evaluated {
				g.Eventually(m.clock.HasWaiters).Should(BeTrue())
				g.Expect(calm).To(BeEmpty(), "before %s was evaluated, the gate is open and the rush goes on", uid)
				m.cleanup.Evaluated(uid, nil)
				m.clock.Step(time.Second)
			}
			if len(evaluated) < 3 {
				g.Eventually(m.clock.HasWaiters).Should(BeTrue())
				m.clock.Step(time.Second)
			}
			g.Expect(<-calm).To(Succeed())
			g.Expect(<-m.ended).To(Succeed())
		})
	}
}

func TestTheRushOfOrphansThatAreEvaluatedOneByOneIsOverAfterFiveMinutes(t *testing.T) {
	g := NewWithT(t)
	var orphans []client.Object
	for i := range 400 {
		orphans = append(orphans, run(strconv.Itoa(i), running, before))
	}
	m := newTerm(t, orphans...)
	m.begin(t.Context())
	g.Eventually(m.clock.HasWaiters).Should(BeTrue())
	m.clock.Step(10 * time.Second)
	for i := range 300 {
		g.Eventually(m.clock.HasWaiters, "1s", "1ms").Should(BeTrue())
		m.cleanup.Evaluated(types.UID(strconv.Itoa(i)), nil)
		m.clock.Step(time.Second)
	}
	g.Expect(<-m.ended).To(Succeed())
	g.Expect(m.cleanup.Calm(t.Context())).To(Succeed())
}

func TestAManagerThatMeetsAHigherEpochEnds(t *testing.T) {
	for name, o := range map[string]client.Object{
		"on a run":         run("theirs", running, after),
		"on a reservation": reserved("theirs", batchv1alpha1.ReservationGranted, after),
	} {
		t.Run(name, func(t *testing.T) {
			m := newTerm(t, o)
			m.holders = []string{"me", "another"}
			m.begin(t.Context())
			<-m.ended
			NewWithT(t).Expect(m.exits).To(Equal(1))
		})
	}
}

func TestARunOfAnEpochThatWasNeverIssuedIsAnOrphan(t *testing.T) {
	g := NewWithT(t)
	m := newTerm(t, run("forged", running, after))
	m.begin(t.Context())
	g.Eventually(m.clock.HasWaiters).Should(BeTrue())
	m.cleanup.Evaluated("forged", nil)
	g.Expect(<-m.ended).To(Succeed())
	g.Expect(m.exits).To(BeZero())
	g.Expect(m.open()).To(BeTrue())
}

func TestAManagerThatLostTheLeaseAgainEndsAtOnce(t *testing.T) {
	g := NewWithT(t)
	m := newTerm(t)
	m.holders = []string{"another"}
	m.begin(t.Context())
	g.Expect(<-m.ended).To(MatchError(incarnation.ErrNotHolder))
	g.Expect(m.open()).To(BeFalse())
}

func TestAListThatFailsEndsTheManagerWithTheGateClosed(t *testing.T) {
	g := NewWithT(t)
	m := newTerm(t)
	m.through.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no cache")
	}
	m.begin(t.Context())
	g.Expect(<-m.ended).To(MatchError(ContainSubstring("no cache")))
	g.Expect(m.open()).To(BeFalse())
}

func TestAManagerThatIsAskedToEndWhileItWaitsForOrphansOpensNothing(t *testing.T) {
	g := NewWithT(t)
	m := newTerm(t, run("stuck", running, before))
	ctx, end := context.WithCancel(t.Context())
	m.begin(ctx)
	g.Eventually(m.clock.HasWaiters).Should(BeTrue())
	end()
	g.Expect(<-m.ended).To(Succeed())
	g.Expect(m.open()).To(BeFalse())
	g.Expect(m.lines).To(BeEmpty())
}

func TestAManagerThatIsAskedToEndBeforeItKnowsItsEpochJudgesNothing(t *testing.T) {
	g := NewWithT(t)
	m := newTerm(t, run("theirs", running, before))
	ctx, end := context.WithCancel(t.Context())
	m.through.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		end()
		return errors.New("the API server is away")
	}
	m.begin(ctx)
	g.Expect(<-m.ended).To(Succeed())
	g.Expect(m.exits).To(BeZero(), "every epoch is higher than none")
	g.Expect(m.open()).To(BeFalse())
}

func TestTheCleanupWaitsForLeadership(t *testing.T) {
	NewWithT(t).Expect(newTerm(t).cleanup.NeedLeaderElection()).To(BeTrue())
}
