// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestTheJobOfARunIsNeverTriedAgainByItself(t *testing.T) {
	g := NewWithT(t)
	job := Build(aRun(), mine)
	g.Expect(job.Namespace).To(Equal("ns"))
	g.Expect(job.Name).To(Equal(Name(aRun())))
	g.Expect(job.Spec.BackoffLimit).To(HaveValue(BeEquivalentTo(0)))
	g.Expect(job.Spec.PodReplacementPolicy).To(HaveValue(Equal(batchv1.Failed)))
	g.Expect(job.Spec.Template.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyNever))
	g.Expect(job.Spec.Suspend).To(BeNil())
	g.Expect(job.Annotations).To(HaveKeyWithValue(batchv1alpha1.AnnotationEpoch, mine.String()))
}

func TestTheJobIsControlledByItsRun(t *testing.T) {
	g := NewWithT(t)
	for _, job := range []*batchv1.Job{Build(aRun(), mine), Placeholder(aRun(), mine)} {
		g.Expect(metav1.IsControlledBy(job, aRun())).To(BeTrue())
		owner := metav1.GetControllerOf(job)
		g.Expect(owner.Kind).To(Equal("JobRun"))
		g.Expect(owner.APIVersion).To(Equal("batch.reprise.dev/v1alpha1"))
		g.Expect(owner.BlockOwnerDeletion).To(HaveValue(BeFalse()))
	}
}

func TestLabelsOfTheTemplateAreKeptAndOursWin(t *testing.T) {
	g := NewWithT(t)
	r := aRun(template(func(j *batchv1.JobTemplateSpec) {
		j.Labels = map[string]string{"team": "data", batchv1alpha1.LabelQueue: "forged"}
		j.Annotations = map[string]string{"note": "kept", AnnotationSealed: SealedStopped, batchv1alpha1.AnnotationEpoch: "forged"}
		j.Spec.Template.Labels = map[string]string{"app": "a", batchv1alpha1.LabelRunUID: "forged"}
		j.Spec.Template.Annotations = map[string]string{"pod-note": "kept"}
	}), func(r *batchv1alpha1.JobRun) { r.Spec.Queue = "batch" })
	r.Spec.Chain = &batchv1alpha1.Chain{RootName: "nightly-0", RootUID: "root", IdempotencyKey: "key"}
	ours := map[string]string{
		batchv1alpha1.LabelRunUID: uid, batchv1alpha1.LabelRun: "nightly-1",
		batchv1alpha1.LabelChain: "root", batchv1alpha1.LabelQueue: "batch",
	}
	job := Build(r, mine)
	g.Expect(job.Labels).To(Equal(merged(map[string]string{"team": "data"}, ours)))
	g.Expect(job.Spec.Template.Labels).To(Equal(merged(map[string]string{"app": "a"}, ours)))
	g.Expect(job.Annotations).To(Equal(map[string]string{"note": "kept", batchv1alpha1.AnnotationEpoch: mine.String()}))
	g.Expect(job.Spec.Template.Annotations).To(Equal(map[string]string{"pod-note": "kept"}))
	g.Expect(Placeholder(r, mine).Labels).To(Equal(ours))
}

func TestEveryContainerLearnsItsRunAttemptAndKeyFirst(t *testing.T) {
	g := NewWithT(t)
	r := aRun(template(func(j *batchv1.JobTemplateSpec) {
		spec := &j.Spec.Template.Spec
		spec.InitContainers = []corev1.Container{{Name: "init"}}
		spec.Containers = []corev1.Container{
			{Name: "main", Env: []corev1.EnvVar{{Name: EnvAttempt, Value: "forged"}, {Name: "OWN", Value: "$(REPRISE_RUN)"}}},
			{Name: "side"},
		}
	}))
	r.Spec.RetryOf = "nightly-0"
	r.Spec.Attempt = 2
	r.Spec.Chain = &batchv1alpha1.Chain{RootName: "nightly-0", RootUID: "root", IdempotencyKey: "key"}
	ours := []corev1.EnvVar{{Name: EnvRun, Value: "ns/nightly-1"}, {Name: EnvAttempt, Value: "2"}, {Name: EnvIdempotencyKey, Value: "key"}}
	spec := Build(r, mine).Spec.Template.Spec
	g.Expect(spec.InitContainers[0].Env).To(Equal(ours))
	g.Expect(spec.Containers[0].Env).To(Equal(append(ours[:3:3], corev1.EnvVar{Name: "OWN", Value: "$(REPRISE_RUN)"})))
	g.Expect(spec.Containers[1].Env).To(Equal(ours))
}

