// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// guarded are objects of the kinds whose rule about changes of the spec is not evaluated where the status has changed, each
// with a change of the spec that the rule forbids and a change of the status that is allowed.
var guarded = map[string]struct{ base, spec, status, says string }{
	"JobRun":            {with(httpRun, "spec: {queue: a}"), "spec: {queue: b}", "status: {phase: Running, slot: Held}", "queue is immutable"},
	"JobGroup":          {group, "spec: {mode: Parallel}", "status: {phase: Running}", "mode is immutable"},
	"DirectReservation": {with(reservation, "spec: {queue: a}"), "spec: {queue: b}", "status: {phase: Active}", "queue is immutable"},
}

// writes are the ways to send an object, or what is to change in it.
var writes = map[string]struct {
	object, status func(*testing.T, *unstructured.Unstructured) error
}{
	"put": {
		func(t *testing.T, o *unstructured.Unstructured) error { return api.Update(t.Context(), o) },
		func(t *testing.T, o *unstructured.Unstructured) error { return api.Status().Update(t.Context(), o) },
	},
	"patch": {
		func(t *testing.T, o *unstructured.Unstructured) error { return api.Patch(t.Context(), o, whole(t, o)) },
		func(t *testing.T, o *unstructured.Unstructured) error {
			return api.Status().Patch(t.Context(), o, whole(t, o))
		},
	},
	"apply": {
		func(t *testing.T, o *unstructured.Unstructured) error {
			return api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied(o)), client.FieldOwner("other"), client.ForceOwnership)
		},
		func(t *testing.T, o *unstructured.Unstructured) error {
			return api.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied(o)), client.FieldOwner("other"), client.ForceOwnership)
		},
	},
}

func whole(t *testing.T, o *unstructured.Unstructured) client.Patch {
	data, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return client.RawPatch(types.MergePatchType, data)
}

func applied(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	return o
}

// The rule about changes of a spec lets every write pass that changes the status: no such write can change the spec.
func TestNoWriteChangesTheSpecAndTheStatus(t *testing.T) {
	for kind, tc := range guarded {
		for how, write := range writes {
			t.Run(kind+" by "+how, func(t *testing.T) {
				g := NewWithT(t)
				o := stored(t, tc.base)
				both := func() *unstructured.Unstructured {
					return &unstructured.Unstructured{Object: merged(merged(o.Object, parsed(tc.spec)), parsed(tc.status))}
				}
				read := func() *unstructured.Unstructured {
					now := o.DeepCopy()
					g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(o), now)).To(Succeed())
					return now
				}
				g.Expect(write.object(t, both())).To(MatchError(ContainSubstring(tc.says)), "the status of a write of the object is not looked at")
				g.Expect(read().Object).To(Equal(o.Object))
				g.Expect(write.status(t, both())).To(Succeed())
				now := read()
				g.Expect(now.Object["spec"]).To(Equal(o.Object["spec"]), "the spec of a write of the status is not looked at")
				g.Expect(now.Object["status"]).To(Equal(both().Object["status"]))
			})
		}
	}
}

func TestEveryKindWithARuleAboutChangesIsTried(t *testing.T) {
	for kind, crd := range definitions(t) {
		_, tried := guarded[kind]
		for _, rule := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations {
			if rule.FieldPath == ".spec" && !tried {
				t.Errorf("%s: try that no write changes both", kind)
			}
		}
	}
}

// A person who changes several things at once is told of all of them.
func TestARefusalNamesEveryFieldThatCannotBeChanged(t *testing.T) {
	o := stored(t, with(httpRun, "spec: {queue: a}"))
	err := patch(t.Context(), o, parsed("spec: {queue: b, type: c, timeoutSeconds: 1}"))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("spec: Invalid value: queue is immutable; timeoutSeconds is immutable; type is immutable")))
}
