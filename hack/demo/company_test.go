// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestAClusterWithAManagerIsToldFromOneThatHadOne(t *testing.T) {
	now := time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*coordinationv1.Lease)
		held   bool
	}{
		"a lease that is renewed":          {func(*coordinationv1.Lease) {}, true},
		"one whose manager ended in order": {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("") }, false},
		"one that nobody renews":           {func(l *coordinationv1.Lease) { l.Spec.RenewTime.Time = now.Add(-time.Hour) }, false},
		"the lease of something else":      {func(l *coordinationv1.Lease) { l.Name = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			renewed := metav1.NewMicroTime(now.Add(-5 * time.Second))
			l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}}
			l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = ptr.To("somebody"), &renewed, ptr.To[int32](15)
			c.change(l)
			if got := held(l, now); got != c.held {
				t.Errorf("held: %v", got)
			}
		})
	}
}
