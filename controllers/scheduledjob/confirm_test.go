// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// crowd is a namespace with many ScheduledJobs that are due at seven.
type crowd struct {
	*WithT
	t     *testing.T
	api   client.Client
	clock *clocktesting.FakePassiveClock
	// lists counts the live lists, each of which fails with failure.
	lists   int
	failure error
	confirmation
}

func newCrowd(t *testing.T, n int) (*crowd, []*batchv1alpha1.ScheduledJob) {
	t.Helper()
	c := &crowd{WithT: NewWithT(t), t: t, clock: clocktesting.NewFakePassiveClock(clockTime("07:00:01"))}
	scheme := runtime.NewScheme()
	c.Expect(batchv1alpha1.AddToScheme(scheme)).To(Succeed())
	c.api = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			c.lists++
			return errors.Join(c.failure, api.List(ctx, list, opts...))
		},
	})
	var all []*batchv1alpha1.ScheduledJob
	for i := range n {
		sj := hourly(func(sj *batchv1alpha1.ScheduledJob) {
			sj.Name, sj.UID = fmt.Sprintf("sj-%d", i), types.UID(fmt.Sprint(i))
		})
		c.Expect(c.api.Create(t.Context(), sj)).To(Succeed())
		all = append(all, sj)
	}
	return c, all
}

// confirmed are how many of them are confirmed for the tick at that time of the day.
func (c *crowd) confirmed(all []*batchv1alpha1.ScheduledJob, tick string) int {
	n := 0
	for _, sj := range all {
		if c.confirms(c.t.Context(), c.api, sj, clockTime(tick), c.clock) {
			n++
		}
	}
	return n
}

func TestOneLiveListConfirmsAllThatAreDueAtOnce(t *testing.T) {
	c, all := newCrowd(t, 100)
	c.Expect(c.confirmed(all, "07:00:00")).To(Equal(100 - singleReads))
	c.Expect(c.lists).To(Equal(1))
	c.Expect(c.confirmed(all[singleReads:], "07:00:00")).To(BeZero(), "what has fired is another version soon")
	c.Expect(c.confirmed(all[:singleReads], "07:00:00")).To(Equal(singleReads), "it shows what was read before, too")
	c.Expect(c.lists).To(Equal(1))
}

func TestFewAreReadOneByOne(t *testing.T) {
	c, all := newCrowd(t, singleReads)
	c.Expect(c.confirmed(all, "07:00:00")).To(BeZero())
	c.Expect(c.lists).To(BeZero())
	c.clock.SetTime(clockTime("08:00:00"))
	c.Expect(c.confirmed(all, "08:00:00")).To(BeZero(), "another tick counts anew")
	c.Expect(c.lists).To(BeZero())
}

func TestAFewOfVeryManyAreReadOneByOne(t *testing.T) {
	c, all := newCrowd(t, 100)
	c.confirmation.all = 200 * listedForOneRead
	c.Expect(c.confirmed(all, "07:00:00")).To(BeZero())
	c.Expect(c.lists).To(BeZero())
}

func TestALiveListConfirmsNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*crowd, *batchv1alpha1.ScheduledJob)
		tick   string
	}{
		"than the version that it has shown": {func(_ *crowd, sj *batchv1alpha1.ScheduledJob) { sj.ResourceVersion = "1000" }, "07:00:00"},
		"than what was there":                {func(_ *crowd, sj *batchv1alpha1.ScheduledJob) { sj.UID = "anew" }, "07:00:00"},
		"that is due later":                  {func(*crowd, *batchv1alpha1.ScheduledJob) {}, "07:00:02"},
		"when it is old": {func(c *crowd, _ *batchv1alpha1.ScheduledJob) {
			c.clock.SetTime(clockTime("07:00:01").Add(confirmedFor))
		}, "07:00:00"},
		"when the clock is put back": {func(c *crowd, _ *batchv1alpha1.ScheduledJob) { c.clock.SetTime(clockTime("07:00:00")) }, "07:00:00"},
		"of another kind of answer than a success": {func(c *crowd, _ *batchv1alpha1.ScheduledJob) {
			c.failure = errors.New("no answer")
			c.list(c.t.Context(), c.api, "ns", c.clock.Now())
		}, "07:00:00"},
		"than what is to stay": {func(c *crowd, sj *batchv1alpha1.ScheduledJob) {
			there := &batchv1alpha1.ScheduledJob{}
			c.Expect(c.api.Get(c.t.Context(), client.ObjectKeyFromObject(sj), there)).To(Succeed())
			there.Finalizers = []string{hold}
			c.Expect(c.api.Update(c.t.Context(), there)).To(Succeed())
			c.Expect(c.api.Delete(c.t.Context(), there)).To(Succeed())
			c.Expect(c.api.Get(c.t.Context(), client.ObjectKeyFromObject(sj), sj)).To(Succeed())
			c.list(c.t.Context(), c.api, "ns", c.clock.Now())
		}, "07:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			w, all := newCrowd(t, 2)
			w.list(t.Context(), w.api, "ns", w.clock.Now())
			c.change(w, all[0])
			w.Expect(w.confirmed(all[:1], c.tick)).To(BeZero())
			w.Expect(w.reads).To(BeNumerically("<=", 1))
		})
	}
}

func TestAFireThatAListConfirmsIsNotReadLive(t *testing.T) {
	for name, c := range map[string]struct {
		shown  string // what the list has shown of the ScheduledJob; "" for its version
		change change
		sent   []string
	}{
		"it is as it was":    {"", policy(batchv1alpha1.MissedRunOnce), []string{"create", "record"}},
		"it was changed":     {"1", policy(batchv1alpha1.MissedRunOnce), []string{"read", "create", "record"}},
		"it forbids overlap": {"", forbid, []string{"read", "create", "record"}},
		"it replaces":        {"", replace, []string{"read", "create", "record"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(c.change)
			w.pass()
			w.at(61 * time.Second)
			sj := w.get()
			if c.shown == "" {
				c.shown = sj.ResourceVersion
			}
			sent := w.counted()
			r := w.reconciler()
			known := r.confirmations.in(w.ns)
			known.began, known.versions = w.clock.Now(), map[types.UID]string{sj.UID: c.shown}
			_, err := w.reconcile(r)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(*sent).To(Equal(c.sent))
			w.Expect(w.active()).To(Equal(minutes(1)))
			w.Expect(metav1.IsControlledBy(&w.runs()[0], sj)).To(BeTrue(), "without it nothing is executed")
		})
	}
}
