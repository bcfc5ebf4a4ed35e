// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// calls is a run that calls a URL.
func calls(url string) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{TypeMeta: metav1.TypeMeta{Kind: string([]byte("JobRun"))}}
	r.Namespace, r.Status.Phase = string([]byte("ns")), batchv1alpha1.JobRunPhase([]byte("Queued"))
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: url}}
	r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: new(int32(2))}
	return r
}

// cached is the run as the cache keeps it.
func cached(t *testing.T, s *sharing, r *batchv1alpha1.JobRun) *batchv1alpha1.JobRun {
	t.Helper()
	o, err := s.run(r)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o).To(BeAssignableToTypeOf(r))
	kept, _ := o.(*batchv1alpha1.JobRun)
	return kept
}

func TestRunsThatAreAlikeShareWhatTheyHaveInCommon(t *testing.T) {
	g := NewWithT(t)
	s := newSharing()
	one, two, other := cached(t, s, calls("http://a/")), cached(t, s, calls("http://a/")), cached(t, s, calls("http://b/"))
	g.Expect(two.Spec.Work).To(BeIdenticalTo(one.Spec.Work))
	g.Expect(two.Spec.RetryPolicy).To(BeIdenticalTo(one.Spec.RetryPolicy))
	g.Expect(unsafe.StringData(two.Namespace)).To(BeIdenticalTo(unsafe.StringData(one.Namespace)))
	g.Expect(unsafe.StringData(string(two.Status.Phase))).To(BeIdenticalTo(unsafe.StringData(string(one.Status.Phase))))
	g.Expect(other.Spec.Work.HTTP.URL).To(Equal("http://b/"))

	resolved := calls("http://a/")
	resolved.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{JobRunTemplateSpec: resolved.Spec.JobRunTemplateSpec}
	resolved.Spec.JobRunTemplateSpec = batchv1alpha1.JobRunTemplateSpec{}
	resolved = cached(t, s, resolved)
	g.Expect(resolved.Status.ResolvedSpec.Work).To(BeIdenticalTo(one.Spec.Work))
	g.Expect(resolved.Spec.Work).To(BeNil())
	runtime.KeepAlive(one)
}

func TestWhatIsCachedOfARunEqualsWhatWasReadButForItsManagedFields(t *testing.T) {
	s := newSharing()
	for i := range 3 * alikeSlots { // more than are known at once
		r := calls(fmt.Sprintf("http://a/%d", i/2))
		if i%3 == 0 {
			r.Spec.Work.HTTP.URL, r.Spec.Work.Job = "", &batchv1alpha1.JobWork{}
		}
		want := r.DeepCopy()
		r.UID, r.ResourceVersion = types.UID(fmt.Sprint("uid-", i)), fmt.Sprint(i)
		want.UID, want.ResourceVersion = r.UID, r.ResourceVersion
		r.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		NewWithT(t).Expect(cached(t, s, r)).To(Equal(want))
	}
}

func TestSharingKeepsNothingAlive(t *testing.T) {
	g := NewWithT(t)
	s := newSharing()
	cached(t, s, calls("http://a/"))
	g.Eventually(func() bool {
		runtime.GC()
		for i := range s.work.known {
			if s.work.known[i].Value() != nil {
				return false
			}
		}
		return true
	}).Should(BeTrue())
}

func TestWhatIsNoRunIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	o, err := newSharing().run(&batchv1.Job{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o).To(Equal(&batchv1.Job{}))
}
