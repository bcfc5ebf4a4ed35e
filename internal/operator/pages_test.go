// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// server has runs, and keeps how it was asked for them. It answers in pages where a page is asked for, as an API server does, and
// tells of changes.
type server struct {
	runs    []batchv1alpha1.JobRun
	changes *watch.FakeWatcher

	mu    sync.Mutex
	asked []metav1.ListOptions
	// expired refuses to go on after the first page.
	expired error
}

func newServer(n int) *server {
	s := &server{changes: watch.NewFakeWithChanSize(10, false)}
	for i := range n {
		s.runs = append(s.runs, *aRun(fmt.Sprintf("run-%d", i), "7"))
	}
	return s
}

func aRun(name, version string) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{}
	r.Namespace, r.Name, r.ResourceVersion = "ns", name, version
	return r
}

func (s *server) from() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asked = append(s.asked, o)
			list := &batchv1alpha1.JobRunList{}
			list.ResourceVersion = "9"
			from := 0
			if o.Continue != "" {
				if s.expired != nil {
					return nil, s.expired
				}
				_, _ = fmt.Sscan(o.Continue, &from)
			}
			to := len(s.runs)
			if o.Limit > 0 && o.ResourceVersion != "0" {
				to = min(to, from+int(o.Limit))
			}
			if to < len(s.runs) {
				list.Continue = fmt.Sprint(to)
			}
			list.Items = append(list.Items, s.runs[from:to]...)
			return list, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asked = append(s.asked, o)
			return s.changes, nil
		},
	}
}

func (s *server) log() []metav1.ListOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]metav1.ListOptions{}, s.asked...)
}

// informer starts one on the server, and waits until it is full.
func (s *server) informer(t *testing.T, before ...func(cache.SharedIndexInformer)) cache.SharedIndexInformer {
	i := newInformer(s.from(), &batchv1alpha1.JobRun{}, 0, cache.Indexers{})
	for _, f := range before {
		f(i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { i.RunWithContext(ctx) })
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
	NewWithT(t).Expect(cache.WaitForCacheSync(ctx.Done(), i.HasSynced)).To(BeTrue())
	return i
}

func TestACacheFillsFromAConsistentListInPagesAndNothingIsStreamed(t *testing.T) {
	g := NewWithT(t)
	s := newServer(1201)
	i := s.informer(t)
	g.Expect(i.GetStore().ListKeys()).To(HaveLen(1201))
	g.Eventually(s.log).Should(HaveLen(4), "three pages, and a watch")
	var more []string
	for _, o := range s.log()[:3] {
		g.Expect(o.ResourceVersion).To(BeEmpty())
		g.Expect(o.Limit).To(BeEquivalentTo(500))
		more = append(more, o.Continue)
	}
	g.Expect(more).To(Equal([]string{"", "500", "1000"}))
	w := s.log()[3]
	g.Expect(w.ResourceVersion).To(Equal("9"))
	g.Expect(w.SendInitialEvents).To(BeNil())
}

func TestACacheWhoseListExpiresBetweenThePagesFillsFromOneList(t *testing.T) {
	g := NewWithT(t)
	s := newServer(1201)
	s.expired = expired()
	g.Expect(s.informer(t).GetStore().ListKeys()).To(HaveLen(1201))
	last := s.log()[2]
	g.Expect(last.Limit).To(BeZero())
	g.Expect(last.ResourceVersion).To(BeEmpty())
}

func expired() error { return apierrors.NewResourceExpired("the continue token is too old") }

// interrupt ends the watch. Until there is another, runs come that the next list has before the others, and after them.
func (s *server) interrupt(before, after []batchv1alpha1.JobRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.changes
	s.runs, s.changes = slices.Concat(before, s.runs, after), watch.NewFakeWithChanSize(10, false)
	status := apierrors.NewResourceExpired("the watch was away for too long").Status()
	gone.Error(&status)
}

// cameAt is a run that was created at a second, as a version.
func cameAt(second int64, version, name string) batchv1alpha1.JobRun {
	r := aRun(name, version)
	r.CreationTimestamp = metav1.Unix(second, 0)
	return *r
}

func TestWhatCameWhileAWatchWasAwayIsToldOfInTheOrderOfTheQueue(t *testing.T) {
	for _, there := range []int{1, 700} { // one list, and pages
		t.Run(fmt.Sprint(there), func(t *testing.T) {
			g := NewWithT(t)
			s := newServer(there)
			e := &ear{}
			i := s.informer(t, func(i cache.SharedIndexInformer) { e, _ = listen(t, i) })
			g.Eventually(e.heard).Should(HaveLen(there))
			urgent := cameAt(3, "24", "z-urgent")
			urgent.Spec.Priority = new(int32(1))
			s.interrupt([]batchv1alpha1.JobRun{cameAt(2, "23", "a-third"), cameAt(1, "21", "b-first")}, []batchv1alpha1.JobRun{cameAt(2, "22", "y-second"), urgent})
			came := func() []string {
				return slices.DeleteFunc(e.heard(), func(s string) bool { return strings.Contains(s, "run-") })
			}
			g.Eventually(came).WithTimeout(time.Minute).Should(HaveLen(4))
			g.Expect(came()).To(Equal([]string{"+z-urgent@24 false", "+b-first@21 false", "+y-second@22 false", "+a-third@23 false"}))
			g.Expect(i.GetStore().ListKeys()).To(HaveLen(there + 4))
			g.Eventually(func() string { log := s.log(); return log[len(log)-1].ResourceVersion }).Should(Equal("9"), "the watch goes on from the list")
		})
	}
}

func TestAListThatWasNotAnsweredWholeIsAnError(t *testing.T) {
	s := newServer(700)
	s.expired = apierrors.NewInternalError(errors.New("the second page"))
	_, err := newPages(s.from(), &batchv1alpha1.JobRun{}).List(metav1.ListOptions{Limit: 500})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("the second page")))
}
