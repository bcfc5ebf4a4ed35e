// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// story is a part of the life of runs that takes more than one write, all of which the manager makes by itself.
type story struct {
	objects []client.Object
	work    work
	writes  int
	rush    bool // it begins in a rush, which is over once there is nothing to be done in it
}

var stories = map[string]story{
	"a run fails and is retried": {
		objects: []client.Object{queue("main"), queued("a", running(mine))},
		work:    work{look: over(batchv1alpha1.JobRunFailed, true)},
		writes:  3,
	},
	"an orphan is failed and retried in a rush": {
		objects: []client.Object{queue("main"), queued("a", running(before))},
		work:    work{look: unknownOver},
		writes:  3,
		rush:    true,
	},
	"an orphan is failed, stopped and retried in a rush": {
		objects: []client.Object{queue("main"), queued("a", running(before))},
		work:    work{look: alive, stop: executor.Evidence{Life: executor.Alive, Stopped: true}},
		writes:  4,
		rush:    true,
	},
	"a retry of a rush whose first name is taken": {
		objects: []client.Object{queue("main"), queued("a", running(before)), queued("a-r1")},
		work:    work{look: unknownOver},
		writes:  4,
		rush:    true,
	},
	"a run is cancelled": {
		objects: []client.Object{queue("main"), queued("a", running(mine), cancelled)},
		work:    work{look: alive, stop: unknownOver},
		writes:  2,
	},
	"an orphan is failed, stopped and retried": {
		objects: []client.Object{queue("main"), queued("a", running(before))},
		work:    work{look: alive, stop: executor.Evidence{Life: executor.Alive, Stopped: true}},
		writes:  4,
	},
	"an orphan that was being cancelled is failed and stopped": {
		objects: []client.Object{queue("main"), queued("a", cancelling(before))},
		work:    work{look: alive, stop: executor.Evidence{Life: executor.Alive, Stopped: true}},
		writes:  2,
	},
	"a Job is refused": {
		objects: []client.Object{queue("main"), queued("a", maxRetries(0), running(mine))},
		work: work{
			look: neverStarted, starting: &executor.Rejected{Reason: batchv1alpha1.ReasonInvalidWork}, stop: neverStarted,
		},
		writes: 2,
	},
	"a failed run is retried by hand": {
		objects: []client.Object{queue("main"), queued("a", maxRetries(0), failed(true)), queued("again", retrying("a"))},
		writes:  2,
	},
	"the last retry fails for good": {
		objects: []client.Object{
			queue("main"), queued("a", failed(true), withRetry("a-r1", "uid-a-r1")), queued("a-r1", child("a"), maxRetries(1), running(mine)),
		},
		work:   work{look: over(batchv1alpha1.JobRunFailed, true)},
		writes: 2,
	},
	"a retry whose first name is taken": {
		objects: []client.Object{queue("main"), queued("a", failed(true)), queued("a-r1")},
		writes:  3,
	},
}

// tell reconciles every run until nothing is written any more, and returns what the API server has then.
func (s story) tell(t *testing.T, b *bench) []batchv1alpha1.JobRun {
	t.Helper()
	b.work.look, b.work.seal, b.work.stop, b.work.starting = s.work.look, s.work.seal, s.work.stop, s.work.starting
	rush := s.rush
	if rush {
		b.r.rush.begin()
	}
	for range 20 {
		before := b.writes
		for _, r := range b.runs() {
			if _, err := b.reconcile(r.Name); err != nil && !apierrors.IsConflict(err) {
				NewWithT(t).Expect(err).To(MatchError(errAway))
			}
		}
		if b.writes == before && rush {
			b.r.rush.end()
			rush = false
			continue
		}
		if b.writes == before {
			runs := b.runs()
			for i := range runs {
				runs[i].ResourceVersion = ""
				runs[i].Status.Sequence = 0
			}
			return runs
		}
	}
	t.Fatal("no end of writes")
	return nil
}

func TestWhereverAWriteFailsTheNextReconcilesCompleteTheStory(t *testing.T) {
	for name, s := range stories {
		undisturbed := start(t, copies(s.objects)...)
		want := s.tell(t, undisturbed)
		if undisturbed.writes < s.writes {
			t.Errorf("%s takes %d writes, and is to take at least %d", name, undisturbed.writes, s.writes)
		}
		for n := 1; n <= undisturbed.writes; n++ {
			for _, carriedOut := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, write %d is lost, carried out: %t", name, n, carriedOut), func(t *testing.T) {
					b := start(t, copies(s.objects)...)
					b.failOnce(n, carriedOut)
					NewWithT(t).Expect(text(t, s.tell(t, b))).To(Equal(text(t, want)))
				})
			}
		}
	}
}

// TestAManagerThatStartsAgainFindsNothingToDo tells every story twice.
func TestAManagerThatStartsAgainFindsNothingToDo(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, copies(s.objects)...)
			want := s.tell(t, b)
			writes := b.writes
			b.started = nil
			g.Expect(text(t, s.tell(t, b))).To(Equal(text(t, want)))
			g.Expect(b.writes).To(Equal(writes))
		})
	}
}

// text shows runs so that a difference can be read.
func text(t *testing.T, runs []batchv1alpha1.JobRun) string {
	t.Helper()
	out, err := yaml.Marshal(runs)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func copies(objects []client.Object) []client.Object {
	var out []client.Object
	for _, o := range objects {
		out = append(out, o.DeepCopyObject().(client.Object))
	}
	return out
}
