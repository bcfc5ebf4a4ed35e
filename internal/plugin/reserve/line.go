// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/text"
	"reprise.dev/reprise/internal/reservation"
)

const (
	// unseen is how long a manager may take to look at a reservation before somebody is told.
	unseen = 10 * time.Second
	// named is how many holders are named.
	named = 3
)

// standing tells a person where a reservation that waits stands. It does not change as long as nothing but time passes.
func standing(own *batchv1alpha1.DirectReservation, others []batchv1alpha1.DirectReservation, runs []batchv1alpha1.JobRun, now time.Time) string {
	stalled := meta.FindStatusCondition(own.Status.Conditions, batchv1alpha1.ConditionStalled)
	before, holders := around(own, others, runs)
	switch {
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return "cannot be served as things are: " + text.Line(stalled.Message)
	case own.Status.ObservedGeneration < 0 && now.Sub(own.CreationTimestamp.Time) > unseen:
		return "was not looked at yet: is the manager of Reprise running?"
	case before == 1:
		return "waits for its turn: 1 reservation is before it"
	case before > 1:
		return fmt.Sprintf("waits for its turn: %d reservations are before it", before)
	case own.Status.Phase != batchv1alpha1.ReservationActive:
		return "waits for its turn"
	case len(holders) > 0:
		return "is next in line: the slots are held by " + enumerate(holders)
	default:
		return "is next in line"
	}
}

// around returns how many reservations are before one in its queue, and who holds the slots.
func around(own *batchv1alpha1.DirectReservation, others []batchv1alpha1.DirectReservation, runs []batchv1alpha1.JobRun) (before int, holders []string) {
	queue := reservation.Queue(own)
	for i := range runs {
		if runs[i].Status.Queue == queue {
			holders = append(holders, "run "+runs[i].Name)
		}
	}
	for i := range others {
		switch o := &others[i]; {
		case o.UID == own.UID || reservation.Queue(o) != queue || o.Status.Phase.Terminal():
		case o.Status.Phase == batchv1alpha1.ReservationGranted:
			holders = append(holders, fmt.Sprintf("reservation %s of %s", o.Name, holderOf(o)))
		case earlier(o, own):
			before++
		}
	}
	return before, holders
}

// earlier says whether a reservation was made before another.
func earlier(a, b *batchv1alpha1.DirectReservation) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Status.Sequence, b.Status.Sequence), cmp.Compare(a.UID, b.UID)) < 0
}

func enumerate(names []string) string {
	if more := len(names) - named; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:named], ", "), more)
	}
	return strings.Join(names, ", ")
}

// look reads what standing needs. What cannot be read is not told of.
func look(ctx context.Context, api client.Reader, namespace string) ([]batchv1alpha1.DirectReservation, []batchv1alpha1.JobRun) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	reservations, runs := &batchv1alpha1.DirectReservationList{}, &batchv1alpha1.JobRunList{}
	_ = api.List(ctx, reservations, client.InNamespace(namespace))
	_ = api.List(ctx, runs, client.InNamespace(namespace), client.MatchingFields{"status.slot": string(batchv1alpha1.SlotHeld)})
	return reservations.Items, runs.Items
}
