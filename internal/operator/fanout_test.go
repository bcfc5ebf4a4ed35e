// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// ear keeps what it is told.
type ear struct {
	mu   sync.Mutex
	told []string
}

func (e *ear) note(format string, all ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, o := range all {
		if r, ok := o.(*batchv1alpha1.JobRun); ok {
			all[i] = r.Name + "@" + r.ResourceVersion
		}
	}
	e.told = append(e.told, fmt.Sprintf(format, all...))
}

func (e *ear) OnAdd(o any, first bool)  { e.note("+%v %v", o, first) }
func (e *ear) OnUpdate(before, now any) { e.note("%v>%v", before, now) }
func (e *ear) OnDelete(o any)           { e.note("-%v", o) }

func (e *ear) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.told)
}

func listen(t *testing.T, i cache.SharedIndexInformer) (*ear, cache.ResourceEventHandlerRegistration) {
	e := &ear{}
	r, err := i.AddEventHandler(e)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return e, r
}

func TestEveryHandlerIsToldOfEveryChangeInOrder(t *testing.T) {
	g := NewWithT(t)
	s := newServer(1)
	var early []*ear
	var synced []cache.InformerSynced
	i := s.informer(t, func(i cache.SharedIndexInformer) {
		for range 3 {
			e, r := listen(t, i)
			early, synced = append(early, e), append(synced, r.HasSynced)
			g.Expect(r.HasSynced()).To(BeFalse())
		}
	})
	g.Expect(cache.WaitForCacheSync(t.Context().Done(), synced...)).To(BeTrue())
	for _, e := range early {
		g.Expect(e.heard()).To(Equal([]string{"+run-0@7 true"}), "whoever is synced has been told of all")
	}
	s.changes.Add(aRun("new", "8"))
	s.changes.Modify(aRun("new", "9"))
	s.changes.Delete(aRun("new", "10"))
	for _, e := range early {
		g.Eventually(e.heard).Should(Equal([]string{"+run-0@7 true", "+new@8 false", "new@8>new@9", "-new@10"}))
	}
	g.Expect(i.GetStore().ListKeys()).To(HaveLen(1))
}

func TestAHandlerThatComesLateIsToldOfAllThatIsThereAndOfWhatFollows(t *testing.T) {
	g := NewWithT(t)
	s := newServer(2)
	first := &ear{}
	i := s.informer(t, func(i cache.SharedIndexInformer) { first, _ = listen(t, i) })
	g.Eventually(first.heard).Should(HaveLen(2))

	late, r := listen(t, i)
	g.Expect(late.heard()).To(ConsistOf("+run-0@7 true", "+run-1@7 true"))
	g.Expect(r.HasSynced()).To(BeTrue())
	s.changes.Modify(aRun("run-1", "8"))
	g.Eventually(late.heard).Should(ContainElement("run-1@7>run-1@8"))

	only, r := listen(t, newServer(3).informer(t))
	g.Expect(cache.WaitForCacheSync(t.Context().Done(), r.HasSynced)).To(BeTrue())
	g.Expect(only.heard()).To(HaveLen(3), "the first that comes may be late, too")
}

func TestALateHandlerMissesNothingWhileEverythingChanges(t *testing.T) {
	const changes = 200
	g := NewWithT(t)
	s := newServer(0)
	i := s.informer(t, func(i cache.SharedIndexInformer) { listen(t, i) })
	go func() {
		for n := range changes {
			s.changes.Add(aRun(fmt.Sprint("run-", n), fmt.Sprint(10+n)))
		}
	}()
	var all []*ear
	for range 20 {
		e, _ := listen(t, i)
		all = append(all, e)
	}
	for _, e := range all {
		for n := range changes {
			g.Eventually(e.heard).Should(ContainElement(HavePrefix(fmt.Sprintf("+run-%d@", n))))
		}
	}
}

func TestAHandlerThatIsRemovedIsToldNothingMore(t *testing.T) {
	g := NewWithT(t)
	s := newServer(0)
	i := s.informer(t)
	goes, r := listen(t, i)
	stays, _ := listen(t, i)
	g.Expect(i.RemoveEventHandler(r)).To(Succeed())
	g.Expect(i.RemoveEventHandler(r)).To(Succeed(), "once more")
	s.changes.Add(aRun("new", "8"))
	g.Eventually(stays.heard).Should(HaveLen(1))
	g.Expect(goes.heard()).To(BeEmpty())
}

func TestRunsAreNotKeptInASetForEachNamespaceAndWhoAsksForOneGetsAnError(t *testing.T) {
	g := NewWithT(t)
	by := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "field:chain": cache.MetaNamespaceIndexFunc}
	runs := newInformer(newServer(0).from(), &batchv1alpha1.JobRun{}, 0, by).GetIndexer()
	g.Expect(runs.GetIndexers()).To(HaveLen(1))
	_, err := runs.ByIndex(cache.NamespaceIndex, "ns")
	g.Expect(err).To(HaveOccurred())
	g.Expect(newInformer(newServer(0).from(), &batchv1alpha1.JobQueue{}, 0, by).GetIndexer().GetIndexers()).To(HaveLen(2))
}
