// SPDX-License-Identifier: Apache-2.0

package show

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/text"
)

// busy is a queue of two slots with three that wait.
func busy() explain.QueueView {
	return explain.QueueView{
		Namespace: "ns", Name: "gpu", Exists: true, Limit: ptr.To(2), Total: 4,
		Reason: admission.CodeLimitReached, Message: "every slot is in use: 2 of 2",
		Slots: []explain.Answer{
			{Kind: admission.JobRun, Name: "story-16", Type: "story", Phase: "Running", Reason: "Running", Message: "it has a slot", Since: now.Add(-192 * time.Second), End: now.Add(time.Minute)},
			{Kind: admission.DirectReservation, Name: "maria", Phase: "Granted", Reason: "Granted", Message: "the slot is the holder's", Since: now.Add(-20 * time.Second)},
		},
		Waiting: []explain.Answer{
			{Kind: admission.JobRun, Name: "story-17", Type: "story", Phase: "Queued", Waits: true, Reason: admission.CodeLimitReached, Message: "every slot is in use: 2 of 2",
				Details: []string{"held by run story-16"}, Place: &explain.Place{Number: 1, Of: 2}, Since: now.Add(-40 * time.Second), Start: now.Add(70 * time.Second), Queue: "gpu"},
			{Kind: admission.JobRun, Name: "study-2", Type: "research", Phase: "Queued", Waits: true, Reason: admission.CodeNextInTurn, Message: "nothing stands in its way but the 1 before it",
				Place: &explain.Place{Number: 2, Of: 2}, Since: now.Add(-30 * time.Second), Start: now, Queue: "gpu"},
			{Kind: admission.JobRun, Name: "story-3-r1", Type: "story", Phase: "Queued", Waits: true, Reason: admission.CodeBackOff, Message: "it is in back-off until 07:00:20Z",
				Since: now.Add(-time.Second), Queue: "gpu", Hints: []string{"to have it run before that: kubectl patch …"}},
		},
	}
}

func TestAQueueShowsWhatRunsAndWhatWaitsInOrder(t *testing.T) {
	golden(t, "queue.txt", drawQueues([]explain.QueueView{busy()}, nil, asked{}, now, text.Style{}))
	golden(t, "queue-wide.txt", drawQueues([]explain.QueueView{busy()}, nil, asked{wide: true}, now, text.Style{}))
}

func TestQueuesThatHaveNothingToShowAreShownInALine(t *testing.T) {
	missing := explain.QueueView{Namespace: "ns", Name: "gqu", Total: 1, Slots: []explain.Answer{}}
	idle := explain.QueueView{Namespace: "ns", Name: "default", Exists: true, Suspended: true}
	golden(t, "queues.txt", drawQueues([]explain.QueueView{idle, missing}, []string{"pods"}, asked{}, now, text.Style{}))
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for _, line := range drawQueues([]explain.QueueView{busy()}, nil, asked{}, now, text.Style{Width: 20}) {
		NewWithT(t).Expect(len([]rune(line))).To(BeNumerically("<=", 20), "%q", line)
	}
}

func TestAScriptGetsOneQueueIfItAskedForOne(t *testing.T) {
	g := NewWithT(t)
	g.Expect(document([]explain.QueueView{busy()}, asked{queue: "gpu"})).To(BeAssignableToTypeOf(explain.QueueView{}))
	g.Expect(document([]explain.QueueView{busy()}, asked{})).To(BeAssignableToTypeOf([]explain.QueueView{}))
}

// snapshot of a queue of one slot with one that runs and two that wait.
func aSnapshot() explain.Snapshot {
	return explain.Snapshot{
		Namespace: "ns",
		Queues:    []batchv1alpha1.JobQueue{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "default"}}},
		Runs:      []batchv1alpha1.JobRun{aRun("first", running(time.Minute)), aRun("second"), aRun("third")},
	}
}

func TestTheLimitCutsWhatWaitsAndNotTheCount(t *testing.T) {
	g := NewWithT(t)
	v := explain.New(aSnapshot(), now)
	views, ok := viewsOf(v, asked{limit: 1})
	g.Expect(ok).To(BeTrue())
	g.Expect(views[0].Waiting).To(HaveLen(1))
	g.Expect(drawQueues(views, nil, asked{}, now, text.Style{})).To(ContainElement("  and 1 more that wait"))
	views, _ = viewsOf(v, asked{})
	g.Expect(views[0].Waiting).To(HaveLen(2), "0 is no limit")
	_, ok = viewsOf(v, asked{queue: "defalt"})
	g.Expect(ok).To(BeFalse(), "there is no such queue, and nothing names it")
}
