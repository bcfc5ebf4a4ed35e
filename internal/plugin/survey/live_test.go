// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/cli"
)

func aRun(name string) *batchv1alpha1.JobRun {
	return &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       batchv1alpha1.JobRunSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{Work: &batchv1alpha1.Work{}}},
	}
}

func forbidden(what string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: what}, "", errors.New("no right"))
}

// cluster is a fake one of which watches can be broken, and lists made to fail.
type cluster struct {
	client.WithWatch

	mu      sync.Mutex
	watches []*watch.RaceFreeFakeWatcher // of runs
	opened  chan struct{}
	deny    func(client.ObjectList) error
}

func aCluster(objects ...client.Object) *cluster {
	c := &cluster{opened: make(chan struct{}, 10), deny: func(client.ObjectList) error { return nil }}
	c.WithWatch = fake.NewClientBuilder().WithScheme(cli.Scheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			c.mu.Lock()
			err := c.deny(list)
			c.mu.Unlock()
			if err != nil {
				return err
			}
			return inner.List(ctx, list, opts...)
		},
		Watch: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
			w := watch.NewRaceFreeFake()
			if _, runs := list.(*batchv1alpha1.JobRunList); runs {
				c.mu.Lock()
				c.watches = append(c.watches, w)
				c.mu.Unlock()
				c.opened <- struct{}{}
			}
			return w, nil
		},
	}).Build()
	return c
}

// watcher returns the watch of runs that was opened last.
func (c *cluster) watcher() *watch.RaceFreeFakeWatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watches[len(c.watches)-1]
}

func (c *cluster) denying(deny func(client.ObjectList) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deny = deny
}

// names of the runs that the snapshot shows.
func names(l *Live) []string {
	s, _ := l.Snapshot()
	var all []string
	for i := range s.Runs {
		all = append(all, s.Runs[i].Name)
	}
	return all
}

func TestALiveSnapshotFollowsWhatHappens(t *testing.T) {
	g := NewWithT(t)
	c := aCluster(aRun("a"), aRun("b"))
	l, err := Watch(t.Context(), c, "ns", testingclock.NewFakeClock(time.Unix(0, 0)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(l)).To(ConsistOf("a", "b"))
	<-c.opened
	c.watcher().Add(aRun("c"))
	c.watcher().Delete(aRun("a"))
	g.Eventually(func() []string { return names(l) }).Should(ConsistOf("b", "c"))
	g.Eventually(l.Changed()).Should(Receive())
}

// A watch that breaks may have missed anything, a deletion too.
func TestAWatchThatBreaksIsMadeAnewAndMissesNothing(t *testing.T) {
	g := NewWithT(t)
	clk := testingclock.NewFakeClock(time.Unix(0, 0))
	c := aCluster(aRun("a"), aRun("b"))
	l, err := Watch(t.Context(), c, "ns", clk)
	g.Expect(err).NotTo(HaveOccurred())
	<-c.opened
	g.Expect(c.Delete(t.Context(), aRun("a"))).To(Succeed())
	g.Expect(c.Create(t.Context(), aRun("c"))).To(Succeed())
	broken := errors.New("connection refused")
	c.denying(func(client.ObjectList) error { return broken })
	c.watcher().Stop()
	g.Eventually(func() error {
		clk.Step(again)
		_, trouble := l.Snapshot()
		return trouble
	}).Should(MatchError(broken))
	g.Expect(names(l)).To(ConsistOf("a", "b"), "what was seen last is better than nothing")
	c.denying(func(client.ObjectList) error { return nil })
	g.Eventually(func() []string {
		clk.Step(again)
		return names(l)
	}).Should(ConsistOf("b", "c"))
	_, trouble := l.Snapshot()
	g.Expect(trouble).NotTo(HaveOccurred())
}

func TestWithoutTheRightToSeePodsTheRestIsRead(t *testing.T) {
	g := NewWithT(t)
	noPods := func(list client.ObjectList) error {
		switch list.(type) {
		case *corev1.PodList:
			return forbidden("pods")
		case *batchv1alpha1.QueueLedgerList:
			return forbidden("queueledgers")
		default:
			return nil
		}
	}
	c := aCluster(aRun("a"))
	c.denying(noPods)
	most, err := Most(t.Context(), c, "ns")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(most.Unread).To(Equal([]string{"pods"}), "the ledgers are nothing that a person misses")
	g.Expect(most.Runs).To(HaveLen(1))
	l, err := Watch(t.Context(), c, "ns", testingclock.NewFakeClock(time.Unix(0, 0)))
	g.Expect(err).NotTo(HaveOccurred())
	live, _ := l.Snapshot()
	g.Expect(live.Unread).To(Equal([]string{"pods"}))

	_, err = All(t.Context(), c, "ns")
	g.Expect(apierrors.IsForbidden(errors.Unwrap(err))).To(BeTrue(), "what needs the pods says so: %v", err)
}

func TestWithoutTheRightToSeeRunsNothingIsTold(t *testing.T) {
	g := NewWithT(t)
	c := aCluster()
	c.denying(func(list client.ObjectList) error {
		if _, runs := list.(*batchv1alpha1.JobRunList); runs {
			return forbidden("jobruns")
		}
		return nil
	})
	for _, read := range []func() error{
		func() error { _, err := Most(t.Context(), c, "ns"); return err },
		func() error {
			_, err := Watch(t.Context(), c, "ns", testingclock.NewFakeClock(time.Unix(0, 0)))
			return err
		},
	} {
		g.Expect(read()).To(MatchError(ContainSubstring("reading jobruns")))
	}
}

func TestOnlyTheNamespaceIsRead(t *testing.T) {
	g := NewWithT(t)
	other := aRun("a")
	other.Namespace = "other"
	working := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "works", Labels: map[string]string{batchv1alpha1.LabelRunUID: "a"}}}
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "foreign"}}
	s, err := All(t.Context(), aCluster(other, aRun("mine"), working, foreign), "ns")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Runs).To(HaveLen(1))
	g.Expect(s.Pods).To(HaveLen(1))
	g.Expect(s.Namespace).To(Equal("ns"))
	g.Expect(s.Unread).To(BeEmpty())
	g.Expect(explain.New(s, time.Unix(0, 0)).Queues()).To(Equal([]string{"default"}), "that of the run, which names none")
}
