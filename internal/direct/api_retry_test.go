// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// failedRun makes a run that has failed, with that many automatic retries.
func (s *scene) failedRun(name string, retries int32) *batchv1alpha1.JobRun {
	s.t.Helper()
	g := NewWithT(s.t)
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://example.test/"}}
	r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To(retries)}
	g.Expect(live.Create(s.t.Context(), r)).To(Succeed())
	for _, phase := range []batchv1alpha1.JobRunPhase{batchv1alpha1.JobRunRunning, batchv1alpha1.JobRunFailed} {
		r.Status.Phase = phase
		g.Expect(live.Status().Update(s.t.Context(), r)).To(Succeed())
	}
	return r
}

// retryOf asks for a retry of a run.
func (s *scene) retryOf(token, run, key string) got {
	s.t.Helper()
	r := s.request(token, http.MethodPost, "/v1/namespaces/"+s.ns+"/jobruns/"+run+"/retry", nil)
	if key != "" {
		r.Header.Set(HeaderIdempotencyKey, key)
	}
	return s.send(r)
}

func TestARetryByHandOverHTTP(t *testing.T) {
	g := NewWithT(t)
	s := set(t, quick(), echo)
	token := s.user()
	long := strings.Repeat("long", 14)
	s.failedRun(long, 0)

	for _, key := range []string{"", "", "once"} {
		answer := s.retryOf(token, long, key)
		g.Expect(answer.status).To(Equal(http.StatusCreated), answer.body)
		g.Expect(answer.body).To(ContainSubstring(`"namespace":"` + s.ns + `"`))
	}
	again := s.retryOf(token, long, "once")
	g.Expect(again.status).To(Equal(http.StatusOK))
	g.Expect(s.retryOf(token, long, strings.Repeat("k", 256)).Error).To(Equal("InvalidIdempotencyKey"))

	runs := &batchv1alpha1.JobRunList{}
	g.Expect(live.List(t.Context(), runs, client.InNamespace(s.ns))).To(Succeed())
	g.Expect(runs.Items).To(HaveLen(4))
	for _, r := range runs.Items {
		if r.Name != long {
			g.Expect(r.Spec.RetryOf).To(Equal(long))
			g.Expect(r.Spec.Work).To(BeNil())
		}
	}
}

func TestARetryThatWouldBeRefusedIsNotMade(t *testing.T) {
	g := NewWithT(t)
	s := set(t, quick(), echo)
	token, powerless := s.user(), s.token(audience, "directreservations")
	s.failedRun("due", 3)
	waiting := s.failedRun("waiting", 3)
	child := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "waiting-r1"}}
	child.Spec.RetryOf = "waiting"
	g.Expect(live.Create(t.Context(), child)).To(Succeed())
	waiting.Status.Retry = &batchv1alpha1.RetryRecord{Name: child.Name, UID: child.UID}
	g.Expect(live.Status().Update(t.Context(), waiting)).To(Succeed())

	for name, c := range map[string]struct {
		token, run    string
		status        int
		code, message string
	}{
		"no right to create runs":       {powerless, "due", 403, "Forbidden", "may not create jobruns"},
		"no such run, nor a right":      {powerless, "nowhere", 403, "Forbidden", "may not create jobruns"},
		"no such run":                   {token, "nowhere", 404, "RunNotFound", `there is no run "nowhere"`},
		"a retry that is to be made":    {token, "due", 409, "RetryRefused", "due-r1"},
		"a retry that waits":            {token, "waiting", 409, "RetryRefused", "waiting-r1, which waits"},
		"a run that has not failed yet": {token, "waiting-r1", 409, "RetryRefused", "is Queued"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, key := range []string{"", "once"} {
				answer := s.retryOf(c.token, c.run, key)
				g.Expect(answer.status).To(Equal(c.status))
				g.Expect(answer.Error).To(Equal(c.code))
				g.Expect(answer.Message).To(ContainSubstring(c.message))
			}
		})
	}
	g.Expect(live.Get(t.Context(), types.NamespacedName{Namespace: s.ns, Name: "waiting-r1"}, child)).To(Succeed())
	runs := &batchv1alpha1.JobRunList{}
	g.Expect(live.List(t.Context(), runs, client.InNamespace(s.ns))).To(Succeed())
	g.Expect(runs.Items).To(HaveLen(3))
}
