// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func deletion() table {
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	cases := table{
		"an object without finalizers goes at once": func(s *Script) {
			for _, object := range []string{run, queue, ledger, schedule, reservation, group, pod, lease, secret} {
				o := s.create(called(object, "a"), ok)
				s.delete(o, ok)
				s.get(o, notFound)
				s.delete(o, notFound)
			}
		},
		"an object with a finalizer goes when that is taken away": func(s *Script) {
			for _, object := range []string{run, queue, job, lease} {
				o := s.object(called(object, "a"))
				o.SetFinalizers([]string{"reprise.dev/first", "reprise.dev/second"})
				s.createObject(o, ok)
				s.delete(o, ok, background)
				o = s.get(o, ok)
				s.expect(o.GetDeletionTimestamp() != nil, "it is not being deleted")
				before := o.GetResourceVersion()
				s.delete(o, ok, background)
				o = s.get(o, ok)
				s.expect(o.GetResourceVersion() == before, "the second deletion has changed something")
				s.update(o, "metadata: {finalizers: [reprise.dev/second]}", ok)
				s.update(o, "metadata: {finalizers: null}", ok)
				s.get(o, notFound)
			}
		},
		"an object that is being deleted gets no more finalizers": func(s *Script) {
			for _, object := range []string{run, job} {
				o := s.object(called(object, "a"))
				o.SetFinalizers([]string{"reprise.dev/first"})
				s.createObject(o, ok)
				s.delete(o, ok, background)
				s.update(s.get(o, ok), "metadata: {finalizers: [reprise.dev/first, reprise.dev/late]}", invalid)
			}
		},
		"an object that is being deleted can be written": func(s *Script) {
			o := s.object(called(run, "a"))
			o.SetFinalizers([]string{"reprise.dev/first"})
			s.createObject(o, ok)
			s.delete(o, ok)
			o = s.get(o, ok)
			s.status(o, "status: {phase: Running, slot: Held}", ok)
			s.update(o, "metadata: {labels: {a: b}, deletionTimestamp: null}", ok)
			s.expect(o.GetDeletionTimestamp() != nil, "it is not being deleted any more")
			s.create(called(run, "a"), exists)
		},
		"a status write does not take finalizers away": func(s *Script) {
			o := s.object(called(run, "a"))
			o.SetFinalizers([]string{"reprise.dev/first"})
			s.createObject(o, ok)
			s.delete(o, ok)
			s.status(s.get(o, ok), "{metadata: {finalizers: null}, status: {message: a}}", ok)
			s.get(o, ok)
		},
		"a deletion with the UID of another object is a conflict": func(s *Script) {
			for _, object := range []string{run, job, lease} {
				o := s.create(called(object, "a"), ok)
				s.delete(o, conflict, client.Preconditions{UID: ptr.To(types.UID("other"))}, background)
				s.delete(o, ok, client.Preconditions{UID: ptr.To(o.GetUID())}, background)
				s.get(o, notFound)
			}
		},
		"a deletion with an old version is a conflict": func(s *Script) {
			for _, object := range []string{run, schedule, job, lease} {
				o := s.create(called(object, "a"), ok)
				old := o.GetResourceVersion()
				s.update(o, "metadata: {labels: {a: b}}", ok)
				s.delete(o, conflict, client.Preconditions{UID: ptr.To(o.GetUID()), ResourceVersion: ptr.To(old)}, background)
				s.delete(o, ok, client.Preconditions{UID: ptr.To(o.GetUID()), ResourceVersion: ptr.To(o.GetResourceVersion())}, background)
				s.get(o, notFound)
			}
		},
		"a deletion with an old version of what keeps a finalizer is a conflict": func(s *Script) {
			o := s.object(called(run, "a"))
			o.SetFinalizers([]string{"reprise.dev/first"})
			s.createObject(o, ok)
			old := o.GetResourceVersion()
			s.update(o, "metadata: {labels: {a: b}}", ok)
			s.delete(o, conflict, client.Preconditions{ResourceVersion: ptr.To(old)})
			s.delete(o, ok, client.Preconditions{ResourceVersion: ptr.To(o.GetResourceVersion())})
			s.get(o, ok)
		},
		"a deletion of a version that drops the last finalizer is a conflict, and without the version it is not": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.delete(o, ok, client.PropagationPolicy(metav1.DeletePropagationOrphan))
			o = s.get(o, ok)
			s.delete(o, conflict, client.Preconditions{ResourceVersion: ptr.To(o.GetResourceVersion())}, background)
			s.delete(o, ok, client.Preconditions{UID: ptr.To(o.GetUID())}, background)
			s.get(o, notFound)
		},
		"the policy of a deletion is written as a finalizer": func(s *Script) {
			for name, policy := range map[string]metav1.DeletionPropagation{"orphan": metav1.DeletePropagationOrphan, "foreground": metav1.DeletePropagationForeground} {
				for _, object := range []string{run, job} {
					o := s.create(called(object, name), ok)
					s.lines = nil // the order of this loop is not that of another
					s.delete(o, ok, client.PropagationPolicy(policy))
					read := s.get(o, ok)
					s.expect(fmt.Sprint(read.GetFinalizers()) != "[]", "it has no finalizer")
					s.delete(o, ok, background)
					s.get(o, notFound)
				}
			}
			s.lines = nil
		},
		"a deletion with the policy Background goes at once": func(s *Script) {
			for _, object := range []string{run, schedule, job} {
				o := s.create(called(object, "a"), ok)
				s.delete(o, ok, background)
				s.get(o, notFound)
			}
		},
		"a Job that is deleted without a policy orphans its pods": func(s *Script) {
			o := s.create(called(job, "a"), ok)
			s.delete(o, ok)
			read := s.get(o, ok)
			s.expect(fmt.Sprint(read.GetFinalizers()) == "[orphan]", "the finalizers are %v", read.GetFinalizers())
		},
		"a policy that is none is refused": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.delete(o, invalid, client.PropagationPolicy("Sideways"))
		},
		"a pod on a node has time to end": func(s *Script) {
			o := s.create(called(nodePod, "a"), ok)
			s.delete(o, ok)
			read := s.get(o, ok)
			s.expect(ptr.Deref(read.GetDeletionGracePeriodSeconds(), -1) == 30, "it has %v", read.GetDeletionGracePeriodSeconds())
			s.expect(read.GetGeneration() == 2, "the generation is %d", read.GetGeneration())
			s.delete(o, ok)
			s.expect(s.get(o, ok).GetResourceVersion() == read.GetResourceVersion(), "the second deletion has changed something")
			s.delete(o, ok, client.GracePeriodSeconds(0))
			s.get(o, notFound)
		},
		"the time that a pod has to end is the one that is asked for, and is only shortened": func(s *Script) {
			o := s.create(called(nodePod, "a"), ok)
			s.delete(o, ok, client.GracePeriodSeconds(100))
			s.delete(o, ok, client.GracePeriodSeconds(200))
			s.expect(*s.get(o, ok).GetDeletionGracePeriodSeconds() == 100, "it is longer")
			s.delete(o, ok, client.GracePeriodSeconds(50))
			s.expect(*s.get(o, ok).GetDeletionGracePeriodSeconds() == 50, "it is not shorter")
		},
		"a pod that has ended goes at once": func(s *Script) {
			o := s.create(called(nodePod, "a"), ok)
			s.status(o, "status: {phase: Succeeded}", ok)
			s.delete(o, ok)
			s.get(o, notFound)
		},
		"a pod on a node with a finalizer stays until both are through": func(s *Script) {
			o := s.object(called(nodePod, "a"))
			o.SetFinalizers([]string{"batch.kubernetes.io/job-tracking"})
			s.createObject(o, ok)
			s.delete(o, ok)
			s.delete(o, ok, client.GracePeriodSeconds(0))
			read := s.get(o, ok)
			s.update(read, "metadata: {finalizers: null}", ok)
			s.get(o, notFound)
		},
		"a pod on a node that loses its finalizer first waits for its node": func(s *Script) {
			o := s.object(called(nodePod, "a"))
			o.SetFinalizers([]string{"batch.kubernetes.io/job-tracking"})
			s.createObject(o, ok)
			s.delete(o, ok)
			s.update(s.get(o, ok), "metadata: {finalizers: null}", ok)
			s.get(o, ok)
			s.delete(o, ok, client.GracePeriodSeconds(0))
			s.get(o, notFound)
		},
		"a pod without a node and with a finalizer is marked": func(s *Script) {
			o := s.object(called(pod, "a"))
			o.SetFinalizers([]string{"batch.kubernetes.io/job-tracking"})
			s.createObject(o, ok)
			s.delete(o, ok)
			read := s.get(o, ok)
			s.expect(ptr.Deref(read.GetDeletionGracePeriodSeconds(), -1) == 0, "it has %v", read.GetDeletionGracePeriodSeconds())
			s.update(read, "metadata: {finalizers: null}", ok)
			s.get(o, notFound)
		},
		"all that is selected can be deleted at once": func(s *Script) {
			for i := range 3 {
				o := s.object(called(run, fmt.Sprintf("a%d", i)))
				o.SetLabels(map[string]string{"odd": fmt.Sprint(i%2 == 1)})
				s.createObject(o, ok)
			}
			err := s.client.DeleteAllOf(s.ctx, &batchv1alpha1.JobRun{}, client.InNamespace(s.namespace), client.MatchingLabels{"odd": "false"})
			s.answered("delete all", nil, err, ok)
			found := s.list(&batchv1alpha1.JobRunList{}, ok)
			s.expect(fmt.Sprint(found) == "[a1]", "found %v", found)
		},
	}
	return cases
}
