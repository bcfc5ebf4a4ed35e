// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestWhatAWatchTellsIsReadAsWhatItIs(t *testing.T) {
	g := NewWithT(t)
	r := newStory(1).run("a")
	r.APIVersion, r.Kind = batchv1alpha1.GroupVersion.String(), "JobRun"
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	g.Expect(err).NotTo(HaveOccurred())

	v, told, err := Watched(noon, watch.Event{Type: watch.Added, Object: &unstructured.Unstructured{Object: raw}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(told).To(BeTrue())
	g.Expect(v.Object).To(BeAssignableToTypeOf(&batchv1alpha1.JobRun{}))
	g.Expect(v.Object.GetUID()).To(Equal(r.UID))
	g.Expect(v.At).To(Equal(noon))

	for name, e := range map[string]watch.Event{
		"a bookmark":                {Type: watch.Bookmark, Object: r},
		"an error":                  {Type: watch.Error, Object: &metav1.Status{}},
		"a kind that no rule reads": {Type: watch.Added, Object: &unstructured.Unstructured{Object: map[string]any{"kind": "Secret"}}},
	} {
		_, told, err := Watched(noon, e)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(told).To(BeFalse(), name)
	}
}

func TestAnObjectThatCannotBeReadIsAnErrorAndNotLeftOut(t *testing.T) {
	bad := &unstructured.Unstructured{Object: map[string]any{"kind": "JobRun", "spec": "text"}}
	_, err := Typed(bad)
	NewWithT(t).Expect(err).To(HaveOccurred())
}

func TestAPodTellsWhoseItIs(t *testing.T) {
	g := NewWithT(t)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-x", UID: "pod", Labels: map[string]string{
		batchv1alpha1.LabelRunUID: "uid-a", batchv1alpha1.LabelRun: "a",
	}}}
	p.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Name: "REPRISE_ATTEMPT", Value: "2"}, {Name: "REPRISE_IDEMPOTENCY_KEY", Value: "root"}}}}
	a, ours := PodAct(noon, true, p)
	g.Expect(ours).To(BeTrue())
	g.Expect(a).To(Equal(Act{At: noon, Began: true, Work: Pod, Execution: "pod", Namespace: "ns", Name: "a", UID: "uid-a", Key: "root", Attempt: 2}))
	p.Labels = nil
	_, ours = PodAct(noon, true, p)
	g.Expect(ours).To(BeFalse())
}

func TestACallTellsWhoseItIs(t *testing.T) {
	g := NewWithT(t)
	h := http.Header{"Reprise-Run": {"ns/a"}, "Reprise-Attempt": {"1"}, "Idempotency-Key": {"root"}}
	a, err := CallAct(noon, h, "7", "one")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a).To(Equal(Act{At: noon, Began: true, Work: Call, Execution: "7", Namespace: "ns", Name: "a", Key: "root", Attempt: 1, Manager: "one"}))
	g.Expect(a.End(noon, true)).To(Equal(Act{At: noon, Work: Call, Execution: "7", Namespace: "ns", Name: "a", Key: "root", Attempt: 1, Manager: "one", Aborted: true}))
	_, err = CallAct(noon, http.Header{}, "7", "one")
	g.Expect(err).To(HaveOccurred())
}

func TestADirectRequestTellsItsReservation(t *testing.T) {
	a := DirectAct(noon, "ns", http.Header{"Reprise-Reservation": {"http-x"}}, "7", "front")
	NewWithT(t).Expect(a).To(Equal(Act{At: noon, Began: true, Work: Direct, Execution: "7", Namespace: "ns", Name: "http-x", Attempt: -1, Manager: "front"}))
}

func TestAReceiverTellsWhatItHeard(t *testing.T) {
	g := NewWithT(t)
	a, err := Received(noon, "bell", []byte(`{"type":"job.run.failed","data":{"uid":"u"}}`), true)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a).To(Equal(Announcement{At: noon, Receiver: "bell", UID: "u", Event: "job.run.failed", Accepted: true}))
	_, err = Received(noon, "bell", []byte("{"), true)
	g.Expect(err).To(HaveOccurred())
}
