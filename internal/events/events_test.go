// SPDX-License-Identifier: Apache-2.0

package events

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestTheNoteOfAnEventIsCutToWhatTheAPITakes(t *testing.T) {
	g := NewWithT(t)
	w := quick(&server{})
	w.Eventf(pod("a"), nil, corev1.EventTypeNormal, "Failed", "Fail", "%s", strings.Repeat("ä", 2000))
	w.Eventf(pod("a"), nil, corev1.EventTypeNormal, "Failed", "Fail", "100 %% of %s", "%d")
	note := w.waiting.next().Note
	g.Expect(len(note)).To(And(BeNumerically("<=", MaxNote), BeNumerically(">", MaxNote-5)))
	g.Expect(note).To(HaveSuffix("ää…"))
	g.Expect(w.waiting.next().Note).To(Equal("100 % of %d"))
}

func TestAnEventSaysWhatItIsAboutAndSinceWhen(t *testing.T) {
	g := NewWithT(t)
	w := quick(&server{})
	w.Eventf(pod("a"), pod("b"), corev1.EventTypeNormal, "RetryCreated", "Retry", "it is b")
	e := w.waiting.next()
	g.Expect(e.Regarding).To(Equal(corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "team", Name: "a"}))
	g.Expect(e.Related).To(HaveField("Name", "b"))
	g.Expect(e.Namespace).To(Equal("team"))
	g.Expect(e.Name).To(HavePrefix("a."))
	g.Expect(e.EventTime.IsZero()).To(BeFalse(), "the time at which it happened, however late it is written")
	g.Expect([]string{e.ReportingController, e.ReportingInstance, e.Action}).To(Equal([]string{"reprise", "reprise-here", "Retry"}))
}

func TestAnEventAboutSomethingUnknownIsDroppedAndCounted(t *testing.T) {
	g := NewWithT(t)
	w := quick(&server{})
	dropped := 0
	w.dropped = func() { dropped++ }
	w.scheme = runtime.NewScheme()
	w.Eventf(pod("a"), nil, corev1.EventTypeNormal, "Completed", "Complete", "it is done")
	g.Expect(w.waiting.next()).To(BeNil())
	g.Expect(dropped).To(Equal(1))
}
