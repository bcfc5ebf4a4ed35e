// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestAnUnreadyRunIsFoundByItsCreatorAloneUntilItIsReady(t *testing.T) {
	g := NewWithT(t)
	u := newUnready()
	a, b := types.NamespacedName{Namespace: "ns", Name: "a"}, types.NamespacedName{Namespace: "ns", Name: "b"}
	nightly, hourly := creator{"ns", "ScheduledJob", "nightly"}, creator{"ns", "ScheduledJob", "hourly"}
	elsewhere, group := creator{"other", "ScheduledJob", "nightly"}, creator{"ns", "JobGroup", "nightly"}

	u.note("uid-a", awaiting{a, nightly}, true)
	u.note("uid-b", awaiting{b, nightly}, true)
	u.note("uid-retry", awaiting{name: types.NamespacedName{Namespace: "ns", Name: "a-r1"}}, true)
	g.Expect(u.of(nightly)).To(ConsistOf(a, b))
	g.Expect(u.of(elsewhere)).To(BeEmpty())
	g.Expect(u.of(group)).To(BeEmpty())
	g.Expect(u.of(creator{})).To(BeEmpty(), "a retry waits for a run")

	u.note("uid-a", awaiting{a, hourly}, true)
	g.Expect(u.of(nightly)).To(ConsistOf(b))
	g.Expect(u.of(hourly)).To(ConsistOf(a))

	u.note("uid-a", awaiting{a, hourly}, false)
	u.forget("uid-b")
	u.forget("uid-b")
	_, found := u.named("uid-b")
	g.Expect(found).To(BeFalse())
	name, found := u.named("uid-retry")
	g.Expect(found).To(BeTrue())
	g.Expect(name.Name).To(Equal("a-r1"))
	u.forget("uid-retry")
	g.Expect(u.runs).To(BeEmpty())
	g.Expect(u.by).To(BeEmpty(), "nothing is left of what waits no longer")
}
