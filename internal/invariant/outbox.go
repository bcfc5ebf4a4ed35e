// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"crypto/sha256"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// outboxesGoOn is the part of invariant 11 that holds at any time: an outbox only goes on. It is broken by
//
//   - an announcement that vanishes, or that is there twice;
//   - one that was delivered, and is not any more;
//   - one that was given up and is owed again though nobody asked, or more than once for one value of the annotation;
//   - attempts that are fewer than before though nobody asked for more.
func (w *world) outboxesGoOn() {
	for _, r := range w.runs.all {
		goesOn(w, r, ofRun)
	}
	for _, g := range w.groups.all {
		goesOn(w, g, ofGroup)
	}
}

func goesOn[T client.Object](w *world, l *life[T], of func(T) subject) {
	for i, s := range l.states {
		now := of(s.object).outbox
		for j, a := range now {
			if find(now[:j], to(a), a.Event) != nil {
				w.broken(11, l.subject(), fmt.Sprintf("version %d owes %s to %s twice", s.rv, a.Event, to(a)))
			}
		}
		if i == 0 {
			continue
		}
		for _, before := range of(l.states[i-1].object).outbox {
			w.checked(11)
			if wrong := w.step(before, find(now, to(before), before.Event), resendOf(s.object)); wrong != "" {
				w.broken(11, l.subject(), fmt.Sprintf("in version %d %s to %s %s", s.rv, before.Event, to(before), wrong))
			}
		}
	}
}

// step says what is wrong with one step of an announcement; "" if nothing is.
func (w *world) step(before batchv1alpha1.Announcement, now *batchv1alpha1.Announcement, asked string) string {
	switch {
	case now == nil:
		return "has vanished"
	case before.State == batchv1alpha1.AnnouncementDelivered && now.State != before.State:
		return fmt.Sprintf("was delivered, and is %s", now.State)
	case !w.Complete: // what came between may have been seen by nobody
		return ""
	case now.Resend != before.Resend && now.Resend != asked:
		return fmt.Sprintf("was asked for by %q, and the annotation is %q", now.Resend, asked)
	case now.Resend != before.Resend:
		return ""
	case before.State == batchv1alpha1.AnnouncementAbandoned && now.State != before.State:
		return fmt.Sprintf("was given up, and is %s though nobody asked once more", now.State)
	case now.Attempts < before.Attempts:
		return fmt.Sprintf("was tried %d times, and now it is %d", before.Attempts, now.Attempts)
	default:
		return ""
	}
}

// resendOf is what the annotation of an object asks for, as status keeps it.
func resendOf(o client.Object) string {
	value := o.GetAnnotations()[batchv1alpha1.AnnotationResend]
	if len(value) > 64 {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(value)))
	}
	return value
}
