// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// knobs are the rules of a queue that can be turned, each as a queue that lets n of the runs story-ollama-… work at once.
var knobs = map[string]func(n int32) *batchv1alpha1.QueueConcurrency{
	"the limit of the queue": func(n int32) *batchv1alpha1.QueueConcurrency {
		return &batchv1alpha1.QueueConcurrency{Limit: &n, Types: ofEach(9, 9), Resources: thereAre(9, 9)}
	},
	"the limit of a type": func(n int32) *batchv1alpha1.QueueConcurrency {
		return &batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](9), Types: ofEach(n, 9), Resources: thereAre(9, 9)}
	},
	"the capacity of a resource": func(n int32) *batchv1alpha1.QueueConcurrency {
		return &batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](9), Types: ofEach(9, 9), Resources: thereAre(n, 9)}
	},
}

func TestALimitThatIsChangedWhileRunsAreAtWorkStopsNothingAndBoundsWhatStarts(t *testing.T) {
	for name, rules := range knobs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			const runs = 7
			q := w.queue("default", 1, bounding(*rules(1)))
			turn := func(n int32) {
				t.Helper()
				w.patch(q, func() { q.Spec.Concurrency = rules(n) })
			}
			act := func(i int) string { return fmt.Sprintf("story-ollama-%d", i) }
			for i := 1; i <= runs; i++ {
				w.create(w.act(s, act(i)))
			}
			m := w.start()
			w.Eventually(s.atWork).Should(Equal([]string{act(1)}))
			turn(3)
			w.Eventually(s.atWork).Should(Equal([]string{act(1), act(2), act(3)}))

			turn(1)
			w.shows(q, 4, 3, 0)
			w.Expect(s.atWork()).To(HaveLen(3), "nothing that runs is stopped")
			for i := 1; i <= 2; i++ {
				s.end(act(i))
				w.eventually(act(i), batchv1alpha1.JobRunCompleted)
				w.shows(q, 4, 3-i, 0)
				w.Expect(s.began("")).To(HaveLen(3), "nothing starts while as many are at work")
			}
			s.end(act(3))
			w.Eventually(s.atWork).Should(Equal([]string{act(4)}))
			w.shows(q, 3, 1, 0)

			turn(0)
			w.shows(q, 3, 1, 0)
			w.Expect(s.atWork()).To(Equal([]string{act(4)}))
			s.end(act(4))
			w.eventually(act(4), batchv1alpha1.JobRunCompleted)
			w.shows(q, 3, 0, 0)
			w.Expect(s.began("")).To(HaveLen(4), "0 starts nothing")
			turn(2)
			w.Eventually(s.atWork).Should(Equal([]string{act(5), act(6)}))
			w.shows(q, 1, 2, 0)
			s.endAll()
			for i := 1; i <= runs; i++ {
				w.notStalled(w.eventually(act(i), batchv1alpha1.JobRunCompleted).Name)
			}
			w.Expect(s.began("")).To(HaveLen(runs), "each was at work once")
			w.idempotent(m)
		})
	}
}

func TestWhatALimitOfNothingHoldsBackLetsOthersPass(t *testing.T) {
	for name, c := range map[string]struct {
		rules  batchv1alpha1.QueueConcurrency
		open   func(*batchv1alpha1.QueueConcurrency)
		reason string // that the run is stalled for; empty: it is not
	}{
		"a type with the limit 0": {
			rules: batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](1), Types: ofEach(0, 1), Resources: thereAre(1, 1)},
			open:  func(c *batchv1alpha1.QueueConcurrency) { c.Types = ofEach(1, 1) },
		},
		"a resource with the capacity 0": {
			rules:  batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](1), Types: ofEach(1, 1), Resources: thereAre(0, 1)},
			open:   func(c *batchv1alpha1.QueueConcurrency) { c.Resources = thereAre(1, 1) },
			reason: batchv1alpha1.ReasonExceedsCapacity,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			q := w.queue("default", 1, bounding(c.rules))
			w.create(w.act(s, "story-ollama-1"), w.act(s, "research-remote-2"), w.act(s, "plain-3"))
			m := w.start()
			s.end("research-remote-2", "plain-3")
			w.shows(q, 1, 0, 0)
			if c.reason != "" {
				w.stalled(w.ofRun("story-ollama-1"), c.reason)
			} else {
				w.notStalled("story-ollama-1")
			}
			w.patch(q, func() { c.open(q.Spec.Concurrency) })
			s.end("story-ollama-1")
			w.notStalled(w.eventually("story-ollama-1", batchv1alpha1.JobRunCompleted).Name)
			w.Expect(s.began("")).To(Equal([]string{"research-remote-2", "plain-3", "story-ollama-1"}))
			w.idempotent(m)
		})
	}
}

func TestAQueueThatNamesNoLimitHasOneSlotOrAsManyAsItsTypesAndResourcesAllow(t *testing.T) {
	const runs = 12
	for name, c := range map[string]struct {
		rules  *batchv1alpha1.QueueConcurrency
		atOnce int
	}{
		"nothing at all":        {nil, 1},
		"types without a limit": {&batchv1alpha1.QueueConcurrency{Types: []batchv1alpha1.TypeConcurrency{{Name: "story"}}}, 1},
		"types with a limit":    {&batchv1alpha1.QueueConcurrency{Types: ofEach(1, 1)}, runs},
		"resources":             {&batchv1alpha1.QueueConcurrency{Resources: thereAre(1, 1)}, runs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			q := w.queue("default", 1, func(q *batchv1alpha1.JobQueue) { q.Spec.Concurrency = c.rules })
			for i := range runs {
				w.create(w.act(s, fmt.Sprintf("plain-%d", i)))
			}
			w.start()
			w.Eventually(s.atWork).Should(HaveLen(c.atOnce))
			w.shows(q, runs-c.atOnce, c.atOnce, 0)
			shown := ptr.To[int32](1)
			if c.atOnce == runs {
				shown = nil
			}
			w.Expect(w.readQueue("default").Status.Limit).To(Equal(shown))
			s.endAll()
			for i := range runs {
				w.eventually(fmt.Sprintf("plain-%d", i), batchv1alpha1.JobRunCompleted)
			}
			w.Expect(s.most("")).To(Equal(c.atOnce))
		})
	}
}
