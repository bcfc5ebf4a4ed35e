// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"testing"
	"unsafe"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestRunsThatWantASlotAreThoseWhoseRecordsSaySo(t *testing.T) {
	g := NewWithT(t)
	q := NewQueue()
	waiting := Entry{Record: Record{Kind: JobRun, Name: "a", ResourceVersion: 1, Key: Key{UID: "uid-a"}, Waiting: true}}
	q.Upsert(waiting)
	q.Upsert(Entry{Record: Record{Kind: JobRun, Name: "b", ResourceVersion: 1, Key: Key{UID: "uid-b"}, Holds: true}})
	q.Upsert(Entry{Record: Record{Kind: DirectReservation, Name: "c", ResourceVersion: 1, Key: Key{UID: "uid-c"}, Waiting: true}})
	q.Workload("uid-d", "uid-d", true)
	g.Expect(maps.Collect(q.WantingRuns())).To(Equal(map[types.UID]string{"uid-a": "a"}))
	g.Expect(q.Wants("uid-a")).To(BeTrue())
	g.Expect(q.Wants("uid-b")).To(BeFalse())
	g.Expect(q.Wants("uid-d")).To(BeFalse())
	for uid, known := range map[types.UID]bool{"uid-a": true, "uid-b": true, "uid-c": true, "uid-d": false, "uid-e": false} {
		g.Expect(q.Knows(uid)).To(Equal(known), string(uid))
	}
	for version, newer := range map[string]bool{"0": true, "1": false, "2": false, "none": false} {
		g.Expect(q.KnowsNewer("uid-a", version)).To(Equal(newer), version)
	}
	g.Expect(q.KnowsNewer("uid-d", "0")).To(BeFalse(), "there is no record of it")
	g.Expect(q.KnowsNewer("uid-e", "0")).To(BeFalse())
	q.Delete("uid-a")
	g.Expect(q.Wants("uid-a")).To(BeFalse())
	g.Expect(q.Knows("uid-a")).To(BeFalse())
	g.Expect(maps.Collect(q.WantingRuns())).To(BeEmpty())
}

func TestARootThatWaitsAloneIsFencedOnceSomethingOfItsChainWorks(t *testing.T) {
	g := NewWithT(t)
	q := NewQueue()
	q.Upsert(Entry{Record: Record{Kind: JobRun, Name: "root", ResourceVersion: 1, Key: Key{UID: "root"}, Waiting: true, Confirmed: true}})
	g.Expect(q.chains).To(BeEmpty(), "most runs are so")
	g.Expect(q.ready.size).To(Equal(1))
	q.Workload("other", "root", true)
	g.Expect(q.ready.size).To(BeZero())
	q.Workload("other", "root", false)
	g.Expect(q.ready.size).To(Equal(1))
	q.Delete("root")
	g.Expect(q.chains).To(BeEmpty())
}

// An item is what a waiting run costs in the picture. One byte more than a size class of Go's allocator costs up to a whole one.
func TestAnItemStaysSmall(t *testing.T) {
	NewWithT(t).Expect(int(unsafe.Sizeof(item{}))).To(BeNumerically("<=", 224))
}
