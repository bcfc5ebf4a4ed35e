// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// The log of the work server is the witness of what the rules of a queue let be at work at once.

func TestEachRuleOfAQueueBoundsWhatIsAtWorkAloneAndBesideTheOthers(t *testing.T) {
	names := []string{
		"story-ollama-1", "story-remote-2", "research-remote-3", "research-ollama-4", "ollama-5", "remote-6", "remote-7", "plain-8", "story-9", "plain-10",
	}
	for name, c := range map[string]struct {
		rules  batchv1alpha1.QueueConcurrency
		first  string // who is at work at first
		bounds map[string]int
	}{
		"the limit of the queue": {
			rules:  batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](2)},
			first:  "story-ollama-1 story-remote-2",
			bounds: map[string]int{"": 2},
		},
		"a limit for each type": {
			rules:  batchv1alpha1.QueueConcurrency{Types: ofEach(1, 1)},
			first:  "ollama-5 plain-10 plain-8 remote-6 remote-7 research-remote-3 story-ollama-1",
			bounds: map[string]int{"story": 1, "research": 1},
		},
		"named resources": {
			rules:  batchv1alpha1.QueueConcurrency{Resources: thereAre(1, 2)},
			first:  "plain-10 plain-8 research-remote-3 story-9 story-ollama-1 story-remote-2",
			bounds: map[string]int{"ollama": 1, "remote": 2},
		},
		"all together": { // story-remote-2 keeps its place for remote from all who come later
			rules:  batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](3), Types: ofEach(1, 1), Resources: thereAre(1, 2)},
			first:  "plain-10 plain-8 story-ollama-1",
			bounds: map[string]int{"": 3, "story": 1, "research": 1, "ollama": 1, "remote": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			q := w.queue("default", 1, bounding(c.rules))
			for _, name := range names {
				w.create(w.act(s, name, func(r *batchv1alpha1.JobRun) {
					if len(c.rules.Resources) == 0 {
						r.Spec.Claims = nil
					}
				}))
			}
			m := w.start()
			first := strings.Fields(c.first)
			w.Eventually(s.atWork).Should(Equal(first))
			w.shows(q, len(names)-len(first), len(first), 0)
			w.Expect(s.atWork()).To(Equal(first))

			s.endAll()
			for _, name := range names {
				w.eventually(name, batchv1alpha1.JobRunCompleted)
			}
			w.Expect(s.began("")).To(ConsistOf(names), "each once")
			for what, bound := range c.bounds {
				w.Expect(s.most(what)).To(BeNumerically("<=", bound), what)
				if bound == 1 {
					w.Expect(s.began(what)).To(Equal(those(names, what)), "the order is kept among equals")
				}
			}
			w.idempotent(m)
		})
	}
}

// those returns the names that use that, in their order.
func those(names []string, uses string) []string {
	var found []string
	for _, name := range names {
		if partOf(name, uses) {
			found = append(found, name)
		}
	}
	return found
}

