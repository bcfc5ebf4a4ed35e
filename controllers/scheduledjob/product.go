// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/history"
	"reprise.dev/reprise/internal/run"
)

// product is what a tick makes: a run, which counts as one together with its retries, or a group. What a person makes for
// the ScheduledJob counts as well. Everything else in this package speaks of products, so that overlap, the maximum and what
// is on record mean the same for both kinds.
type product struct {
	// kind in a word, for people: run or group.
	kind string
	// uid by which status knows it: of the group, or of the first run of the chain.
	uid types.UID
	// object is the group, or the first run of the chain; nil if that was deleted and retries of it are left.
	object client.Object
	// scheduledJob that the object names; "" for none.
	scheduledJob string
	// tick that made the object; nil for what a person made, and for retries.
	tick *time.Time
	// waits says that nothing of the object has begun, ended that it has its outcome.
	waits, ended bool
	// settled says that nothing goes on without a person, stopped that nothing of its work lives.
	settled, stopped bool
	// parts are what is to be asked to end: the group, or all runs of the chain.
	parts []client.Object
}

// over reports whether nothing can overlap with it any more. What has settled may take its time to stop.
func (p product) over() bool { return p.settled && p.stopped }

// isFireOf reports whether it was made for that tick of the ScheduledJob, by whomever. The ScheduledJob is known by its name:
// one that was deleted and made again has run what it ran before.
func (p product) isFireOf(sj *batchv1alpha1.ScheduledJob, tick time.Time) bool {
	return p.tick != nil && p.scheduledJob == sj.Name && p.tick.Equal(tick)
}

// leaving reports whether it is about to be deleted together with an earlier ScheduledJob of the same name, without ever
// having been executed. It says nothing about its tick.
func (p product) leaving(sj *batchv1alpha1.ScheduledJob) bool {
	if !p.waits {
		return false
	}
	owner := metav1.GetControllerOf(p.object)
	return p.object.GetDeletionTimestamp() != nil || (owner != nil && owner.Kind == "ScheduledJob" && owner.UID != sj.UID)
}

// entry is how status names it. Only what a tick has made is named.
func (p product) entry() batchv1alpha1.ActiveRun {
	return batchv1alpha1.ActiveRun{Name: p.object.GetName(), UID: p.uid, ScheduledTime: metav1.NewTime(*p.tick)}
}

// productOf returns the product that an object is by itself.
func productOf(o client.Object) product {
	switch o := o.(type) {
	case *batchv1alpha1.JobGroup:
		return groupProduct(o)
	case *batchv1alpha1.JobRun:
		alone := history.Chain{UID: o.UID, Runs: []*batchv1alpha1.JobRun{o}}
		if run.IsRoot(o) {
			alone.Root = o
		}
		return chainProduct(alone)
	default:
		return product{}
	}
}

func groupProduct(g *batchv1alpha1.JobGroup) product {
	ended := g.Status.Phase.Terminal() // by then everything of it has stopped
	return product{
		kind: "group", uid: g.UID, object: g, scheduledJob: nameIn(g.Spec.ScheduledJobRef), tick: timeOf(g.Spec.ScheduledTime),
		waits: g.Status.Phase == batchv1alpha1.JobGroupPending, ended: ended, settled: ended, stopped: ended,
		parts: []client.Object{g},
	}
}

func chainProduct(c history.Chain) product {
	p := product{kind: "run", uid: c.UID, ended: c.Settled(), settled: c.Settled(), stopped: c.Stopped()}
	for _, r := range c.Runs {
		p.parts = append(p.parts, r)
	}
	if first := c.Root; first != nil {
		p.object, p.scheduledJob = first, nameIn(first.Spec.ScheduledJobRef)
		p.waits, p.ended = first.Status.Phase == batchv1alpha1.JobRunQueued, first.Status.Phase.Terminal()
		if run.IsRoot(first) {
			p.tick = timeOf(first.Spec.ScheduledTime)
		}
	}
	return p
}

// products sorts what there is of a ScheduledJob.
func products(runs []batchv1alpha1.JobRun, groups []batchv1alpha1.JobGroup) []product {
	var all []product
	for _, c := range history.Chains(runs) {
		all = append(all, chainProduct(c))
	}
	for i := range groups {
		all = append(all, groupProduct(&groups[i]))
	}
	return all
}

// newObject builds what a tick makes. It has no owner if the ScheduledJob is to be deleted after the fire: that must not take
// it along.
func newObject(sj *batchv1alpha1.ScheduledJob, tick time.Time, collision int32) client.Object {
	about := metav1.ObjectMeta{Namespace: sj.Namespace, Name: productName(sj.Name, tick, collision)}
	if sj.Spec.TTLSecondsAfterFired == nil {
		about.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: batchv1alpha1.GroupVersion.String(),
			Kind:       "ScheduledJob",
			Name:       sj.Name,
			UID:        sj.UID,
			Controller: ptr.To(true),
		}}
	}
	from, at := &batchv1alpha1.ObjectName{Name: sj.Name}, ptr.To(metav1.NewTime(tick))
	if t := sj.Spec.GroupTemplate; t != nil {
		return &batchv1alpha1.JobGroup{ObjectMeta: about, Spec: batchv1alpha1.JobGroupSpec{
			JobGroupTemplateSpec: *t.DeepCopy(), ScheduledJobRef: from, ScheduledTime: at,
		}}
	}
	r := &batchv1alpha1.JobRun{ObjectMeta: about, Spec: batchv1alpha1.JobRunSpec{
		JobRunTemplateSpec: *sj.Spec.RunTemplate.DeepCopy(), ScheduledJobRef: from, ScheduledTime: at,
	}}
	if r.Spec.Queue == "" {
		r.Spec.Queue = batchv1alpha1.DefaultQueue
	}
	return r
}

// blank is an empty object of the same kind.
func blank(like client.Object) client.Object {
	if _, group := like.(*batchv1alpha1.JobGroup); group {
		return &batchv1alpha1.JobGroup{}
	}
	return &batchv1alpha1.JobRun{}
}

// kinds are empty objects of all kinds that a tick can have made, since the template may be changed from one to the other.
func kinds() []client.Object {
	return []client.Object{&batchv1alpha1.JobRun{}, &batchv1alpha1.JobGroup{}}
}

func nameIn(ref *batchv1alpha1.ObjectName) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}
