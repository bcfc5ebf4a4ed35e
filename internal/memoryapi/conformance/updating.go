// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func updating() table {
	cases := table{
		"an update of an old version is a conflict": func(s *Script) {
			for _, object := range []string{run, queue, ledger, schedule, reservation, group, job, pod, lease} {
				o := s.create(called(object, "a"), ok)
				old := o.DeepCopy()
				s.update(o, "metadata: {labels: {a: b}}", ok)
				s.update(old, "metadata: {labels: {a: c}}", conflict)
			}
		},
		"an update that changes nothing keeps the version": func(s *Script) {
			for _, object := range []string{queue, ledger, schedule, group, job, pod, lease} {
				o := s.create(called(object, "a"), ok)
				s.update(o, "metadata: {labels: {a: b}}", ok)
				before := o.GetResourceVersion()
				s.updateObject(o, ok)
				s.expect(o.GetResourceVersion() == before, "%s: the version has moved", o.GetKind())
			}
		},
		"the first update of an object whose status is a default stores the status": func(s *Script) {
			for _, object := range []string{run, reservation, group} {
				o := s.create(called(object, "a"), ok)
				before := o.GetResourceVersion()
				s.updateObject(o, ok)
				s.note(o.GetKind(), map[bool]string{true: "keeps", false: "moves"}[o.GetResourceVersion() == before])
			}
		},
		"the first status write that says the default stores it": func(s *Script) {
			for _, object := range []string{run, reservation, group} {
				o := s.create(called(object, "a"), ok)
				before := o.GetResourceVersion()
				s.statusObject(o, ok)
				s.note(o.GetKind(), map[bool]string{true: "keeps", false: "moves"}[o.GetResourceVersion() == before])
			}
		},
		"a conflict comes before what else is wrong": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			old := o.DeepCopy()
			s.update(o, "metadata: {labels: {a: b}}", ok)
			s.update(old, "spec: {queue: other}", conflict)
		},
		"an update of something else under the name is a conflict": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.delete(o, ok)
			s.create(called(run, "a"), ok)
			s.update(o, "metadata: {labels: {a: b}}", conflict)
		},
		"an update of what is not there finds nothing": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.delete(o, ok)
			s.update(o, "metadata: {labels: {a: b}}", notFound)
			s.statusObject(o, notFound)
			s.update(s.object(called(job, "a")), "metadata: {labels: {a: b}}", notFound)
		},
		"custom resources and leases are not updated without a version": func(s *Script) {
			for _, object := range []string{run, ledger, lease} {
				o := s.create(called(object, "a"), ok)
				s.update(o, "metadata: {resourceVersion: null}", invalid)
			}
		},
		"Jobs, pods and secrets are updated without a version": func(s *Script) {
			for _, object := range []string{job, pod, secret} {
				o := s.create(called(object, "a"), ok)
				s.update(o, "metadata: {resourceVersion: null, labels: {a: b}}", ok)
			}
		},
		"a version that is none is refused": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.update(o, `metadata: {resourceVersion: "latest"}`, unexpected)
		},
		"a generation counts changes of the spec and of nothing else": func(s *Script) {
			for _, object := range []string{queue, job} {
				o := s.create(called(object, "a"), ok)
				s.update(o, "metadata: {labels: {a: b}, annotations: {c: d}, generation: 9}", ok)
				s.expect(o.GetGeneration() == 1, "%s: after labels it is %d", o.GetKind(), o.GetGeneration())
				s.update(o, "spec: {suspend: true}", ok)
				s.expect(o.GetGeneration() == 2, "%s: after a change it is %d", o.GetKind(), o.GetGeneration())
				s.update(o, "spec: {suspend: true}", ok)
				s.expect(o.GetGeneration() == 2, "%s: after none it is %d", o.GetKind(), o.GetGeneration())
			}
		},
		"a ledger has no status to write": func(s *Script) {
			o := s.create(called(ledger, "a"), ok)
			s.statusObject(o, notFound)
		},
		"a lease has no status to write": func(s *Script) {
			o := s.create(called(lease, "a"), ok)
			s.statusObject(o, notFound)
		},
		"an object cannot be given another UID": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.update(o, "metadata: {uid: other}", conflict)
			s.update(s.get(o, ok), "metadata: {uid: null}", ok)
		},
		"the time of creation cannot be changed": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			before := o.GetCreationTimestamp()
			s.update(o, `metadata: {creationTimestamp: "2020-01-01T00:00:00Z", labels: {a: b}}`, ok)
			after := o.GetCreationTimestamp()
			s.expect(after.Equal(&before), "it is %s", after)
		},
		"nobody deletes by an update": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.update(o, `metadata: {deletionTimestamp: "2020-01-01T00:00:00Z"}`, invalid)
			s.get(o, ok)
		},
		"an update keeps the type that the client has": func(s *Script) {
			r := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: s.namespace}}
			s.createObject(r, ok)
			r.SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind("JobQueue"))
			r.Spec.Suspend = true
			s.updateObject(r, ok)
			s.expect(r.Kind == "JobQueue", "the type is %+v", r.TypeMeta)
			s.statusObject(r, ok)
			s.note("after a status write", r.Kind)
		},
	}
	return cases
}

