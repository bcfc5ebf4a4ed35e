// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/metrics"
)

// letterShares is what announcements add to gauges.
func letterShares(namespace string, announcements []batchv1alpha1.Announcement) []metrics.Share {
	var shares []metrics.Share
	for _, a := range announcements {
		switch a.State {
		case batchv1alpha1.AnnouncementOwed:
			shares = append(shares, metrics.Share{Of: metrics.Letters, Value: 1, Labels: []string{namespace, metrics.LetterOwed}})
		case batchv1alpha1.AnnouncementAbandoned:
			shares = append(shares, metrics.Share{Of: metrics.Letters, Value: 1, Labels: []string{namespace, metrics.LetterAbandoned}})
		case batchv1alpha1.AnnouncementDelivered:
		}
	}
	return shares
}

// lettersSent is what has happened to the announcements of a run or group that ended at a time.
func lettersSent(namespace string, before, now []batchv1alpha1.Announcement, ended *metav1.Time, at time.Time) []Observation {
	var all []Observation
	for _, a := range now {
		was := sameLetter(before, a)
		if !a.OwedSince.Equal(was.OwedSince) {
			was.Attempts = 0 // they count since it was asked for once more
		}
		failed := max(a.Attempts-was.Attempts, 0)
		switch {
		case a.State == was.State:
		case a.State == batchv1alpha1.AnnouncementDelivered:
			failed = max(failed-1, 0)
			all = append(all, once(metrics.Notifications, namespace, metrics.DeliveryDone))
			if since := owedSince(a, ended); since != nil {
				all = append(all, lasted(metrics.NotificationLag, at.Sub(since.Time), namespace))
			}
		case a.State == batchv1alpha1.AnnouncementAbandoned:
			all = append(all, once(metrics.Notifications, namespace, metrics.DeliveryAbandoned))
		}
		if failed > 0 {
			all = append(all, Observation{Of: metrics.Notifications, Value: float64(failed), Labels: []string{namespace, metrics.DeliveryFailed}})
		}
	}
	return all
}

func owedSince(a batchv1alpha1.Announcement, ended *metav1.Time) *metav1.Time {
	if a.OwedSince != nil {
		return a.OwedSince
	}
	return ended
}

// sameLetter returns the announcement of the same event to the same receiver, an empty one if there is none.
func sameLetter(among []batchv1alpha1.Announcement, a batchv1alpha1.Announcement) batchv1alpha1.Announcement {
	for _, b := range among {
		if b.Receiver == a.Receiver && b.ScheduledJob == a.ScheduledJob && b.Event == a.Event {
			return b
		}
	}
	return batchv1alpha1.Announcement{}
}
