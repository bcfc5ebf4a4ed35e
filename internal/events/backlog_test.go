// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
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

func TestOnceASecondsEventsWaitTheLatestOfAnObjectTakesThePlaceOfAnEarlierOne(t *testing.T) {
	about := func(uid types.UID, e *eventsv1.Event) *eventsv1.Event {
		e.Regarding.UID = uid
		return e
	}
	for name, c := range map[string]struct {
		waiting       int // beside the first Event
		first, second *eventsv1.Event
		overtakes     bool
	}{
		"so many wait":              {Crowded - 1, about("a", normal("1")), about("a", normal("2")), true},
		"fewer wait":                {Crowded - 2, about("a", normal("1")), about("a", normal("2")), false},
		"it is of another object":   {Crowded - 1, about("a", normal("1")), about("b", normal("2")), false},
		"nobody knows which object": {Crowded - 1, normal("1"), normal("2"), false},
		"the later is a warning":    {Crowded - 1, about("a", normal("1")), about("a", warning("2")), false},
		"the earlier is a warning":  {Crowded, about("a", warning("1")), about("a", normal("2")), false},
		"there is no room for more": {Normal - 1, about("a", normal("1")), about("a", normal("2")), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := newBacklog()
			g.Expect(b.add(c.first)).To(BeTrue())
			for range c.waiting {
				g.Expect(b.add(normal(""))).To(BeTrue())
			}
			g.Expect(b.add(c.second)).To(Equal(!c.overtakes), "one of them is not written")
			left := map[string]int{}
			for e := b.next(); e != nil; e = b.next() {
				left[e.Note]++
			}
			g.Expect(left["2"]).To(Equal(1))
			g.Expect(left["1"] == 0).To(Equal(c.overtakes))
			g.Expect(left[""]).To(Equal(c.waiting))
		})
	}
}