func TestARunThatNeedsTwoThingsIsNotStarvedByStreamsThatNeedOneEach(t *testing.T) {
	for name, c := range map[string]struct {
		rules     batchv1alpha1.QueueConcurrency
		one, two  string // the streams
		needsBoth string
	}{
		"two resources":         {batchv1alpha1.QueueConcurrency{Resources: thereAre(1, 1)}, "ollama", "remote", "ollama-remote-both"},
		"a type and a resource": {batchv1alpha1.QueueConcurrency{Types: ofEach(1, 1), Resources: thereAre(1, 1)}, "story", "remote", "story-remote-both"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			const stream = 8
			q := w.queue("default", 1, bounding(c.rules))
			w.create(w.act(s, c.one+"-0"), w.act(s, c.two+"-0"), w.act(s, c.needsBoth))
			for i := 1; i <= stream; i++ {
				w.create(w.act(s, fmt.Sprintf("%s-%d", c.one, i)), w.act(s, fmt.Sprintf("%s-%d", c.two, i)))
			}
			w.create(w.act(s, "plain"))
			w.start()
			w.Eventually(s.atWork).Should(ConsistOf(c.one+"-0", c.two+"-0", "plain"))
			s.end(c.one + "-0")
			w.slotFree(c.one + "-0")
			w.shows(q, 2*stream+1, 2, 0)
			w.Expect(s.atWork()).To(ConsistOf(c.two+"-0", "plain"), "what is free is kept for the one that waits for both")
			s.end(c.two + "-0")
			w.Eventually(s.atWork).Should(ConsistOf(c.needsBoth, "plain"))

			w.shows(q, 2*stream, 2, 0)
			s.endAll()
			for i := 1; i <= stream; i++ {
				w.eventually(fmt.Sprintf("%s-%d", c.one, i), batchv1alpha1.JobRunCompleted)
				w.eventually(fmt.Sprintf("%s-%d", c.two, i), batchv1alpha1.JobRunCompleted)
			}
			for _, what := range []string{c.one, c.two} {
				w.Expect(s.most(what)).To(Equal(1))
				w.Expect(s.began(what)[:3]).To(Equal([]string{what + "-0", c.needsBoth, what + "-1"}))
			}
		})
	}
}

func TestARetryKeepsThePlaceOfItsChainForWhatItNeeds(t *testing.T) {
	for name, rules := range map[string]batchv1alpha1.QueueConcurrency{
		"a type":       {Types: ofEach(1, 1), Resources: thereAre(3, 3)},
		"a resource":   {Types: ofEach(3, 3), Resources: thereAre(1, 1)},
		"all together": {Limit: ptr.To[int32](2), Types: ofEach(1, 1), Resources: thereAre(1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			w.queue("default", 1, bounding(rules))
			w.create(w.act(s, "story-ollama-1"), w.act(s, "story-ollama-2"), w.act(s, "story-ollama-3"))
			m := w.start()
			s.answer("story-ollama-1", http.StatusServiceUnavailable)
			w.Eventually(s.atWork).Should(Equal([]string{"story-ollama-2"}), "a back-off blocks nobody")
			retry := w.eventually("story-ollama-1-r1", batchv1alpha1.JobRunQueued)
			w.Eventually(time.Now).Should(BeTemporally(">", retry.Spec.NotBefore.Time))
			s.end("story-ollama-2")
			w.Eventually(s.atWork).Should(Equal([]string{"story-ollama-1-r1"}))
			s.end("story-ollama-1-r1", "story-ollama-3")
			w.settled("story-ollama-1", batchv1alpha1.ConditionComplete)
			w.eventually("story-ollama-3", batchv1alpha1.JobRunCompleted)
			w.Expect(s.began("")).To(Equal([]string{"story-ollama-1", "story-ollama-2", "story-ollama-1-r1", "story-ollama-3"}))
			w.Expect(s.most("")).To(Equal(1))
			w.idempotent(m)
		})
	}
}

func TestARunThatWaitsForWhatIsTakenLetsPassWhoNeedsSomethingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.queue("default", 1, bounding(batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](3), Types: ofEach(1, 1), Resources: thereAre(1, 2)}))
	w.create(w.act(s, "story-ollama-1"), w.act(s, "story-2"), w.act(s, "ollama-3"), w.act(s, "research-remote-4"), w.act(s, "plain-5"), w.act(s, "plain-6"))
	w.start()
	w.Eventually(s.atWork).Should(Equal([]string{"plain-5", "research-remote-4", "story-ollama-1"}))
	s.end("story-ollama-1")
	w.Eventually(s.atWork).Should(Equal([]string{"plain-5", "research-remote-4", "story-2"}), "who waited longest has the slot")
	s.end("plain-5")
	w.Eventually(s.atWork).Should(Equal([]string{"ollama-3", "research-remote-4", "story-2"}))
	s.endAll()
	w.eventually("plain-6", batchv1alpha1.JobRunCompleted)
	w.Expect(s.most("")).To(Equal(3))
}
