// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/invariant"
	"reprise.dev/reprise/internal/operator"
	"reprise.dev/reprise/test/e2e/judge"
)

// leaderLease is the name of the lease for which managers compete.
const leaderLease = "reprise-manager"

// record is what a watch has seen of a namespace: every version of every object, in order.
type record struct {
	mu       sync.Mutex
	versions []invariant.Version
	leases   []judge.Lease
	pods     map[string]*corev1.Pod // by UID, those that are gone included
	runs     map[types.UID]*batchv1alpha1.JobRun
	changed  time.Time
	gaps     error
}

// recordWorld begins to record the namespace of a test, until the test ends.
func recordWorld(w *world) *record {
	w.t.Helper()
	c, err := client.NewWithWatch(here.Config(), client.Options{Scheme: operator.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	r := &record{pods: map[string]*corev1.Pod{}, runs: map[types.UID]*batchv1alpha1.JobRun{}, changed: time.Now()}
	for _, list := range []client.ObjectList{
		&batchv1alpha1.JobRunList{}, &batchv1alpha1.JobQueueList{}, &batchv1alpha1.QueueLedgerList{},
		&batchv1.JobList{}, &corev1.PodList{}, &coordinationv1.LeaseList{},
	} {
		w.Expect(c.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
		w.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			return r.saw(watch.Event{Type: watch.Added, Object: o})
		})).To(Succeed())
		go r.follow(w, c, list, list.GetResourceVersion())
	}
	return r
}

// follow watches one kind from a version on, until the test ends. A watch that breaks leaves a gap.
func (r *record) follow(w *world, c client.WithWatch, list client.ObjectList, at string) {
	var err error
	for err == nil {
		at, err = r.watch(w, c, list, at)
	}
	if w.ctx.Err() == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.gaps = fmt.Errorf("watching %T: %w", list, err)
	}
}

// watch watches one kind until the API server ends the watch, which it does after a while, and returns the version to go on at.
func (r *record) watch(w *world, c client.WithWatch, list client.ObjectList, at string) (string, error) {
	watching, err := c.Watch(w.ctx, list, &client.ListOptions{Namespace: w.ns, Raw: &metav1.ListOptions{ResourceVersion: at}})
	if err != nil {
		return at, err
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if err := r.saw(event); err != nil {
			return at, err
		}
		if at, err = meta.NewAccessor().ResourceVersion(event.Object); err != nil {
			return at, err
		}
	}
	return at, w.ctx.Err()
}

// saw takes what an event tells.
func (r *record) saw(event watch.Event) error {
	now := time.Now()
	if event.Type == watch.Error {
		return fmt.Errorf("the watch broke: %v", event.Object)
	}
	version, known, err := invariant.Watched(now, event)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := event.Object.(*coordinationv1.Lease); ok {
		if l.Name == leaderLease && event.Type != watch.Deleted {
			r.leases = append(r.leases, judge.Lease{At: now, Holder: ptr.Deref(l.Spec.HolderIdentity, "")})
		}
		return nil
	}
	switch o := event.Object.(type) {
	case *corev1.Pod:
		r.pods[string(o.UID)] = o
	case *batchv1alpha1.JobRun:
		r.runs[o.UID] = o
		if event.Type == watch.Deleted {
			delete(r.runs, o.UID)
		}
	}
	if known {
		r.versions = append(r.versions, version)
		r.changed = now
	}
	return nil
}

// leader is the last known version of the leader lease.
func (r *record) leader() judge.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.leases) == 0 {
		return judge.Lease{}
	}
	return r.leases[len(r.leases)-1]
}

// handovers are the changes of leader so far.
func (r *record) handovers() []judge.Handover {
	r.mu.Lock()
	defer r.mu.Unlock()
	return judge.Handovers(r.leases)
}

// left names what is still to come. Nothing, and for a while no change: it has settled.
func (r *record) left() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, run := range r.runs {
		if !run.Status.Phase.Terminal() || run.Status.Slot == batchv1alpha1.SlotHeld {
			all = append(all, fmt.Sprintf("%s is %s, slot %s", run.Name, run.Status.Phase, run.Status.Slot))
		}
	}
	if quiet := time.Since(r.changed); len(all) == 0 && quiet < calm {
		all = append(all, "the last change was "+strconv.FormatInt(quiet.Milliseconds(), 10)+" ms ago")
	}
	slices.Sort(all)
	return all
}

// versionsOf are the states of one run, in order.
func (r *record) versionsOf(name string) []*batchv1alpha1.JobRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*batchv1alpha1.JobRun
	for _, v := range r.versions {
		if run, ok := v.Object.(*batchv1alpha1.JobRun); ok && run.Name == name {
			all = append(all, run)
		}
	}
	return all
}

// calm is how long nothing may change before all counts as settled: longer than the back-off between the tests' attempts.
const calm = 3 * time.Second

// keepsPromises waits until everything has settled, and checks all invariants: by what the watch has seen, and by the times of the
// container runtime.
func (i *installation) keepsPromises() {
	i.t.Helper()
	i.Eventually(i.seen.left).Should(BeEmpty(), "what is left")
	i.seen.mu.Lock()
	pods, gaps := maps.Clone(i.seen.pods), i.seen.gaps
	past := invariant.History{Versions: slices.Clone(i.seen.versions), Complete: true, Settled: true, Until: time.Now()}
	i.seen.mu.Unlock()
	i.Expect(gaps).NotTo(HaveOccurred(), "the record of the namespace has gaps")
	i.Expect(i.node.Follow().Err()).NotTo(HaveOccurred(), "the journal of the container runtime has gaps")
	var err error
	past.Acts, err = judge.Acts(i.containers(), pods)
	i.Expect(err).NotTo(HaveOccurred())
	report := invariant.Check(past)
	i.Expect(report.Violations).To(BeEmpty(), "%s", report)
	for _, n := range []int{3, 4, 13} {
		i.Expect(report.Checked).To(HaveKey(n), "nothing was looked at for invariant %d", n)
	}
}
