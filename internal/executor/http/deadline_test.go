// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestTheDeadlineIsTheFirstWholeSecondAfterTheTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		seconds   *int64
		now, want time.Time
	}{
		"a whole second stays":             {ptr.To[int64](30), start, start.Add(30 * time.Second)},
		"a part of one is rounded up":      {ptr.To[int64](30), start.Add(time.Millisecond), start.Add(31 * time.Second)},
		"without a timeout by the default": {nil, start, start.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			r := claimed("a", batchv1alpha1.HTTPWork{})
			r.Spec.TimeoutSeconds = c.seconds
			if got := Deadline(r, time.Minute, c.now); !got.Equal(c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestADeadlineSurvivesItsStorage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := start.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "now")))
		seconds := rapid.Int64Range(1, 2592000).Draw(t, "timeout")
		r := claimed("a", batchv1alpha1.HTTPWork{})
		r.Spec.TimeoutSeconds = &seconds
		got := Deadline(r, time.Minute, now)
		if stored := time.Unix(got.Unix(), 0); !stored.Equal(got) {
			t.Fatalf("%s is stored as %s", got, stored)
		}
		if left := got.Sub(now) - time.Duration(seconds)*time.Second; left < 0 || left >= time.Second {
			t.Fatalf("off by %s", left)
		}
	})
}
