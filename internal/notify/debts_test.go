// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAReceiverIsOwedTooMuchAboveAThousand(t *testing.T) {
	g := NewWithT(t)
	var d Debts
	to := Destination{Namespace: "team", Source: "main", Receiver: "ops"}
	for i := range MostOwed {
		d.Show(OfRun(numbered(i, "ops", "audit")))
	}
	d.Show(OfRun(numbered(0, "ops", "audit")))
	g.Expect(d.TooMany(to)).To(BeFalse())

	last := numbered(MostOwed, "ops")
	d.Show(OfRun(last))
	g.Expect(d.TooMany(to)).To(BeTrue())
	g.Expect(d.TooMany(Destination{Namespace: "team", Source: "main", Receiver: "audit"})).To(BeFalse())
	g.Expect(d.TooMany(Destination{Namespace: "team", ScheduledJob: true, Source: "main", Receiver: "ops"})).To(BeFalse())

	last.Status.Announcements[0].State = batchv1alpha1.AnnouncementAbandoned
	d.Show(OfRun(last))
	g.Expect(d.TooMany(to)).To(BeFalse())
	d.Show(OfRun(numbered(MostOwed, "ops")))
	d.Drop(nameOf(numbered(17)))
	g.Expect(d.TooMany(to)).To(BeFalse())
}

func TestDebtsAreThoseOfWhatWasShownLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		var d Debts
		last := map[Name]Subject{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			s := drawn(t)
			s.Object().SetName(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name"))
			if rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
				d.Drop(NameOf(s))
				delete(last, NameOf(s))
				continue
			}
			d.Show(s)
			last[NameOf(s)] = s
		}
		want := map[Destination]int{}
		for _, s := range last {
			for _, a := range s.Announcements() {
				if owed(a) {
					want[DestinationOf(s, a)]++
				}
			}
		}
		g.Expect(d.owed).To(Equal(want))
		for name, s := range last {
			g.Expect(d.of[name] != nil).To(Equal(!settled(s.Announcements())))
		}
	})
}
