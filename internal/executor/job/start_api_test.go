// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// rejection returns the final refusal in an error, or nil.
func rejection(err error) *executor.Rejected {
	var rejected *executor.Rejected
	errors.As(err, &rejected)
	return rejected
}

func TestStartingTwiceStartsOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := createRun(t, newNamespace(t))
	start(t, r)
	start(t, r)
	eventually(t, onServer().Look, r, hasEnded)
	start(t, r)
	g.Expect(podsOf(t, r)).To(HaveLen(1))
}

func TestAJobOfSomebodyElseIsInTheWayAndLeftAlone(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := createRun(t, newNamespace(t), untilFinished())
	theirs := Build(r, mine)
	theirs.OwnerReferences = nil
	theirs.Spec.Template.Labels = nil
	g.Expect(live.Create(t.Context(), theirs)).To(Succeed())

	g.Expect(rejection(onServer().Start(t.Context(), r))).To(HaveField("Message", ContainSubstring("not of this run")))
	e, err := onServer().Stop(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Stopped).To(BeTrue())
	g.Expect(live.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
	g.Expect(theirs.Spec.Suspend).To(HaveValue(BeFalse()))
}

func TestATemplateThatTheAPIServerRejectsIsFinalAndCanBeSealed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*batchv1.JobTemplateSpec)
		message string
	}{
		"without an image": {
			func(j *batchv1.JobTemplateSpec) { j.Spec.Template.Spec.Containers[0].Image = "" },
			"spec.template.spec.containers[0].image: Required value"},
		"with a volume that is not there": {
			func(j *batchv1.JobTemplateSpec) {
				j.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
			}, `volumeMounts[0].name: Not found: "v"`},
		"indexed without completions": {
			func(j *batchv1.JobTemplateSpec) {
				j.Spec.CompletionMode, j.Spec.Parallelism = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](2)
			}, "spec.completions: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := createRun(t, newNamespace(t), template(c.change))
			rejected := rejection(onServer().Start(t.Context(), r))
			g.Expect(rejected).NotTo(BeNil())
			g.Expect(rejected.Reason).To(Equal(batchv1alpha1.ReasonInvalidWork))
			g.Expect(rejected.Message).To(ContainSubstring(c.message))
			e, err := onServer().Stop(t.Context(), r)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(e.Stopped).To(BeTrue())
		})
	}
}

func TestANamespaceThatIsGoingTakesNoWork(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ns := newNamespace(t)
	r := createRun(t, ns)
	holder := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "holder", Finalizers: []string{"batch.reprise.dev/test"}}}
	g.Expect(live.Create(t.Context(), holder)).To(Succeed())
	g.Expect(live.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())

	g.Expect(rejection(onServer().Start(t.Context(), r))).To(HaveField("Message", ContainSubstring("is being deleted")))
	for range 2 {
		e, err := onServer().Stop(t.Context(), r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e).To(Equal(executor.Evidence{Life: executor.NeverStarted, Stopped: true}))
	}
	removeFinalizers(t, holder)
}

func TestAQuotaMakesTheRunWait(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ns := newNamespace(t)
	none := corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	g.Expect(live.Create(t.Context(), quota)).To(Succeed())
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // what its controller would write
	g.Expect(live.Status().Update(t.Context(), quota)).To(Succeed())

	// The API server learns of a quota by a watch: until then it accepts Jobs, of another run.
	g.Eventually(func() error {
		probe := createRun(t, ns, func(r *batchv1alpha1.JobRun) { r.Name, r.GenerateName = "", "probe-" })
		return onServer().Start(t.Context(), probe)
	}, patience, interval).Should(MatchError(ContainSubstring("exceeded quota")))
	r := createRun(t, ns)
	err := onServer().Start(t.Context(), r)
	g.Expect(err).To(MatchError(ContainSubstring("exceeded quota")))
	g.Expect(rejection(err)).To(BeNil())

	g.Expect(live.Delete(t.Context(), quota)).To(Succeed())
	g.Eventually(func() error { return onServer().Start(t.Context(), r) }, patience, interval).Should(Succeed())
}

func TestAManagerWithoutTheRightToCreateJobsFailsNoRun(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	config, _, err := plane.User("manager-without-rights")
	g.Expect(err).NotTo(HaveOccurred())
	r := createRun(t, newNamespace(t))
	err = asUser(t, config).Start(t.Context(), r)
	g.Expect(err).To(MatchError(ContainSubstring("forbidden")))
	g.Expect(rejection(err)).To(BeNil())
}

func TestAPolicyThatRefusesTheJobIsFinalAndNothingCanCome(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ns := newNamespace(t)
	refuseJobs(t, ns)
	// The API server learns of a policy by a watch: until then it accepts Jobs, of another run.
	g.Eventually(func() *executor.Rejected {
		probe := createRun(t, ns, func(r *batchv1alpha1.JobRun) { r.Name, r.GenerateName = "", "probe-" })
		return rejection(onServer().Start(t.Context(), probe))
	}, patience, 200*interval).ShouldNot(BeNil())
	r := createRun(t, ns)
	g.Expect(rejection(onServer().Start(t.Context(), r))).To(HaveField("Message", ContainSubstring("no Jobs here")))
	e, err := onServer().Stop(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e).To(Equal(executor.Evidence{Life: executor.NeverStarted, Stopped: true}))
}

// refuseJobs makes the API server refuse every Job of a namespace by policy.
func refuseJobs(t *testing.T, ns string) {
	t.Helper()
	g := NewWithT(t)
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{"batch"}, APIVersions: []string{"v1"}, Resources: []string{"jobs"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "object.metadata.namespace != '" + ns + "'", Message: "no Jobs here"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: ns, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	g.Expect(live.Create(t.Context(), policy)).To(Succeed())
	g.Expect(live.Create(t.Context(), binding)).To(Succeed())
}
