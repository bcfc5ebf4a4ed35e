// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestHandovers(t *testing.T) {
	for name, c := range map[string]struct {
		versions []Lease
		want     []Handover
	}{
		"the first leader follows nobody": {[]Lease{{at(1), "a_1"}, {at(3), "a_1"}}, nil},
		"a lease that ran out is taken": {
			[]Lease{{at(1), "a_1"}, {at(3), "a_1"}, {at(18), "b_1"}, {at(20), "b_1"}},
			[]Handover{{From: "a_1", To: "b_1", Taken: at(18)}},
		},
		"a lease that was given up is taken": {
			[]Lease{{at(1), "a_1"}, {at(3), ""}, {at(4), "b_1"}},
			[]Handover{{From: "a_1", To: "b_1", Released: at(3), Taken: at(4)}},
		},
		"the release counts when it was first seen": {
			[]Lease{{at(1), "a_1"}, {at(3), ""}, {at(4), ""}, {at(5), "b_1"}},
			[]Handover{{From: "a_1", To: "b_1", Released: at(3), Taken: at(5)}},
		},
		"one that takes back what it gave up has led all the time": {
			[]Lease{{at(1), "a_1"}, {at(3), ""}, {at(4), "a_1"}, {at(20), "b_1"}},
			[]Handover{{From: "a_1", To: "b_1", Taken: at(20)}},
		},
		"another process of the same pod is another leader": {
			[]Lease{{at(1), "a_1"}, {at(17), "a_2"}},
			[]Handover{{From: "a_1", To: "a_2", Taken: at(17)}},
		},
		"there and back are two": {
			[]Lease{{at(1), "a_1"}, {at(3), ""}, {at(4), "b_1"}, {at(9), "c_1"}},
			[]Handover{{From: "a_1", To: "b_1", Released: at(3), Taken: at(4)}, {From: "b_1", To: "c_1", Taken: at(9)}},
		},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(Handovers(c.versions)).To(Equal(c.want)) })
	}
}

func TestHowLongNobodyLed(t *testing.T) {
	for name, c := range map[string]struct {
		h      Handover
		harmed int
		want   time.Duration
	}{
		"from the kill, if nothing was released":                     {Handover{Taken: at(18)}, 3, 15 * time.Second},
		"from the release, if the leader was asked to end before it": {Handover{Released: at(8), Taken: at(9)}, 3, time.Second},
		"from the kill, if the release was of an earlier time":       {Handover{Released: at(2), Taken: at(9)}, 3, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(c.h.Since(at(c.harmed))).To(Equal(c.want)) })
	}
}

func TestThePodOfALeader(t *testing.T) {
	NewWithT(t).Expect(Lease{Holder: "reprise-manager-7d-x2_3f0c"}.Pod()).To(Equal("reprise-manager-7d-x2"))
}
