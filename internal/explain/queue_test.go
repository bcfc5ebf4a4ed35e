// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
)

func namesOf(answers []Answer) []string {
	out := []string{}
	for _, a := range answers {
		out = append(out, a.Name+" "+a.Reason)
	}
	return out
}

func TestAQueueIsShownInOrder(t *testing.T) {
	g := NewWithT(t)
	lost := aRun("lost", running(-60))
	v := New(seen(
		aQueue(3), aRun("late", running(-5)), aRun("early", running(-10)), aPod(lost, "Running"), aRun("done", running(-60), over(batchv1alpha1.JobRunCompleted, "Succeeded", 0, true)),
		aRun("b", submitted("5")), aRun("a", submitted("9"), priority(1)), aRun("later", notBefore(60)), aReservation("shell", "7"), aRun("elsewhere", inQueue("other")),
	), noon)
	q, ok := v.Queue("main", 3)
	g.Expect(ok).To(BeTrue())
	g.Expect(namesOf(q.Slots)).To(Equal([]string{"lost BeingDeleted", "early Running", "late Running"}))
	g.Expect(namesOf(q.Waiting)).To(Equal([]string{"shell NextInTurn", "a LimitReached", "b LimitReached"}))
	g.Expect([]any{q.Exists, q.Suspended, *q.Limit, q.Total, q.Namespace, q.Name}).To(Equal([]any{true, false, 3, 4, "ns", "main"}))
	all, _ := v.Queue("main", 100)
	g.Expect(namesOf(all.Waiting)).To(HaveLen(4))

	missing, ok := v.Queue("other", 10)
	g.Expect(ok).To(BeTrue(), "a run names it")
	g.Expect(missing.Exists).To(BeFalse())
	g.Expect(namesOf(missing.Waiting)).To(Equal([]string{"elsewhere QueueNotFound"}))
	g.Expect(v.Queues()).To(Equal([]string{"main", "other"}))
}

func TestAnAnswerIsReadableByTools(t *testing.T) {
	g := NewWithT(t)
	a, _ := New(seen(aQueue(1), aRun("busy", running(0)), aRun("a", submitted("2"))), at(60).Time).Run("a")
	text, err := json.Marshal(a)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text).To(MatchJSON(`{"kind":"JobRun","namespace":"ns","name":"a","phase":"Queued","queue":"main","waits":true,"reason":"LimitReached",
		"message":"no slot is free: 1 runs and 0 direct reservations use the queue's limit of 1","details":["held by run busy, Running for 1m"],
		"holders":[{"kind":"JobRun","name":"busy","phase":"Running","since":"2026-11-20T12:00:00Z"}],
		"place":{"number":1,"of":1},"since":"2026-11-20T12:00:00Z"}`))
}

