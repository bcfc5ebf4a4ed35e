// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// told is a trace as a person reads it: each span with its parent, in seconds after midnight.
func told(spans tracetest.SpanStubs) []string {
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int {
		return cmp.Or(a.StartTime.Compare(b.StartTime), b.EndTime.Compare(a.EndTime))
	})
	var lines []string
	for _, s := range spans {
		line := fmt.Sprintf("%s %s-%s", s.Name, s.StartTime.Sub(midnight), s.EndTime.Sub(midnight))
		if parent := s.Parent; parent.IsValid() {
			line += " of " + names[parent.SpanID().String()]
		}
		if s.Status.Code == codes.Error {
			line += ": " + s.Status.Description
		}
		lines = append(lines, line)
	}
	return lines
}

func TestOneTraceTellsOfTheTickTheAttemptsAndTheOutcome(t *testing.T) {
	g := NewWithT(t)
	tracer, exporter := inMemory(t, 1)
	failed := ended(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, 10, 30)

	tracer.RunChanged(nightly(), nightly(failed))
	tracer.RunChanged(retried(), retried(ended(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, 45, 60)))
	tracer.RunChanged(nightly(failed), nightly(failed, over(batchv1alpha1.ConditionComplete, "Succeeded", 61, 2)))

	spans := exporter.GetSpans()
	for _, s := range spans {
		g.Expect(s.SpanContext.TraceID().String()).To(Equal(rootHex), "the trace is found by the UID of the first run")
	}
	g.Expect(told(spans)).To(ConsistOf(
		"chain 0s-1m1s",
		"tick 0s-1s of chain",
		"attempt 1s-30s of chain: WorkFailed",
		"wait 1s-10s of attempt",
		"work 10s-30s of attempt: WorkFailed",
		"attempt 31s-1m0s of chain",
		"back-off 31s-40s of attempt",
		"wait 40s-45s of attempt",
		"work 45s-1m0s of attempt",
	))
}

func TestARetryIsLinkedToTheAttemptBeforeIt(t *testing.T) {
	g := NewWithT(t)
	first := attempt(nightly(ended(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, 10, 30)))[0]
	second := attempt(retried(ended(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, 45, 60)))[0]
	g.Expect(first.links).To(BeEmpty())
	g.Expect(second.links).To(ConsistOf(first.context()))
}

func TestEachEndIsToldOnceHoweverOftenTheRunChangesAfterIt(t *testing.T) {
	g := NewWithT(t)
	failed := nightly(ended(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, 10, 30))
	exhausted := over(batchv1alpha1.ConditionFailed, batchv1alpha1.ReasonRetriesExhausted, 30, 1)
	settled := failed.DeepCopy()
	exhausted(settled)

	g.Expect(ofRun(nightly(), settled)).To(HaveLen(5))
	g.Expect(ofRun(nightly(), nightly())).To(BeEmpty())
	g.Expect(ofRun(failed, failed)).To(BeEmpty())
	g.Expect(ofRun(settled, settled)).To(BeEmpty())
	only := ofRun(failed, settled)
	g.Expect(only).To(HaveLen(1))
	g.Expect(only[0].kind).To(Equal(kindChain))
	g.Expect(only[0].failed).To(Equal(batchv1alpha1.ReasonRetriesExhausted))
}

func TestWhoeverTellsOfARunGivesItTheSameIdentifiers(t *testing.T) {
	g := NewWithT(t)
	end := nightly(ended(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, 10, 30))
	one, first := inMemory(t, 1)
	two, second := inMemory(t, 1)
	one.RunChanged(nightly(), end)
	two.RunChanged(nightly(), end)
	g.Expect(first.GetSpans()).NotTo(BeEmpty())
	for i, s := range first.GetSpans() {
		g.Expect(second.GetSpans()[i].SpanContext).To(Equal(s.SpanContext))
	}
}

