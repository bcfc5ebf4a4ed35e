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

func TestWhatHasNoRoomIsNotTakenAndNormalEventsHaveFarLess(t *testing.T) {
	g := NewWithT(t)
	b := newBacklog()
	taken := map[string]int{}
	for range 2 * Warnings {
		for _, e := range []*eventsv1.Event{normal("so much"), warning("so much")} {
			if b.add(e) {
				taken[e.Type]++
			}
		}
	}
	g.Expect(taken).To(Equal(map[string]int{corev1.EventTypeNormal: Normal, corev1.EventTypeWarning: Warnings}))
	g.Expect(b.len()).To(Equal(Normal + Warnings))
	b.next()
	g.Expect(b.add(normal("too much"))).To(BeFalse())
	g.Expect(b.add(warning("in its place"))).To(BeTrue())
}
