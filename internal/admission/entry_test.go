// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestKeysAreOrderedByPriorityThenAgeThenSubmissionThenUID(t *testing.T) {
	want := []Key{
		{Priority: 9, QueuedAt: 50, Sequence: 70, UID: "z"},
		{Priority: 0, QueuedAt: 1, Sequence: 90, UID: "y"},
		{Priority: 0, QueuedAt: 2, Sequence: 9, UID: "x"},
		{Priority: 0, QueuedAt: 2, Sequence: 10, UID: "a"},
		{Priority: 0, QueuedAt: 2, Sequence: 10, UID: "b"},
		{Priority: -1, QueuedAt: 0, Sequence: 1, UID: "w"},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		got := slices.Clone(want)
		random.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, Key.Compare)
		if !slices.Equal(got, want) {
			t.Fatalf("got %v", got)
		}
	}
}

func TestRunEntry(t *testing.T) {
	queued := func(change func(*batchv1alpha1.JobRun)) *batchv1alpha1.JobRun {
		r := &batchv1alpha1.JobRun{
			ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "42", CreationTimestamp: metav1.NewTime(epoch)},
			Spec: batchv1alpha1.JobRunSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{
				Work: &batchv1alpha1.Work{}, Priority: ptr.To[int32](7),
			}},
			Status: batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunQueued},
		}
		if change != nil {
			change(r)
		}
		return r
	}
	base := Entry{Record: Record{
		Kind: JobRun, Name: "a", ResourceVersion: 42, ChainUID: "u", Waiting: true, Confirmed: true,
		Key: Key{Priority: 7, QueuedAt: epoch.Unix(), Sequence: 42, UID: "u"},
	}}
	with := func(f func(*Entry)) Entry { e := base; f(&e); return e }

	for _, c := range []struct {
		name       string
		run        *batchv1alpha1.JobRun
		admissible bool
		want       Entry
	}{
		{"a Queued run waits", queued(nil), true, base},
		{"a run that its controller holds back does not wait", queued(nil), false, with(func(e *Entry) { e.Waiting = false })},
		{
			"a run asked to cancel does not wait",
			queued(func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true }), true,
			with(func(e *Entry) { e.Waiting = false }),
		},
		{
			"a stored sequence outlives later versions",
			queued(func(r *batchv1alpha1.JobRun) { r.Status.Sequence = 12 }), true,
			with(func(e *Entry) { e.Sequence = 12 }),
		},
		{
			"a retry has the place of its chain",
			queued(func(r *batchv1alpha1.JobRun) {
				r.Spec.NotBefore = ptr.To(metav1.NewTime(at(9)))
				r.Spec.RetryOf, r.Spec.Attempt = "root", 1
				fraction := 900 * time.Millisecond // does not count
				r.Spec.Chain = &batchv1alpha1.Chain{RootName: "root", RootUID: "ru", QueuedAt: metav1.NewTime(at(-60).Add(fraction)), Sequence: 3}
			}), true,
			with(func(e *Entry) {
				e.NotBefore, e.ChainUID, e.QueuedAt, e.Sequence = at(9), "ru", at(-60).Unix(), 3
			}),
		},
		{
			"a run has its type and its claims, sorted, and one of what it claims without a count",
			queued(func(r *batchv1alpha1.JobRun) {
				r.Spec.Type = "crawl"
				r.Spec.Claims = []batchv1alpha1.ResourceClaim{{Name: "remote", Count: 2}, {Name: "gpu"}}
			}), true,
			with(func(e *Entry) { e.Type, e.Claims = "crawl", []Claim{{"gpu", 1}, {"remote", 2}} }),
		},
		{
			"a run of a schedule has what it was resolved to",
			queued(func(r *batchv1alpha1.JobRun) {
				r.Spec.Work, r.Spec.Priority = nil, nil
				r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{
					Type: "crawl", Claims: []batchv1alpha1.ResourceClaim{{Name: "gpu", Count: 3}},
				}}
			}), true,
			with(func(e *Entry) { e.Priority, e.Type, e.Claims = 0, "crawl", []Claim{{"gpu", 3}} }),
		},
		{
			"a Running run holds a slot",
			queued(func(r *batchv1alpha1.JobRun) {
				r.Status.Phase, r.Status.Slot = batchv1alpha1.JobRunRunning, batchv1alpha1.SlotHeld
			}), true,
			with(func(e *Entry) { e.Waiting, e.Holds = false, true }),
		},
		{
			"a Failed run whose work has not stopped holds a slot",
			queued(func(r *batchv1alpha1.JobRun) {
				r.Status.Phase, r.Status.Slot = batchv1alpha1.JobRunFailed, batchv1alpha1.SlotHeld
			}), true,
			with(func(e *Entry) { e.Waiting, e.Holds = false, true }),
		},
		{
			"a Failed run whose work has stopped holds nothing",
			queued(func(r *batchv1alpha1.JobRun) {
				r.Status.Phase, r.Status.Slot = batchv1alpha1.JobRunFailed, batchv1alpha1.SlotFree
			}), true,
			with(func(e *Entry) { e.Waiting = false }),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := RunEntry(c.run, true, c.admissible)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, c.want)
			}
			if got.Version() != c.run.ResourceVersion {
				t.Errorf("version %s, want %s", got.Version(), c.run.ResourceVersion)
			}
		})
	}
}

