// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// called is an object of objects.go by a name.
func called(object, name string) string { return strings.ReplaceAll(object, "NAME", name) }

// custom are our kinds, one object of each, by the kind.
func custom() map[string]string {
	return map[string]string{
		"JobRun": run, "JobQueue": queue, "QueueLedger": ledger, "ScheduledJob": schedule, "DirectReservation": reservation, "JobGroup": group,
	}
}

// foreign are the kinds of Kubernetes.
func foreign() map[string]string {
	return map[string]string{"Job": job, "Pod": pod, "Lease": lease, "Secret": secret, "ServiceAccount": account}
}

func creation() table {
	cases := table{
		"what a server says of an object cannot be said by who creates it": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			other := s.create(`{kind: JobRun, metadata: {name: b, uid: mine, generation: 7, creationTimestamp: "2020-01-01T00:00:00Z",
				deletionTimestamp: "2020-01-01T00:00:00Z", deletionGracePeriodSeconds: 5, selfLink: here}, spec: {work: {http: {url: "https://work.example/"}}}}`, ok)
			s.expect(other.GetUID() != o.GetUID() && other.GetUID() != "mine", "the UID is %s", other.GetUID())
			s.expect(other.GetGeneration() == 1 && other.GetDeletionTimestamp() == nil, "it is %v", other.Object)
		},
		"an object that exists cannot be created again": func(s *Script) {
			s.create(called(run, "a"), ok)
			s.create(called(run, "a"), exists)
			s.create(called(job, "a"), ok)
			s.create(called(job, "a"), exists)
		},
		"an object that is created has no resource version yet": func(s *Script) {
			s.create(`{kind: JobRun, metadata: {name: a, resourceVersion: "1"}, spec: {work: {http: {url: "https://work.example/"}}}}`, unexpected)
		},
		"an object that is created anew is another one": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.delete(o, ok)
			again := s.create(called(run, "a"), ok)
			s.expect(again.GetUID() != o.GetUID(), "the UID is the same")
		},
		"a name can be generated": func(s *Script) {
			a := s.create(`{kind: JobRun, metadata: {generateName: nightly-}, spec: {work: {http: {url: "https://work.example/"}}}}`, ok)
			b := s.create(`{kind: JobRun, metadata: {generateName: nightly-}, spec: {work: {http: {url: "https://work.example/"}}}}`, ok)
			s.expect(a.GetName() != b.GetName() && len(a.GetName()) == len("nightly-")+5, "the names are %s and %s", a.GetName(), b.GetName())
			named := s.create(`{kind: JobRun, metadata: {name: c, generateName: nightly-}, spec: {work: {http: {url: "https://work.example/"}}}}`, ok)
			s.expect(named.GetName() == "c", "the name is %s", named.GetName())
		},
		"an object has a name": func(s *Script) {
			s.create(`{kind: JobRun, spec: {work: {http: {url: "https://work.example/"}}}}`, invalid)
		},
		"names are DNS subdomains": func(s *Script) {
			for _, name := range []string{"Upper", "under_score", "-a", "a-", strings.Repeat("a", 254)} {
				s.create(called(queue, name), invalid)
				s.create(called(lease, name), invalid)
			}
			s.create(called(lease, "a.b-c"), ok)
		},
		"a namespace has to exist": func(s *Script) {
			o := s.object(called(run, "a"))
			o.SetNamespace("nowhere")
			s.createObject(o, notFound)
		},
		"an object has a namespace": func(s *Script) {
			o := s.object(called(run, "a"))
			o.SetNamespace("")
			s.createObject(o, refusedHere)
		},
		"labels and annotations are checked": func(s *Script) {
			for _, wrong := range []string{`labels: {"": a}`, `labels: {a: "b c"}`, `labels: {"a/b/c": d}`, `annotations: {"a b": c}`, `finalizers: ["not a name"]`} {
				s.create(`{kind: JobQueue, metadata: {name: a, `+wrong+`}}`, invalid)
			}
			s.create(`{kind: JobQueue, metadata: {name: a, labels: {a.b/c: d}, annotations: {a.b/c: "d e"}, finalizers: [a.b/c]}}`, ok)
		},
		"owner references are checked": func(s *Script) {
			owner := s.create(called(queue, "owner"), ok)
			ref := metav1.OwnerReference{APIVersion: "batch.reprise.dev/v1alpha1", Kind: "JobQueue", Name: "owner", UID: owner.GetUID(), Controller: ptr.To(true)}
			try := func(name string, want metav1.StatusReason, refs ...metav1.OwnerReference) {
				o := s.object(called(run, name))
				o.SetOwnerReferences(refs)
				s.createObject(o, want)
			}
			second := ref
			second.UID = "other"
			try("a", ok, ref)
			try("b", invalid, ref, second)
			second.Controller = nil
			try("c", ok, ref, second)
			for i, wrong := range []func(*metav1.OwnerReference){
				func(r *metav1.OwnerReference) { r.UID = "" }, func(r *metav1.OwnerReference) { r.Name = "" },
				func(r *metav1.OwnerReference) { r.Kind = "" }, func(r *metav1.OwnerReference) { r.APIVersion = "" },
			} {
				broken := ref
				wrong(&broken)
				try("d"+string(rune('0'+i)), invalid, broken)
			}
		},
		"an owner that blocks is taken as it is": func(s *Script) {
			owner := s.create(called(run, "owner"), ok)
			o := s.object(called(job, "a"))
			o.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: "batch.reprise.dev/v1alpha1", Kind: "JobRun", Name: "owner", UID: owner.GetUID(), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false),
			}})
			s.createObject(o, ok)
		},
		"an owner that is named twice is kept once": func(s *Script) {
			ref := metav1.OwnerReference{APIVersion: "batch.reprise.dev/v1alpha1", Kind: "JobQueue", Name: "owner", UID: "some"}
			o := s.object(called(run, "a"))
			o.SetOwnerReferences([]metav1.OwnerReference{ref, ref})
			s.createObject(o, ok)
			s.expect(len(o.GetOwnerReferences()) == 1, "the owners are %v", o.GetOwnerReferences())
			o.SetOwnerReferences([]metav1.OwnerReference{ref, ref})
			s.updateObject(o, ok)
			s.expect(len(o.GetOwnerReferences()) == 1, "the owners are %v", o.GetOwnerReferences())
		},
		"what is answered replaces what the client has": func(s *Script) {
			r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: s.namespace}}
			r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "https://work.example/"}}
			r.Status.Message = "said by the client"
			s.createObject(r, ok)
			s.expect(r.Status.Message == "" && r.Status.Phase == batchv1alpha1.JobRunQueued, "the status is %+v", r.Status)
			s.expect(r.Kind == "" && r.APIVersion == "", "the type is %+v", r.TypeMeta)
			dirty := &batchv1alpha1.JobRun{Status: batchv1alpha1.JobRunStatus{Message: "left over"}}
			dirty.Labels = map[string]string{"left": "over"}
			err := s.client.Get(s.ctx, client.ObjectKeyFromObject(r), dirty)
			s.answered("get", dirty, err, ok)
			s.expect(dirty.Status.Message == "" && dirty.Labels == nil, "it is %+v", dirty)
		},
	}
	for kind, object := range custom() {
		cases["a "+kind+" is created, read and found as it is"] = roundTrip(object)
	}
	for kind, object := range foreign() {
		cases["a "+kind+" is created, read and found as it is"] = roundTrip(object)
	}
	return cases
}

func roundTrip(object string) func(*Script) {
	return func(s *Script) {
		o := s.create(called(object, "a"), ok)
		read := s.get(o, ok)
		s.expect(read.GetUID() == o.GetUID() && read.GetResourceVersion() == o.GetResourceVersion(), "it is %v", read.Object)
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(o.GetAPIVersion())
		list.SetKind(o.GetKind() + "List")
		found := s.list(list, ok)
		s.expect(len(found) == 1, "found %v", found)
	}
}
