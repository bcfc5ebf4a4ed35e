// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// scene is a waiting command and what it sees.
type scene struct {
	*WithT
	api   client.WithWatch
	f     *Factory
	clock *testclock.FakeClock
	lists int           // that fail
	seen  chan struct{} // each look at the run
}

func newScene(t *testing.T) *scene {
	s := &scene{WithT: NewWithT(t), clock: testclock.NewFakeClock(time.Unix(0, 0)), seen: make(chan struct{}, 100)}
	s.f = NewFactory(genericiooptions.NewTestIOStreamsDiscard())
	s.f.Clock = s.clock
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	s.api = fake.NewClientBuilder().WithScheme(Scheme()).WithIndex(&batchv1alpha1.JobRun{}, "metadata.name", byName).
		WithObjects(&batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "1"}}).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if s.lists > 0 {
				s.lists--
				return errors.New("the connection is broken")
			}
			return c.List(ctx, list, opts...)
		}}).Build()
	return s
}

func (s *scene) wait(ctx context.Context, timeout time.Duration) <-chan error {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "1"}}
	done := make(chan error, 1)
	go func() {
		done <- Until(ctx, s.f, s.api, r, &batchv1alpha1.JobRunList{}, timeout, func(now *batchv1alpha1.JobRun) (bool, error) {
			s.seen <- struct{}{}
			return now.Spec.Cancel, nil
		})
	}()
	return done
}

func (s *scene) change(t *testing.T) {
	s.Expect(s.api.Patch(t.Context(), &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}},
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"cancel":true}}`)))).To(Succeed())
}

func TestAWaitEndsWhenWhatItWaitsForIsSeen(t *testing.T) {
	s := newScene(t)
	done := s.wait(t.Context(), 0)
	s.Eventually(s.seen).Should(Receive())
	s.change(t)
	// A change between the list and the watch is seen by neither of the fake API server; the real one tells of it.
	s.Eventually(func() any {
		select {
		case err := <-done:
			s.Expect(err).NotTo(HaveOccurred())
			return true
		default:
			s.change(t)
			return false
		}
	}, time.Minute).Should(BeTrue())
}

func TestAWaitGoesOnWhenTheConnectionBreaks(t *testing.T) {
	s := newScene(t)
	s.lists = 2
	done := s.wait(t.Context(), 0)
	for range 2 {
		s.Eventually(s.clock.HasWaiters).Should(BeTrue())
		s.clock.Step(again)
	}
	s.Eventually(s.seen).Should(Receive())
	s.Expect(done).NotTo(Receive())
}

func TestAWaitForWhatIsDeletedIsAnError(t *testing.T) {
	s := newScene(t)
	s.Expect(s.api.DeleteAllOf(t.Context(), &batchv1alpha1.JobRun{}, client.InNamespace("ns"))).To(Succeed())
	err := <-s.wait(t.Context(), 0)
	s.Expect(err).To(MatchError(ErrDeleted))
	s.Expect(err.Error()).To(Equal("x was deleted"))
}

func TestAWaitEndsWithItsTimeAndWithItsContext(t *testing.T) {
	s := newScene(t)
	err := <-s.wait(t.Context(), time.Millisecond)
	s.Expect(Code(err)).To(Equal(ExitTimeout))

	ctx, cancel := context.WithCancelCause(t.Context())
	done := s.wait(ctx, 0)
	why := errors.New("that is why")
	cancel(why)
	s.Expect(<-done).To(MatchError(why))
}
