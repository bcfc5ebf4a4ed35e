// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"math"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestEffective(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy *batchv1alpha1.RetryPolicy
		want   Policy
	}{
		{"nothing set is all defaults", nil, Policy{3, 10 * time.Second, time.Hour}},
		{"an empty policy is all defaults", &batchv1alpha1.RetryPolicy{}, Policy{3, 10 * time.Second, time.Hour}},
		{"0 retries are not the default", &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](0)}, Policy{0, 10 * time.Second, time.Hour}},
		{
			"what is set applies",
			&batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](5), BaseDelaySeconds: ptr.To[int32](1), MaxDelaySeconds: ptr.To[int32](60)},
			Policy{5, time.Second, time.Minute},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Effective(c.policy); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestPolicyOfReadsWhatAppliesToTheRun(t *testing.T) {
	resolved := manualRetry("again", "root")
	resolved.Status.ResolvedSpec = ResolveManual(aRun("root", failed, maxRetries(8)), nil, resolved)
	for _, c := range []struct {
		name string
		run  *batchv1alpha1.JobRun
		want int32
	}{
		{"its own policy", aRun("a", maxRetries(7)), 7},
		{"the resolved one", resolved, 8},
		{"defaults before it is resolved", manualRetry("again", "root"), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := PolicyOf(c.run).MaxRetries; got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	for _, c := range []struct {
		name    string
		policy  Policy
		attempt int32
		want    time.Duration
	}{
		{"after the first attempt", Effective(nil), 0, 10 * time.Second},
		{"after the second attempt", Effective(nil), 1, 20 * time.Second},
		{"after the third attempt", Effective(nil), 2, 40 * time.Second},
		{"just below the bound", Effective(nil), 8, 2560 * time.Second},
		{"at the bound", Effective(nil), 9, time.Hour},
		{"after a million attempts", Effective(nil), 1_000_000, time.Hour},
		{"a bound that is a power exactly", Policy{BaseDelay: time.Second, MaxDelay: 4 * time.Second}, 2, 4 * time.Second},
		{"a bound below the base", Policy{BaseDelay: time.Minute, MaxDelay: time.Second}, 0, time.Second},
		{"the longest of durations", Policy{BaseDelay: time.Second, MaxDelay: math.MaxInt64}, 500, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.policy.Delay(c.attempt); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestDelaysDoubleUntilTheBoundAndNeverShrink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			BaseDelay: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "base")),
			MaxDelay:  time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "max")),
		}
		n := rapid.Int32Range(0, 200).Draw(t, "attempt")
		now, next := p.Delay(n), p.Delay(n+1)
		if now <= 0 || now > p.MaxDelay || next < now {
			t.Fatalf("%s, then %s, of at most %s", now, next, p.MaxDelay)
		}
		if next != p.MaxDelay && next != 2*now {
			t.Fatalf("%s, then %s", now, next)
		}
	})
}