// anything is a namespace with anything in it.
func anything(t *rapid.T) Snapshot {
	objects := []any{aQueue(int32(rapid.IntRange(0, 4).Draw(t, "limit")), withType("a", 1), withType("b", 2), withResource("gpu", 2), func(q *batchv1alpha1.JobQueue) {
		q.Spec.Suspend = rapid.IntRange(0, 9).Draw(t, "suspended") == 0
	})}
	for i := range rapid.IntRange(1, 12).Draw(t, "runs") {
		r := aRun(fmt.Sprint("r", i), submitted(fmt.Sprint(i+1)), ofType(rapid.SampledFrom([]string{"", "a", "b", "odd"}).Draw(t, "type")),
			priority(int32(rapid.IntRange(0, 1).Draw(t, "priority"))), inQueue(rapid.SampledFrom([]string{"main", "main", "main", "nowhere"}).Draw(t, "queue")))
		if n := rapid.IntRange(0, 3).Draw(t, "gpu"); n > 0 {
			claiming("gpu", int32(n))(r)
		}
		if rapid.Bool().Draw(t, "retry") && i > 0 {
			childOf(fmt.Sprint("r", rapid.IntRange(0, i-1).Draw(t, "of")))(r)
		}
		state := rapid.SampledFrom([]change{
			func(*batchv1alpha1.JobRun) {}, func(*batchv1alpha1.JobRun) {}, func(*batchv1alpha1.JobRun) {}, notBefore(100), cancelled, ownedBy("ScheduledJob", "gone"),
			running(-20), cancelling(-20), over(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, -5, true),
			func(r *batchv1alpha1.JobRun) {
				running(-20)(r)
				over(batchv1alpha1.JobRunFailed, "WorkFailed", -5, rapid.Bool().Draw(t, "stopped"))(r)
			},
		}).Draw(t, "state")
		state(r)
		objects = append(objects, r)
		if rapid.IntRange(0, 3).Draw(t, "pod") == 0 {
			objects = append(objects, aJob(r), aPod(r, "Running"))
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "reservations") {
		state := rapid.SampledFrom([]func(*batchv1alpha1.DirectReservation){func(*batchv1alpha1.DirectReservation) {}, active, granted}).Draw(t, "state")
		objects = append(objects, aReservation(fmt.Sprint("d", i), fmt.Sprint(100+i), state))
	}
	return seen(objects...)
}

func TestWhatIsSaidOfEveryRunAgreesWithWhatIsDecided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anything(t)
		v := New(s, at(60).Time)
		admitted := v.Admits("main")
		for i := range s.Runs {
			r := &s.Runs[i]
			a, ok := v.Run(r.Name)
			if !ok || a.Reason == "" || a.Message == "" || a.Phase != string(r.Status.Phase) {
				t.Fatalf("%s: %+v", r.Name, a)
			}
			served := slices.ContainsFunc(admitted, func(e admission.Entry) bool { return e.UID == r.UID })
			if served && (a.Reason != admission.CodeNextInTurn || a.Place == nil || !a.Start.Equal(at(60).Time)) {
				t.Fatalf("%s is admitted now, and the answer is %+v", r.Name, a)
			}
			if a.Place != nil && (a.Place.Number < 1 || a.Place.Number > a.Place.Of) {
				t.Fatalf("%s has the place %+v", r.Name, a.Place)
			}
			if a.Reason == admission.CodeNextInTurn && a.Place.Number == 1 && !served {
				t.Fatalf("%s is the first, nothing is in its way, and it is not admitted: %+v", r.Name, a)
			}
		}
		agreesOnTheQueue(t, v)
	})
}

// agreesOnTheQueue checks that the queue as a whole says what its entries say.
func agreesOnTheQueue(t *rapid.T, v *View) {
	q, ok := v.Queue("main", 1000)
	if !ok || len(q.Waiting) != q.Total {
		t.Fatalf("%d of %d are shown", len(q.Waiting), q.Total)
	}
	place := 0
	for _, a := range q.Waiting {
		alone, _ := v.Run(a.Name)
		if a.Kind == admission.DirectReservation {
			alone, _ = v.Reservation(a.Name)
		}
		if !reflect.DeepEqual(alone, a) {
			t.Fatalf("alone %+v\nin the queue %+v", alone, a)
		}
		if a.Place != nil {
			if place++; a.Place.Number != place {
				t.Fatalf("%s has the place %d, and is shown as number %d", a.Name, a.Place.Number, place)
			}
		}
	}
	if len(q.Slots) > 0 && !slices.IsSortedFunc(q.Slots, func(a, b Answer) int { return a.Since.Compare(b.Since) }) {
		t.Fatal("the slots are not in the order in which they were given")
	}
}

func TestDurationsAreWrittenAsPeopleDo(t *testing.T) {
	g := NewWithT(t)
	for d, want := range map[time.Duration]string{
		0: "0s", 900 * time.Millisecond: "1s", 59 * time.Second: "59s", time.Minute: "1m", 61 * time.Second: "1m1s", 3 * time.Hour: "3h",
		3*time.Hour + 5*time.Minute + 9*time.Second: "3h5m", 48 * time.Hour: "2d", 50*time.Hour + time.Minute: "2d2h",
	} {
		g.Expect(short(d)).To(Equal(want))
	}
}