func statuses() table {
	cases := table{
		"an update of a run leaves its status alone": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.status(o, "status: {phase: Running, slot: Held, message: it runs}", ok)
			s.update(o, "metadata: {labels: {a: b}}\nstatus: {phase: Completed, message: changed}", ok)
			phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
			s.expect(phase == "Running", "the phase is %s", phase)
			s.update(o, "status: null", ok)
			s.get(o, ok)
		},
		"a status write leaves the rest alone": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.status(o, `{metadata: {labels: {a: b}, annotations: {c: d}, finalizers: [a.b/c]}, spec: {priority: 7}, status: {message: hello}}`, ok)
			read := s.get(o, ok)
			s.expect(read.GetLabels() == nil && read.GetFinalizers() == nil && read.GetGeneration() == 1, "it is %v", read.Object)
		},
		"a status write of an old version is a conflict": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			old := o.DeepCopy()
			s.status(o, "status: {message: first}", ok)
			s.status(old, "status: {message: second}", conflict)
			s.update(old, "metadata: {labels: {a: b}}", conflict)
		},
		"a status write that changes nothing keeps the version": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.status(o, "status: {message: first}", ok)
			before := o.GetResourceVersion()
			s.statusObject(o, ok)
			s.expect(o.GetResourceVersion() == before, "the version has moved")
		},
		"a status that is taken away comes back as its defaults": func(s *Script) {
			for _, object := range []string{run, queue, reservation, group, schedule} {
				o := s.create(called(object, "a"), ok)
				s.status(o, "status: null", ok)
				s.get(o, ok)
			}
		},
		"the defaults of a status are read and selected by": func(s *Script) {
			s.create(called(run, "a"), ok)
			s.create(called(reservation, "a"), ok)
			s.create(called(group, "a"), ok)
			found := s.list(&batchv1alpha1.JobRunList{}, ok, client.MatchingFields{"status.phase": "Queued"})
			s.expect(len(found) == 1, "found %v", found)
			found = s.list(&batchv1alpha1.DirectReservationList{}, ok, client.MatchingFields{"status.phase": "Pending"})
			s.expect(len(found) == 1, "found %v", found)
			found = s.list(&batchv1alpha1.JobGroupList{}, ok, client.MatchingFields{"status.phase": "Pending"})
			s.expect(len(found) == 1, "found %v", found)
		},
		"a status write counts no generation": func(s *Script) {
			for _, object := range []string{run, queue, reservation, group, schedule} {
				o := s.create(called(object, "a"), ok)
				s.status(o, "status: {observedGeneration: 1}", ok)
				s.expect(o.GetGeneration() == 1, "%s: it is %d", o.GetKind(), o.GetGeneration())
			}
		},
		"a status write without a version is refused": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.status(o, "{metadata: {resourceVersion: null}, status: {message: first}}", invalid)
		},
	}
	return cases
}
