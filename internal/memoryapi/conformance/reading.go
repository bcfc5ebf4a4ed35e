// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func reading() table {
	cases := table{
		"what is not there is not found": func(s *Script) {
			for _, object := range []string{run, queue, job, pod, lease} {
				s.get(s.object(called(object, "nobody")), notFound)
				s.delete(s.object(called(object, "nobody")), notFound)
			}
		},
		"an object without a name is not asked for": func(s *Script) {
			err := s.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace}, &batchv1alpha1.JobRun{})
			s.answered("get", nil, err, refusedHere)
			err = s.client.Get(s.ctx, client.ObjectKey{Name: "a"}, &batchv1alpha1.JobRun{})
			s.answered("get", nil, err, refusedHere)
		},
		"a list is in the order of names": func(s *Script) {
			for _, name := range []string{"b", "a", "c-1", "c.1", "c", "c0", "a10", "a9"} {
				s.create(called(ledger, name), ok)
			}
			found := s.list(&batchv1alpha1.QueueLedgerList{}, ok)
			s.expect(fmt.Sprint(found) == "[a a10 a9 b c c-1 c.1 c0]", "found %v", found)
		},
		"a list is read page by page": func(s *Script) {
			for i := range 7 {
				s.create(called(queue, fmt.Sprintf("q%d", i)), ok)
			}
			all := s.pages(&batchv1alpha1.JobQueueList{}, 3)
			s.expect(fmt.Sprint(all) == "[q0 q1 q2 q3 q4 q5 q6]", "found %v", all)
		},
		"pages show the objects as they were at the first": func(s *Script) {
			for i := range 4 {
				s.create(called(queue, fmt.Sprintf("q%d", i)), ok)
			}
			list := &batchv1alpha1.JobQueueList{}
			s.list(list, ok, client.Limit(2))
			s.delete(s.object(called(queue, "q2")), ok)
			s.create(called(queue, "q9"), ok)
			found := s.list(list, ok, client.Limit(10), client.Continue(list.Continue))
			s.expect(fmt.Sprint(found) == "[q2 q3]", "found %v", found)
		},
		"a page that is selected does not say how much remains": func(s *Script) {
			for i := range 4 {
				s.create(called(run, fmt.Sprintf("r%d", i)), ok)
			}
			list := &batchv1alpha1.JobRunList{}
			s.list(list, ok, client.Limit(2), client.MatchingFields{"status.phase": "Queued"})
			s.list(list, ok, client.Limit(2), client.MatchingFields{"status.phase": "Queued"}, client.Continue(list.Continue))
			s.list(list, ok, client.Limit(4))
		},
		"a full page has a next one if anything comes after it, selected or not": func(s *Script) {
			for _, name := range []string{"a", "b", "c"} {
				o := s.object(called(run, name))
				o.SetLabels(map[string]string{"x": name})
				s.createObject(o, ok)
			}
			list := &batchv1alpha1.JobRunList{}
			s.list(list, ok, client.Limit(1), client.MatchingLabels{"x": "b"})
			s.expect(list.Continue != "", "there is no next page")
			found := s.list(list, ok, client.Limit(1), client.MatchingLabels{"x": "b"}, client.Continue(list.Continue))
			s.expect(len(found) == 0 && list.Continue == "", "found %v", found)
			s.list(list, ok, client.Limit(1), client.MatchingLabels{"x": "c"})
		},
		"a place to go on from that is none is refused": func(s *Script) {
			s.list(&batchv1alpha1.JobQueueList{}, badRequest, client.Limit(1), client.Continue("somewhere"))
		},
		"objects are selected by label": func(s *Script) {
			for name, labels := range map[string]string{"a": "{x: one}", "b": "{x: two}", "c": "{y: one}", "d": "null"} {
				s.create(`{kind: JobRun, metadata: {name: `+name+`, labels: `+labels+`}, spec: {work: {http: {url: "https://work.example/"}}}}`, ok)
				s.lines = nil // the order of this loop is not that of another
			}
			s.names = map[string]string{s.namespace: "NAMESPACE"}
			found := s.list(&batchv1alpha1.JobRunList{}, ok, client.MatchingLabels{"x": "one"})
			s.expect(fmt.Sprint(found) == "[a]", "found %v", found)
			found = s.list(&batchv1alpha1.JobRunList{}, ok, client.HasLabels{"x"})
			s.expect(fmt.Sprint(found) == "[a b]", "found %v", found)
		},
		"objects are selected by the fields that their kind offers": func(s *Script) {
			a := s.create(called(run, "a"), ok)
			s.create(`{kind: JobRun, metadata: {name: b}, spec: {scheduledJobRef: {name: nightly}}}`, ok)
			s.create(`{kind: JobRun, metadata: {name: c}, spec: {retryOf: a}}`, ok)
			s.status(a, "status: {phase: Running, slot: Held, queue: q}", ok)
			for field, want := range map[string]string{"status.slot=Held": "[a]", "status.phase=Queued": "[b c]", "status.queue=q": "[a]", "spec.retryOf=a": "[c]",
				"spec.scheduledJobRef.name=nightly": "[b]", "metadata.name=b": "[b]", "spec.retryOf=": "[a b]"} {
				found := s.list(&batchv1alpha1.JobRunList{}, ok, fieldsOf(field))
				s.expect(fmt.Sprint(found) == want, "%s: found %v", field, found)
			}
			s.lines = nil // the order of this loop is not that of another
		},
		"objects are not selected by other fields": func(s *Script) {
			s.list(&batchv1alpha1.JobRunList{}, badRequest, client.MatchingFields{"spec.queue": "q"})
			s.list(&batchv1alpha1.JobQueueList{}, badRequest, client.MatchingFields{"status.phase": "q"})
			s.list(&batchv1.JobList{}, badRequest, client.MatchingFields{"spec.suspend": "true"})
		},
		"pods and Jobs are selected by fields of their own": func(s *Script) {
			s.create(called(nodePod, "a"), ok)
			s.create(called(pod, "b"), ok)
			found := s.list(&corev1.PodList{}, ok, client.MatchingFields{"spec.nodeName": "node"})
			s.expect(fmt.Sprint(found) == "[a]", "found %v", found)
			found = s.list(&corev1.PodList{}, ok, client.MatchingFields{"status.phase": "Pending"})
			s.expect(fmt.Sprint(found) == "[a b]", "found %v", found)
			s.create(called(job, "a"), ok)
			found = s.list(&batchv1.JobList{}, ok, client.MatchingFields{"status.successful": "0"})
			s.expect(fmt.Sprint(found) == "[a]", "found %v", found)
		},
		"a list shows nothing of other namespaces": func(s *Script) {
			s.create(called(queue, "a"), ok)
			other := &batchv1alpha1.JobQueueList{}
			err := s.client.List(s.ctx, other, client.InNamespace("kube-system"))
			s.answered("list", nil, err, ok)
			s.expect(len(other.Items) == 0, "found %d", len(other.Items))
			err = s.client.List(s.ctx, other, client.MatchingFields{"metadata.namespace": s.namespace})
			s.answered("list", nil, err, ok)
			s.expect(len(other.Items) == 1, "found %d", len(other.Items))
		},
		"a list into a list that has been used holds only what was found": func(s *Script) {
			s.create(called(queue, "a"), ok)
			list := &batchv1alpha1.JobQueueList{Items: []batchv1alpha1.JobQueue{{Status: batchv1alpha1.JobQueueStatus{Queued: 7}}, {}}}
			list.Continue = "left over"
			found := s.list(list, ok)
			s.expect(len(found) == 1 && list.Items[0].Status.Queued == 0 && list.Continue == "", "it is %+v", list)
		},
		"an empty list has no items": func(s *Script) {
			list := &batchv1alpha1.JobQueueList{}
			s.list(list, ok)
			s.note("nil", fmt.Sprint(list.Items == nil))
			jobs := &batchv1.JobList{}
			s.list(jobs, ok)
			s.note("nil", fmt.Sprint(jobs.Items == nil))
		},
	}
	return cases
}

