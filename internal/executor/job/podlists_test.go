// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// server answers lists of pods in order, each when the test says so.
type server struct {
	client.Reader
	pods  []corev1.Pod
	asked []string
	// answers are those of the lists, in order: nil for what there is when the answer is given.
	answers chan error
	// stops counts lists that ended before they were answered.
	stops int
	// page is how many pods an answer has; 0: all.
	page int
}

func newServer(names ...string) *server {
	s := &server{answers: make(chan error)}
	for _, name := range names {
		s.add(name)
	}
	return s
}

// add adds a pod that has the name of its run.
func (s *server) add(run string) {
	pod := aPod(run)
	pod.Labels = map[string]string{batchv1alpha1.LabelRunUID: run}
	s.pods = append(s.pods, pod)
}

func (s *server) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	s.asked = append(s.asked, o.Namespace+" "+o.LabelSelector.String())
	select {
	case err := <-s.answers:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		s.stops++
		return ctx.Err()
	}
	pods, _ := list.(*corev1.PodList) // nothing else is listed
	var from int
	_, _ = fmt.Sscan(o.Continue, &from)
	for i, p := range s.pods[from:] {
		if s.page > 0 && i == s.page {
			pods.Continue = fmt.Sprint(from + i)
			break
		}
		if o.LabelSelector.Matches(k8slabels.Set(p.Labels)) {
			pods.Items = append(pods.Items, p)
		}
	}
	return nil
}

// answer lets the list that is on its way be answered, and returns when everybody has it.
func (s *server) answer(err error) {
	s.answers <- err
	synctest.Wait()
}

// ask asks for the pods of a run, and returns once that waits. What it writes to is filled with the answer.
func ask(ctx context.Context, l *podLists, namespace, run string) *answered {
	a := &answered{}
	go func() {
		pods, err := l.of(ctx, namespace, types.UID(run))
		for _, p := range pods {
			a.pods = append(a.pods, p.Name)
		}
		a.err, a.done = err, true
	}()
	synctest.Wait()
	return a
}

type answered struct {
	done bool
	pods []string
	err  error
}

func TestWhoAsksAloneGetsTheirPodsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newServer("a", "b")
		l := &podLists{live: s}
		for range 2 {
			a := ask(t.Context(), l, "ns", "a")
			s.answer(nil)
			g.Expect(*a).To(Equal(answered{done: true, pods: []string{"a"}}))
		}
		g.Expect(s.asked).To(HaveLen(2))
		g.Expect(l.asking).To(BeEmpty(), "nothing is kept of a namespace that nobody asks about")
	})
}

func TestWhoAsksDuringAListGetsTheNextWhichAllShareWhoAskedByThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newServer("a", "c")
		l := &podLists{live: s}
		a := ask(t.Context(), l, "ns", "a")
		b := ask(t.Context(), l, "ns", "b")
		c := ask(t.Context(), l, "ns", "c")
		g.Expect(s.asked).To(HaveLen(1))

		s.answer(nil)
		g.Expect(a.done).To(BeTrue())
		g.Expect(b.done || c.done).To(BeFalse(), "the list that was answered may have begun before what they did")
		g.Expect(s.asked).To(HaveLen(2))
		s.add("b")
		s.answer(nil)
		g.Expect(*b).To(Equal(answered{done: true, pods: []string{"b"}}))
		g.Expect(*c).To(Equal(answered{done: true, pods: []string{"c"}}))
		g.Expect(s.asked).To(Equal([]string{
			"ns " + batchv1alpha1.LabelRunUID + " in (a)",
			"ns " + batchv1alpha1.LabelRunUID + " in (b,c)",
		}))
	})
}

func TestListsOfDifferentNamespacesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		l := &podLists{live: s}
		ask(t.Context(), l, "ns", "a")
		ask(t.Context(), l, "other", "b")
		NewWithT(t).Expect(s.asked).To(HaveLen(2))
		s.answer(nil)
		s.answer(nil)
	})
}

func TestAFailureIsTheFailureOfAllWhoShareTheListAndOfNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		down := errors.New("down")
		s := newServer("a", "b", "c")
		l := &podLists{live: s}
		a := ask(t.Context(), l, "ns", "a")
		b, c := ask(t.Context(), l, "ns", "b"), ask(t.Context(), l, "ns", "c")
		s.answer(nil)
		d := ask(t.Context(), l, "ns", "a")
		s.answer(down)
		s.answer(nil)
		g.Expect(a.err).NotTo(HaveOccurred())
		g.Expect(b.err).To(MatchError(down))
		g.Expect(c.err).To(MatchError(down))
		g.Expect(*d).To(Equal(answered{done: true, pods: []string{"a"}}))
	})
}

func TestWhoStopsWaitingDoesNotHurtTheOthersAndTheLastToDoSoEndsTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newServer("b")
		l := &podLists{live: s}
		first := ask(t.Context(), l, "ns", "x")
		ctxA, stopA := context.WithCancel(t.Context())
		ctxB, stopB := context.WithCancel(t.Context())
		a, b := ask(ctxA, l, "ns", "a"), ask(ctxB, l, "ns", "b")
		s.answer(nil)
		g.Expect(first.done).To(BeTrue())

		stopA() // it was the first of the two
		synctest.Wait()
		g.Expect(a.err).To(MatchError(context.Canceled))
		g.Expect(b.done).To(BeFalse())
		g.Expect(s.stops).To(BeZero())
		s.answer(nil)
		g.Expect(*b).To(Equal(answered{done: true, pods: []string{"b"}}))

		again := ask(ctxB, l, "ns", "b")
		stopB()
		synctest.Wait()
		g.Expect(again.err).To(MatchError(context.Canceled))
		g.Expect(s.stops).To(Equal(1))
		g.Expect(l.asking).To(BeEmpty())
	})
}

func TestAListAsksForABoundedNumberOfRunsAndReadsEveryPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newServer()
		s.page = 64
		l := &podLists{live: s}
		first := ask(t.Context(), l, "ns", "first")
		var all []*answered
		for i := range runsAtOnce + 1 {
			name := fmt.Sprintf("run-%03d", i)
			s.add(name)
			all = append(all, ask(t.Context(), l, "ns", name))
		}
		for !first.done || slices.ContainsFunc(all, func(a *answered) bool { return !a.done }) {
			s.answer(nil)
		}
		for i, a := range all {
			g.Expect(a.pods).To(Equal([]string{fmt.Sprintf("run-%03d", i)}))
		}
		g.Expect(s.asked).To(HaveLen(6), "three lists of two pages")
	})
}
