// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

func normal(note string) *eventsv1.Event {
	return &eventsv1.Event{Type: corev1.EventTypeNormal, Note: note}
}

func warning(note string) *eventsv1.Event {
	return &eventsv1.Event{Type: corev1.EventTypeWarning, Note: note}
}

func TestWarningsComeFirstAndOtherwiseWhatCameFirst(t *testing.T) {
	g := NewWithT(t)
	b := newBacklog()
	for _, e := range []*eventsv1.Event{normal("1"), warning("2"), normal("3"), warning("4")} {
		g.Expect(b.add(e)).To(BeTrue())
	}
	first := b.next()
	g.Expect(first.Note).To(Equal("2"))
	b.putBack(first)
	for _, want := range []string{"2", "4", "1"} {
		g.Expect(b.next().Note).To(Equal(want))
	}
	b.putBack(normal("1"))
	g.Expect([]string{b.next().Note, b.next().Note}).To(Equal([]string{"1", "3"}))
	g.Expect(b.next()).To(BeNil())
}

func TestWithoutRoomANormalEventGoesForAWarningAndANewOneIsNotTaken(t *testing.T) {
	g := NewWithT(t)
	b := newBacklog()
	b.add(normal("first"))
	for b.len() < Waiting {
		b.add(normal("more"))
	}
	g.Expect(b.add(normal("too many"))).To(BeFalse())
	for range Waiting - 1 {
		g.Expect(b.add(warning("urgent"))).To(BeFalse(), "a normal one goes")
	}
	g.Expect(b.len()).To(Equal(Waiting))
	g.Expect(b.normal).To(ConsistOf(HaveField("Note", "first")))
	g.Expect(b.add(warning("the last for whom one goes"))).To(BeFalse())
	g.Expect(b.add(warning("too many"))).To(BeFalse())
	g.Expect(b.len()).To(Equal(Waiting))
	g.Expect(b.warnings).NotTo(ContainElement(HaveField("Note", "too many")))
}