func patching() table {
	cases := table{
		"a merge patch changes what it names": func(s *Script) {
			o := s.create(`{kind: JobQueue, metadata: {name: a, labels: {a: b, c: d}}, spec: {suspend: true, concurrency: {limit: 2}}}`, ok)
			s.patch(o, `{metadata: {labels: {a: null, e: f}}, spec: {suspend: null, concurrency: {limit: 3}}, status: {queued: 5}}`, ok)
			s.expect(fmt.Sprint(o.GetLabels()) == "map[c:d e:f]" && o.GetGeneration() == 2, "it is %v", o.Object)
		},
		"a merge patch with an old version is a conflict": func(s *Script) {
			o := s.create(called(job, "a"), ok)
			old := o.GetResourceVersion()
			s.patch(o, "metadata: {labels: {a: b}}", ok)
			s.patch(o, `metadata: {resourceVersion: "`+old+`", labels: {a: c}}`, conflict)
			s.patch(o, `metadata: {resourceVersion: "`+o.GetResourceVersion()+`", labels: {a: c}}`, ok)
		},
		"a merge patch that changes nothing keeps the version": func(s *Script) {
			o := s.create(called(job, "a"), ok)
			s.patch(o, "metadata: {labels: {a: b}}", ok)
			before := o.GetResourceVersion()
			s.patch(o, "spec: {suspend: false}", ok)
			s.expect(o.GetResourceVersion() == before, "the version has moved")
		},
		"a merge patch of what is not there finds nothing": func(s *Script) {
			s.patch(s.object(called(job, "a")), "metadata: {labels: {a: b}}", notFound)
		},
		"a merge patch is checked as an update is": func(s *Script) {
			s.patch(s.create(called(run, "a"), ok), "spec: {queue: other}", invalid)
			s.patch(s.create(called(job, "a"), ok), "spec: {completions: 3}", invalid)
			s.patch(s.create(called(job, "b"), ok), `metadata: {name: c}`, badRequest)
		},
		"a patch made of the difference with the version is a write of that version": func(s *Script) {
			j := &batchv1.Job{}
			s.create(called(job, "a"), ok)
			s.expect(s.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "a"}, j) == nil, "no Job")
			old := j.DeepCopy()
			next := j.DeepCopy()
			next.Spec.Suspend = ptr.To(true)
			err := s.client.Patch(s.ctx, next, client.MergeFromWithOptions(j, client.MergeFromWithOptimisticLock{}))
			s.answered("patch", next, err, ok)
			next = old.DeepCopy()
			next.Labels = map[string]string{"late": "yes"}
			err = s.client.Patch(s.ctx, next, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
			s.answered("patch", nil, err, conflict)
		},
		"the status is patched apart": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			data := []byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"priority":3},"status":{"message":"patched"}}`)
			err := s.client.Status().Patch(s.ctx, o, client.RawPatch(types.MergePatchType, data))
			s.answered("patch", o, err, ok)
			s.expect(o.GetLabels() == nil && o.GetGeneration() == 1, "it is %v", o.Object)
		},
	}
	return cases
}
