// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// stored creates an object, applies patches to it, and returns it as it is then.
func stored(t *testing.T, base string, patches ...string) *unstructured.Unstructured {
	t.Helper()
	content := parsed(base)
	content["apiVersion"] = batchv1alpha1.GroupVersion.String()
	o := object(content, store(t, content, patches))
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// selected returns the names of the objects of the same kind that a field selector finds.
func selected(t *testing.T, o *unstructured.Unstructured, field, value string) []string {
	t.Helper()
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(o.GroupVersionKind())
	if err := api.List(t.Context(), found, client.InNamespace(namespace), client.MatchingFields{field: value}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range found.Items {
		names = append(names, item.GetName())
	}
	return names
}

func TestANewRunIsQueuedWithoutAWriteOfStatus(t *testing.T) {
	g := NewWithT(t)
	o := stored(t, httpRun)
	g.Expect(o.Object["status"]).To(Equal(map[string]any{"phase": "Queued", "observedGeneration": int64(-1)}))
	g.Expect(selected(t, o, "status.phase", "Queued")).To(ContainElement(o.GetName()))
	g.Expect(selected(t, o, "status.phase", "Running")).NotTo(ContainElement(o.GetName()))
	for _, entry := range o.GetManagedFields() {
		g.Expect(entry.Subresource).To(BeEmpty(), "nobody has written the status")
	}
}

func TestAWatchForQueuedRunsSeesThemComeAndGo(t *testing.T) {
	g := NewWithT(t)
	runs := &unstructured.UnstructuredList{}
	runs.SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind("JobRunList"))
	w, err := watcher.Watch(t.Context(), runs, client.InNamespace(namespace), client.MatchingFields{"status.phase": "Queued"})
	g.Expect(err).NotTo(HaveOccurred())
	defer w.Stop()
	next := func(o *unstructured.Unstructured) watch.EventType {
		for event := range w.ResultChan() {
			if seen := event.Object.(*unstructured.Unstructured); seen.GetName() == o.GetName() {
				return event.Type
			}
		}
		return watch.Error
	}
	o := stored(t, httpRun)
	g.Expect(next(o)).To(Equal(watch.Added))
	g.Expect(patch(t.Context(), o.DeepCopy(), parsed("status: {phase: Running}"))).To(Succeed())
	g.Expect(next(o)).To(Equal(watch.Deleted), "gone for the watch, which is for Queued runs")
}

func TestAStatusGivenAtCreationIsIgnored(t *testing.T) {
	g := NewWithT(t)
	g.Expect(stored(t, with(httpRun, "status: {phase: Completed}")).Object["status"]).To(HaveKeyWithValue("phase", "Queued"))
	g.Expect(stored(t, with(reservation, "status: {phase: Granted}")).Object["status"]).To(HaveKeyWithValue("phase", "Pending"))
}

func TestAStatusGivenWithTheSpecIsIgnored(t *testing.T) {
	g := NewWithT(t)
	o := stored(t, httpRun)
	g.Expect(unstructured.SetNestedField(o.Object, "Completed", "status", "phase")).To(Succeed())
	g.Expect(api.Update(t.Context(), o)).To(Succeed())
	g.Expect(o.Object["status"]).To(HaveKeyWithValue("phase", "Queued"))
}

func TestNothingIsAddedToASpecThatIsInherited(t *testing.T) {
	for _, base := range []string{httpRun, retryRun, tickRun, with(httpRun, "spec: {claims: [{name: ollama}]}"), "{kind: JobRun, spec: {retryOf: a}}", "{kind: JobRun, spec: {" + richHTTP + "}}", queue} {
		NewWithT(t).Expect(stored(t, base).Object["spec"]).To(Equal(parsed(base)["spec"]))
	}
	template := stored(t, recurring).Object["spec"].(map[string]any)["runTemplate"]
	NewWithT(t).Expect(template).To(Equal(parsed(recurring)["spec"].(map[string]any)["runTemplate"]))
}

func TestAReservationWithoutASpecHasALease(t *testing.T) {
	g := NewWithT(t)
	o := stored(t, "kind: DirectReservation")
	g.Expect(o.Object["spec"]).To(Equal(map[string]any{"leaseDurationSeconds": int64(300), "waitTimeoutSeconds": int64(600)}))
	g.Expect(o.Object["status"]).To(Equal(map[string]any{"phase": "Pending", "observedGeneration": int64(-1)}))
	g.Expect(selected(t, o, "status.phase", "Pending")).To(ContainElement(o.GetName()))
}

func TestAScheduledJobShowsItsPolicies(t *testing.T) {
	spec := stored(t, recurring).Object["spec"]
	for field, value := range map[string]any{
		"missedRunPolicy": "RunOnce", "concurrencyPolicy": "Allow", "maxQueuedRuns": int64(100), "completedHistoryLimit": int64(10), "failedHistoryLimit": int64(10),
	} {
		NewWithT(t).Expect(spec).To(HaveKeyWithValue(field, value))
	}
}

func TestAGroupShowsItsPoliciesAndWaits(t *testing.T) {
	g := NewWithT(t)
	o := stored(t, group)
	g.Expect(o.Object["spec"]).To(And(HaveKeyWithValue("mode", "Sequential"), HaveKeyWithValue("onFailure", "Stop")))
	g.Expect(o.Object["status"]).To(Equal(map[string]any{"phase": "Pending", "observedGeneration": int64(-1)}))
}

func TestNothingIsAddedToTheTemplateOfAMember(t *testing.T) {
	g := NewWithT(t)
	const own = `{queue: big, claims: [{name: ollama}], work: {http: {url: "https://work.example/"}}}`
	members := "{members: [{name: a, runTemplate: " + own + "}]}"
	for path, base := range map[string]string{"spec": "{kind: JobGroup, spec: " + members + "}", "spec.groupTemplate": "{kind: ScheduledJob, spec: {groupTemplate: " + members + "}}"} {
		seen, _, err := unstructured.NestedSlice(stored(t, base).Object, strings.Split(path+".members", ".")...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen).To(Equal([]any{map[string]any{"name": "a", "runTemplate": parsed(own)}}))
	}
}

func TestANewQueueIsEmpty(t *testing.T) {
	status := stored(t, queue).Object["status"]
	NewWithT(t).Expect(status).To(Equal(map[string]any{"observedGeneration": int64(-1), "queued": int64(0), "running": int64(0), "reserved": int64(0)}))
}

func TestEverySelectableFieldSelects(t *testing.T) {
	samples := map[string]struct{ base, status string }{
		"JobRun": {
			with(tickRun, "spec: {scheduledTime: null, retryOf: root, attempt: 1, chain: "+chainHere+", groupRef: {name: novel, member: outline}}"), "status: {phase: Running, slot: Held, queue: big}",
		},
		"JobGroup":          {tickGroup, "status: {phase: Running}"},
		"DirectReservation": {with(reservation, "spec: {queue: big}"), "status: {phase: Active}"},
	}
	for kind, crd := range definitions(t) {
		for _, selectable := range crd.Spec.Versions[0].SelectableFields {
			field := strings.TrimPrefix(selectable.JSONPath, ".")
			t.Run(kind+" "+field, func(t *testing.T) {
				g := NewWithT(t)
				o := stored(t, samples[kind].base, samples[kind].status)
				value, ok, err := unstructured.NestedString(o.Object, strings.Split(field, ".")...)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(ok).To(BeTrue(), "the sample has no value there")
				g.Expect(selected(t, o, field, value)).To(ContainElement(o.GetName()))
				g.Expect(selected(t, o, field, "other")).NotTo(ContainElement(o.GetName()))
			})
		}
	}
}

// A field that a later version adds to the spec has to be put on one side or the other.
func TestEveryFieldOfARunOrGroupIsEitherFixedOrFree(t *testing.T) {
	for kind, free := range map[string][]string{"JobRun": free, "JobGroup": groupFree} {
		root := definitions(t)[kind].Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, field := range slices.Sorted(maps.Keys(root.Properties["spec"].Properties)) {
			isFixed := slices.ContainsFunc(root.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
				return slices.ContainsFunc(messages(rule), func(says string) bool { return strings.HasPrefix(says, field+" is immutable") })
			})
			if isFixed == slices.Contains(free, field) {
				t.Errorf("%s %s: a rule says that it is immutable: %t; listed as free: %t", kind, field, isFixed, slices.Contains(free, field))
			}
		}
	}
}
