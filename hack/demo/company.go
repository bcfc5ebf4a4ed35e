// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// leaseName is the name of every manager's leader lease.
const leaseName = "reprise-manager"

// refuseCompany refuses a cluster in which a manager works already: two with different leases would take each other for
// deposed and end.
func (s *stage) refuseCompany(ctx context.Context) error {
	leases := &coordinationv1.LeaseList{}
	if err := s.client.List(ctx, leases); err != nil {
		return err
	}
	for i := range leases.Items {
		if held(&leases.Items[i], time.Now()) {
			return fmt.Errorf("a Reprise manager works in this cluster already (lease %s/%s): the demo starts one of its own, and two must not meet",
				leases.Items[i].Namespace, leaseName)
		}
	}
	return nil
}

// held reports whether somebody renews the lease.
func held(l *coordinationv1.Lease, now time.Time) bool {
	if l.Name != leaseName || ptr.Deref(l.Spec.HolderIdentity, "") == "" || l.Spec.RenewTime == nil {
		return false
	}
	return now.Before(l.Spec.RenewTime.Add(4 * time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 15)) * time.Second))
}