func TestReservationEntry(t *testing.T) {
	for _, c := range []struct {
		name    string
		phase   batchv1alpha1.DirectReservationPhase
		release bool
		want    Entry
	}{
		{"a Pending reservation waits", batchv1alpha1.ReservationPending, false, Entry{Record: Record{Waiting: true}}},
		{"an Active reservation waits as the next in line", batchv1alpha1.ReservationActive, false, Entry{Record: Record{Waiting: true, Active: true}}},
		{"a Granted reservation holds a slot", batchv1alpha1.ReservationGranted, false, Entry{Record: Record{Holds: true}}},
		{"a Pending reservation to be released does not wait", batchv1alpha1.ReservationPending, true, Entry{}},
		{"a Granted reservation to be released holds its slot until it is", batchv1alpha1.ReservationGranted, true, Entry{Record: Record{Holds: true}}},
		{"a Released reservation holds nothing", batchv1alpha1.ReservationReleased, true, Entry{}},
		{"an Expired reservation holds nothing", batchv1alpha1.ReservationExpired, false, Entry{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReservationEntry(&batchv1alpha1.DirectReservation{
				ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "u", ResourceVersion: "42", CreationTimestamp: metav1.NewTime(epoch)},
				Spec:       batchv1alpha1.DirectReservationSpec{Release: c.release},
				Status:     batchv1alpha1.DirectReservationStatus{Phase: c.phase, Sequence: 40},
			})
			c.want.Kind, c.want.Name, c.want.ResourceVersion = DirectReservation, "d", 42
			c.want.Key = Key{QueuedAt: epoch.Unix(), Sequence: 40, UID: "u"}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

func TestAReservationHasItsTypeAndItsClaims(t *testing.T) {
	got, err := ReservationEntry(&batchv1alpha1.DirectReservation{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: "42"},
		Spec: batchv1alpha1.DirectReservationSpec{
			Type: "chat", Claims: []batchv1alpha1.ResourceClaim{{Name: "remote", Count: 2}, {Name: "gpu"}},
		},
	})
	if want := []Claim{{"gpu", 1}, {"remote", 2}}; err != nil || got.Type != "chat" || !slices.Equal(got.Claims, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAVersionThatIsNoNumberIsAnError(t *testing.T) {
	if _, err := RunEntry(&batchv1alpha1.JobRun{}, true, true); err == nil {
		t.Error("a run without resourceVersion was accepted")
	}
	if _, err := ReservationEntry(&batchv1alpha1.DirectReservation{}); err == nil {
		t.Error("a reservation without resourceVersion was accepted")
	}
}