func TestTheSoonerOfTwoDeadlinesHolds(t *testing.T) {
	for name, c := range map[string]struct{ template, timeout, want *int64 }{
		"neither is set":           {},
		"the template's alone":     {template: ptr.To[int64](60), want: ptr.To[int64](60)},
		"the run's alone":          {timeout: ptr.To[int64](30), want: ptr.To[int64](30)},
		"the run's is sooner":      {template: ptr.To[int64](60), timeout: ptr.To[int64](30), want: ptr.To[int64](30)},
		"the template's is sooner": {template: ptr.To[int64](10), timeout: ptr.To[int64](30), want: ptr.To[int64](10)},
	} {
		t.Run(name, func(t *testing.T) {
			r := aRun(template(func(j *batchv1.JobTemplateSpec) { j.Spec.ActiveDeadlineSeconds = c.template }))
			r.Spec.TimeoutSeconds = c.timeout
			NewWithT(t).Expect(Build(r, mine).Spec.ActiveDeadlineSeconds).To(Equal(c.want))
		})
	}
}

func TestRestartPolicy(t *testing.T) {
	for name, c := range map[string]struct{ given, want corev1.RestartPolicy }{
		"unset becomes Never": {"", corev1.RestartPolicyNever},
		"OnFailure becomes Never, so that an attempt is one start":      {corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever},
		"Always is left to the API server, which says what is accepted": {corev1.RestartPolicyAlways, corev1.RestartPolicyAlways},
	} {
		t.Run(name, func(t *testing.T) {
			r := aRun(template(func(j *batchv1.JobTemplateSpec) { j.Spec.Template.Spec.RestartPolicy = c.given }))
			NewWithT(t).Expect(Build(r, mine).Spec.Template.Spec.RestartPolicy).To(Equal(c.want))
		})
	}
}

func TestWhatTheTemplateSaysOfItsPodsIsUntouched(t *testing.T) {
	g := NewWithT(t)
	policy := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore}}}
	r := aRun(template(func(j *batchv1.JobTemplateSpec) {
		j.Spec.Parallelism = ptr.To[int32](3)
		j.Spec.Completions = ptr.To[int32](5)
		j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		j.Spec.PodFailurePolicy = policy
	}))
	before := r.DeepCopy()
	spec := Build(r, mine).Spec
	g.Expect(spec.Parallelism).To(HaveValue(BeEquivalentTo(3)))
	g.Expect(spec.Completions).To(HaveValue(BeEquivalentTo(5)))
	g.Expect(spec.CompletionMode).To(HaveValue(Equal(batchv1.IndexedCompletion)))
	g.Expect(spec.PodFailurePolicy.Rules).To(HaveLen(3))
	g.Expect(spec.PodFailurePolicy.Rules[0]).To(Equal(policy.Rules[0]), "its own rules come first")
	g.Expect(r).To(Equal(before), "the run itself must not be changed")
}

func TestTheJobKeepsWhatBecameOfAPodThatIsGone(t *testing.T) {
	g := NewWithT(t)
	rules := Build(aRun(), mine).Spec.PodFailurePolicy.Rules
	g.Expect(rules).To(HaveLen(2))
	g.Expect(rules).To(HaveEach(HaveField("Action", batchv1.PodFailurePolicyActionFailJob)), "as backoffLimit 0 would, without saying why")
	full := func(n int) *batchv1.PodFailurePolicy {
		return &batchv1.PodFailurePolicy{Rules: make([]batchv1.PodFailurePolicyRule, n)}
	}
	g.Expect(telling(full(18)).Rules).To(HaveLen(20))
	g.Expect(telling(full(19)).Rules).To(HaveLen(19), "the API server accepts no more than 20")
}

func TestAPlaceholderHasNothingOfTheRunsTemplate(t *testing.T) {
	g := NewWithT(t)
	p := Placeholder(aRun(), mine)
	g.Expect(p.Name).To(Equal(Name(aRun())))
	g.Expect(p.Spec.Suspend).To(HaveValue(BeTrue()))
	g.Expect(p.Annotations).To(Equal(map[string]string{
		AnnotationSealed: SealedPlaceholder, batchv1alpha1.AnnotationEpoch: mine.String(),
	}))
	g.Expect(p.Spec.Template.Spec.Containers).To(HaveLen(1))
	g.Expect(p.Spec.Template.Spec.Containers[0].Image).To(Equal(placeholderImage))
}

func TestAPlaceholderCanBeMadeForARunOfWhichOnlyTheNameIsKnown(t *testing.T) {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gone", UID: uid}}
	r.Status.JobName = "gone-0123456789"
	NewWithT(t).Expect(Placeholder(r, mine).Name).To(Equal("gone-0123456789"))
}
