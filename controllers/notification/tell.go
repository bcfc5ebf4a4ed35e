// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

// Each Event follows a write of its run or group, so that no two are alike and none is counted up by a patch.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

const (
	// reasonUnsigned and reasonAbandoned are the reasons of Events, and actionAnnounce is what was being done.
	reasonUnsigned  = "AnnouncementNotSigned"
	reasonAbandoned = "AnnouncementAbandoned"
	actionAnnounce  = "Announce"
)

// tell tells people of an announcement that went wrong, once it is on record: that it cannot be signed, the first time; and
// that it was given up, unless a person did that by removing its receiver.
func (r *Reconciler) tell(ctx context.Context, seen *snapshot, before, after batchv1alpha1.Announcement) {
	if after.State == batchv1alpha1.AnnouncementAbandoned && before.State != after.State {
		ctrl.LoggerFrom(ctx).Info("announcement given up", "receiver", after.Receiver, "event", after.Event, "attempts", after.Attempts, "why", after.Message)
		if _, named := seen.sources.Receiver(after); named {
			r.warn(seen.subject, reasonAbandoned, fmt.Sprintf("%s was not announced to receiver %s (to have it sent again, annotate the %s with %s=<any new value>): %s",
				after.Event, after.Receiver, seen.subject.Kind(), batchv1alpha1.AnnotationResend, after.Message))
		}
		return
	}
	unsigned := slices.ContainsFunc(seen.results, func(t notify.Attempt) bool { return t.Unsigned && t.IsNewTo(before) })
	if unsigned && after.Message != before.Message {
		r.warn(seen.subject, reasonUnsigned, fmt.Sprintf("%s is not announced to receiver %s until this is put right: %s", after.Event, after.Receiver, after.Message))
	}
}

func (r *Reconciler) warn(s notify.Subject, reason, note string) {
	r.Recorder.Eventf(s.Object(), nil, corev1.EventTypeWarning, reason, actionAnnounce, "%s", note)
}
