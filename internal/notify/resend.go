// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// longestResend is the maximum of the CRD, and how long a SHA-256 sum is in hexadecimal digits.
const longestResend = 64

// Resend returns the announcements of the subject with those owed again, in a slice of its own, that were given up, if the
// annotation AnnotationResend asks for it: once for each of its values. They are owed as if the subject had ended now. What
// waits for its next attempt is due at once.
func Resend(s Subject, announcements []batchv1alpha1.Announcement, now time.Time) []batchv1alpha1.Announcement {
	asked := slices.Clone(announcements)
	value := resend(s)
	for i := range asked {
		a := &asked[i]
		if !askedFor(*a, value) {
			continue
		}
		if !owed(*a) {
			at := metav1.NewTime(now).Rfc3339Copy()
			a.State, a.Attempts, a.Message, a.OwedSince = batchv1alpha1.AnnouncementOwed, 0, "", &at
		}
		a.NextAttemptAt = nil
		a.Resend = value
	}
	return asked
}

// InDebt reports whether the subject owes an announcement, or was asked to make one again that it has given up.
func InDebt(s Subject) bool {
	value := resend(s)
	return slices.ContainsFunc(s.Announcements(), func(a batchv1alpha1.Announcement) bool { return owed(a) || askedFor(a, value) })
}

// OwedSince returns since when the announcement of the subject is owed: since the end of the subject, or since it was asked
// for once more. It falls back on the creation, so that not even a damaged record is tried for ever.
func OwedSince(s Subject, a batchv1alpha1.Announcement) time.Time {
	if a.OwedSince != nil {
		return a.OwedSince.Time
	}
	if at := s.FinishedAt(); at != nil {
		return at.Time
	}
	return s.Object().GetCreationTimestamp().Time
}

func askedFor(a batchv1alpha1.Announcement, value string) bool {
	return value != "" && a.Resend != value && a.State != batchv1alpha1.AnnouncementDelivered
}

// resend returns what the annotation says, as it is kept in status; "" if it is absent or empty.
func resend(s Subject) string {
	value := s.Object().GetAnnotations()[batchv1alpha1.AnnotationResend]
	if len(value) <= longestResend {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}
