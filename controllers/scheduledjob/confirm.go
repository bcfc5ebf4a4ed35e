// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// singleReads is how many ScheduledJobs of a namespace that fire the same tick are read live one by one.
	singleReads = 8
	// listedForOneRead is how many ScheduledJobs a live list shows, without their contents, at the price of one live read.
	listedForOneRead = 64
	// confirmedFor is how long a live list confirms what it has shown.
	confirmedFor = 10 * time.Second
)

// confirmations are what live lists have shown of each namespace. They stand in for live reads of single ScheduledJobs: what
// is there, in the version that was decided upon, after its tick was due, is to fire. Whatever becomes of it later refuses the
// record, and without its owner or a record nothing is executed.
type confirmations struct {
	mu         sync.Mutex
	namespaces map[string]*confirmation
}

// confirmation is what a live list has shown of one namespace.
type confirmation struct {
	mu sync.Mutex
	// tick is the latest that was to be confirmed, reads counts the live reads for it.
	tick  time.Time
	reads int
	// began is when the list was asked for, versions what it has shown, but for what was confirmed by it: that is about to be
	// written. all is how many it has shown.
	began    time.Time
	versions map[types.UID]string
	all      int
}

// in returns what is known of a namespace.
func (c *confirmations) in(namespace string) *confirmation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces == nil {
		c.namespaces = map[string]*confirmation{}
	}
	if c.namespaces[namespace] == nil {
		c.namespaces[namespace] = &confirmation{}
	}
	return c.namespaces[namespace]
}

// confirms reports whether a live list that was begun after the tick shows the ScheduledJob in the very version given. If it
// does not, it is to be read live. Once so many are that a list costs less, one asks for it and the others wait.
func (c *confirmation) confirms(ctx context.Context, live client.Reader, sj *batchv1alpha1.ScheduledJob, tick time.Time, clock clock.PassiveClock) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.covers(tick, clock.Now()) {
		if tick.After(c.tick) {
			c.tick, c.reads = tick, 0
		}
		if c.reads++; c.reads <= singleReads || c.reads*listedForOneRead < c.all {
			return false
		}
		c.list(ctx, live, sj.Namespace, clock.Now())
	}
	shown := c.versions[sj.UID]
	delete(c.versions, sj.UID)
	return shown == sj.ResourceVersion
}

// covers reports whether the list was begun after the tick, and not long ago.
func (c *confirmation) covers(tick, now time.Time) bool {
	return len(c.versions) > 0 && !c.began.Before(tick) && !c.began.After(now) && now.Sub(c.began) < confirmedFor
}

// list asks what there is. If there is no answer, everything is read live.
func (c *confirmation) list(ctx context.Context, live client.Reader, namespace string, now time.Time) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind("ScheduledJobList"))
	c.began, c.reads, c.versions = now, 0, map[types.UID]string{}
	if err := live.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return
	}
	c.all = len(all.Items)
	for i := range all.Items {
		if o := &all.Items[i]; o.DeletionTimestamp.IsZero() {
			c.versions[o.UID] = o.ResourceVersion
		}
	}
}
