// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/invariant"
	"reprise.dev/reprise/internal/memoryapi"
)

var (
	jobKind = batchv1.SchemeGroupVersion.WithKind("Job")
	podKind = corev1.SchemeGroupVersion.WithKind("Pod")
)

// watched are the kinds that caches hold, and of which a history is made.
func watched() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{jobKind, podKind}
	for _, kind := range []string{"JobRun", "JobQueue", "ScheduledJob", "JobGroup", "DirectReservation", "QueueLedger"} {
		kinds = append(kinds, batchv1alpha1.GroupVersion.WithKind(kind))
	}
	return kinds
}

// changed takes note of what has been written since it was last called.
func (s *sim) changed() {
	if s.server.RV() == s.seen {
		return
	}
	for _, gvk := range watched() {
		for _, e := range s.server.Events(gvk, s.seen) {
			s.events[gvk] = append(s.events[gvk], e)
			s.history.Versions = append(s.history.Versions, invariant.Version{At: s.now(), Type: e.Type, Object: e.Object})
			s.stir(e)
		}
	}
	s.seen = s.server.RV()
}

// feed puts on the agenda what caches are to be told.
func (s *sim) feed() {
	for _, p := range s.processes {
		if p.ended() || p.paused || !p.manager.cache.running() {
			continue
		}
		for _, i := range p.manager.cache.all() {
			s.feedOne(p, i)
		}
	}
}

func (s *sim) feedOne(p *process, i *informer) {
	if i.scheduled {
		return
	}
	log := s.events[i.gvk]
	switch {
	case !i.HasSynced():
		c := s.chance.of(p.id + " lists " + i.gvk.Kind)
		i.scheduled = true
		s.after(s.delay(c), fmt.Sprintf("%s cache %s", p.id, i.gvk.Kind), func() {
			i.scheduled = false
			s.list(p, i, s.backInTime(p, c, i.gvk))
		})
	case i.position < len(log):
		c := s.chance.of(p.id + " watches " + i.gvk.Kind).nth(i.position)
		i.scheduled = true
		s.after(s.lag(p, i, c), fmt.Sprintf("%s cache %s", p.id, i.gvk.Kind), func() {
			i.scheduled = false
			s.deliver(p, i, c)
		})
	}
}

// lag is how far a cache is behind. Some kinds are far behind some of the time; all of them, if what a process reads from is.
func (s *sim) lag(p *process, i *informer, c chance) time.Duration {
	if s.calm.Load() {
		return c.between(50*time.Microsecond, 2*time.Millisecond)
	}
	period := int(s.now().Sub(s.begin) / lagPeriod)
	slow := s.chance.of(p.id + " lag " + i.gvk.Kind).nth(period)
	if slow.hits(s.plan.Lag) || (s.isBehind(p) && s.now().Sub(p.began) < lagPeriod) {
		return slow.of("how much").between(10*time.Millisecond, 15*time.Second)
	}
	return c.between(50*time.Microsecond, 20*time.Millisecond)
}

// lagPeriod is how long a cache is far behind, if it is.
const lagPeriod = 20 * time.Second

// isBehind reports whether a process reads from an API server that is behind with everything.
func (s *sim) isBehind(p *process) bool { return s.chance.of(p.id + " is behind").hits(s.plan.Old) }

// backInTime is how much of the log the first list of a process shows: up to the same moment for all kinds if it reads from an
// API server that is behind, or each by itself.
func (s *sim) backInTime(p *process, c chance, gvk schema.GroupVersionKind) int {
	log := s.events[gvk]
	switch {
	case s.calm.Load():
		return len(log)
	case s.isBehind(p):
		moment := s.seen - int64(s.chance.of(p.id+" how far").below(60))
		n, _ := slices.BinarySearchFunc(log, moment+1, func(e memoryapi.Event, version int64) int { return cmp.Compare(e.RV, version) })
		return n
	case c.of("old").hits(s.plan.Old):
		return len(log) - c.of("how old").below(len(log)/2+1)
	default:
		return len(log)
	}
}

// deliver tells a cache of the next event, of several, or breaks its watch.
func (s *sim) deliver(p *process, i *informer, c chance) {
	if p.ended() || p.paused {
		return
	}
	log := s.events[i.gvk]
	name := fmt.Sprintf("%s watch %s #%d", p.id, i.gvk.Kind, i.position)
	if s.happens(name+" broken", c.of("broken"), s.plan.Broken) {
		i.scheduled = true
		s.trace("%s breaks", name)
		s.after(c.of("again").between(10*time.Millisecond, 30*time.Second), name+" again", func() {
			i.scheduled = false
			if !p.ended() && !p.paused {
				now := len(s.events[i.gvk])
				s.list(p, i, now-c.of("behind").below(now-i.position))
			}
		})
		return
	}
	n := 1
	if c.of("many").hits(0.3) {
		n = len(log) - i.position
	}
	for range n {
		e := log[i.position]
		i.position++
		i.tell(e)
	}
}

// list shows a cache what there was as of some event.
func (s *sim) list(p *process, i *informer, upTo int) {
	if p.ended() || p.paused {
		return
	}
	upTo = max(upTo, i.position)
	there := map[string]client.Object{}
	for _, e := range s.events[i.gvk][:upTo] {
		if e.Type == watch.Deleted {
			delete(there, nameOf(e.Object))
		} else {
			there[nameOf(e.Object)] = e.Object
		}
	}
	if behind := len(s.events[i.gvk]) - upTo; behind > 0 {
		s.trace("%s lists %s as of %d events ago", p.id, i.gvk.Kind, behind)
	}
	i.position = upTo
	first := !i.HasSynced()
	i.replace(there)
	if first && !slices.ContainsFunc(p.manager.cache.all(), func(i *informer) bool { return !i.HasSynced() }) {
		close(p.manager.cache.filled)
	}
}

// view is what the product's cache keeps of an object.
func (s *sim) view(gvk schema.GroupVersionKind, o client.Object) client.Object {
	if gvk != jobKind && gvk != podKind {
		return o
	}
	if o.GetLabels()[batchv1alpha1.LabelRunUID] == "" {
		return nil
	}
	switch o := o.DeepCopyObject().(type) {
	case *batchv1.Job:
		o.Spec.Template = corev1.PodTemplateSpec{}
		return o
	case *corev1.Pod:
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName}
		o.Status = corev1.PodStatus{Phase: o.Status.Phase}
		return o
	}
	return o
}
