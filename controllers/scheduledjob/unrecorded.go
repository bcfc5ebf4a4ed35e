// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// unrecorded is what this process has made for ticks and not recorded so far. Own writes count at once: the cache may not show
// it yet when the next tick is due. After a crash the cache does, which is read anew.
type unrecorded struct {
	mu   sync.Mutex
	made map[types.NamespacedName][]batchv1alpha1.ActiveRun
}

// add remembers what a ScheduledJob has made.
func (u *unrecorded) add(sj types.NamespacedName, made batchv1alpha1.ActiveRun) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.made == nil {
		u.made = map[types.NamespacedName][]batchv1alpha1.ActiveRun{}
	}
	if !slices.ContainsFunc(u.made[sj], func(m batchv1alpha1.ActiveRun) bool { return m.UID == made.UID }) {
		u.made[sj] = append(u.made[sj], made)
	}
}

// of returns what a ScheduledJob has made.
func (u *unrecorded) of(sj types.NamespacedName) []batchv1alpha1.ActiveRun {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.made[sj]
}

// forget what a ScheduledJob has made, which is on record, or never will be.
func (u *unrecorded) forget(sj types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.made, sj)
}