func TestTimesThatAreMissingOrOutOfOrderMakeNoSpanOfNegativeLength(t *testing.T) {
	for name, r := range map[string]*batchv1alpha1.JobRun{
		"cancelled before it was ever claimed": nightly(func(r *batchv1alpha1.JobRun) {
			r.Status.Phase, r.Status.FinishedAt = batchv1alpha1.JobRunCancelled, after(5)
		}),
		"cancelled in back-off": retried(func(r *batchv1alpha1.JobRun) {
			r.Status.Phase, r.Status.FinishedAt = batchv1alpha1.JobRunCancelled, after(35)
		}),
		"a status without times":           nightly(func(r *batchv1alpha1.JobRun) { r.Status.Phase = batchv1alpha1.JobRunSkipped }),
		"a manager's clock that is behind": nightly(ended(batchv1alpha1.JobRunCompleted, "", -5, -3)),
		"a tick after the creation": nightly(ended(batchv1alpha1.JobRunCompleted, "", 10, 30), func(r *batchv1alpha1.JobRun) {
			r.Spec.ScheduledTime = after(100)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spans := ofRun(nightly(), r)
			g.Expect(spans).NotTo(BeEmpty())
			for _, s := range spans {
				g.Expect(s.to).NotTo(BeTemporally("<", s.from), s.kind)
				g.Expect(s.from).NotTo(BeZero())
			}
		})
	}
}

func TestARunThatOnlyPretendedToBeOfAChainIsNoPartOfItsTrace(t *testing.T) {
	superseded := retried(func(r *batchv1alpha1.JobRun) {
		r.Status.Phase, r.Status.Reason, r.Status.FinishedAt = batchv1alpha1.JobRunSkipped, batchv1alpha1.ReasonSuperseded, after(32)
	})
	NewWithT(t).Expect(ofRun(retried(), superseded)).To(BeEmpty())
}

func TestARunThatComesFromABackupIsNotToldOfOnceMore(t *testing.T) {
	yesterday := nightly(ended(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, -86400, -86300), over(batchv1alpha1.ConditionComplete, "Succeeded", -86300, 1))
	NewWithT(t).Expect(ofRun(nightly(), yesterday)).To(BeEmpty())
}

func TestASpanNamesItsRunAndNothingThatTheWorkHasSaid(t *testing.T) {
	g := NewWithT(t)
	tracer, exporter := inMemory(t, 1)
	tracer.RunChanged(nightly(), nightly(ended(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, 10, 30), func(r *batchv1alpha1.JobRun) {
		r.Status.Message = "answered 500: secret-of-the-work"
		r.Status.Result = &batchv1alpha1.WorkResult{HTTPStatus: new(int32(500)), Body: "secret-of-the-work"}
		r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "manager-0"}
	}))
	spans := exporter.GetSpans()
	g.Expect(fmt.Sprint(spans)).NotTo(ContainSubstring("secret-of-the-work"))
	for _, s := range spans {
		switch s.Name {
		case kindAttempt:
			g.Expect(s.Attributes).To(ContainElements(
				attribute.String("k8s.namespace.name", "shop"), attribute.String("reprise.run.name", "nightly-1"),
				attribute.String("reprise.queue", "default"), attribute.String("reprise.type", "report"),
				attribute.String("reprise.scheduledjob.name", "nightly"), attribute.String("reprise.phase", "Failed"),
			))
		case kindWork:
			g.Expect(s.Attributes).To(ContainElements(attribute.Int("http.response.status_code", 500), attribute.String("reprise.manager", "manager-0")))
		}
	}
}

func TestAGroupHasATraceWithLinksToThoseOfItsMembers(t *testing.T) {
	g := NewWithT(t)
	tracer, exporter := inMemory(t, 1)
	group := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "release-1", UID: childUID, CreationTimestamp: *after(2)}}
	group.Spec.ScheduledTime = after(0)
	waits := group.DeepCopy()
	group.Status = batchv1alpha1.JobGroupStatus{
		Phase: batchv1alpha1.JobGroupFailed, Reason: batchv1alpha1.ReasonMemberFailed, FinishedAt: after(50),
		Members: []batchv1alpha1.GroupMemberStatus{{Name: "build", RunUID: rootUID}, {Name: "never-made"}},
	}

	tracer.GroupChanged(waits, group)
	tracer.GroupChanged(group, group)

	spans := exporter.GetSpans()
	g.Expect(told(spans)).To(ConsistOf("group 0s-50s: MemberFailed", "tick 0s-2s of group"))
	links := spans[slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == kindGroup })].Links
	g.Expect(links).To(HaveLen(1))
	whole := chain(nightly(), &metav1.Condition{LastTransitionTime: metav1.NewTime(midnight.Add(time.Hour))})
	g.Expect(links[0].SpanContext.SpanID()).To(Equal(whole.context().SpanID()))
	g.Expect(links[0].SpanContext.TraceID().String()).To(Equal(rootHex))
}
