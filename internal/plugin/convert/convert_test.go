// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// cron makes a CronJob of which nothing need be said.
func cron(change func(*batchv1.CronJob)) *batchv1.CronJob {
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly"}}
	c.Spec.Schedule, c.Spec.TimeZone = "@daily", ptr.To("Etc/UTC")
	c.Spec.Suspend = ptr.To(true)
	c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
	c.Spec.JobTemplate.Spec.BackoffLimit = ptr.To[int32](0)
	c.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	if change != nil {
		change(c)
	}
	return c
}

func TestACronJobOfWhichNothingNeedBeSaid(t *testing.T) {
	g := NewWithT(t)
	sj, notes := ScheduledJob(cron(nil))
	g.Expect(notes).To(BeEmpty())
	g.Expect(sj.Spec).To(Equal(batchv1alpha1.ScheduledJobSpec{
		Schedule: "@daily", TimeZone: "Etc/UTC", Suspend: true, ConcurrencyPolicy: batchv1alpha1.ConcurrencyForbid,
		CompletedHistoryLimit: ptr.To[int32](3), FailedHistoryLimit: ptr.To[int32](1),
		RunTemplate: &batchv1alpha1.JobRunTemplateSpec{
			RetryPolicy:    &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](0)},
			RecoveryPolicy: batchv1alpha1.RecoveryAdopt,
			Work: &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
			}}}},
		},
	}))
}

func TestWhatDiffersIsSaid(t *testing.T) {
	type job = batchv1.JobSpec
	ofJob := func(change func(*job)) func(*batchv1.CronJob) {
		return func(c *batchv1.CronJob) { change(&c.Spec.JobTemplate.Spec) }
	}
	for note, c := range map[string]struct {
		change func(*batchv1.CronJob)
		is     func(*batchv1alpha1.ScheduledJob) any
		want   any
	}{
		"the name of a ScheduledJob has at most 46 characters": {
			func(c *batchv1.CronJob) { c.Name = strings.Repeat("n", 45) + "-more" },
			func(sj *batchv1alpha1.ScheduledJob) any { return sj.Name }, strings.Repeat("n", 45),
		},
		"TZ= is no part of a schedule": {
			func(c *batchv1.CronJob) { c.Spec.Schedule, c.Spec.TimeZone = "TZ=Asia/Tokyo 0  3 * * *", nil },
			func(sj *batchv1alpha1.ScheduledJob) any { return sj.Spec.Schedule + " " + sj.Spec.TimeZone }, "0 3 * * * Asia/Tokyo",
		},
		"without timeZone": {
			func(c *batchv1.CronJob) { c.Spec.TimeZone = nil },
			func(sj *batchv1alpha1.ScheduledJob) any { return sj.Spec.TimeZone }, "",
		},
		"suspend the CronJob before": {
			func(c *batchv1.CronJob) { c.Spec.Suspend = nil },
			func(sj *batchv1alpha1.ScheduledJob) any { return sj.Spec.Suspend }, false,
		},
		"startingDeadlineSeconds is between": {
			func(c *batchv1.CronJob) { c.Spec.StartingDeadlineSeconds = ptr.To[int64](0) },
			func(sj *batchv1alpha1.ScheduledJob) any { return *sj.Spec.StartingDeadlineSeconds }, int64(1),
		},
		"concurrencyPolicy Allow": {
			func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = "" },
			func(sj *batchv1alpha1.ScheduledJob) any { return sj.Spec.ConcurrencyPolicy }, batchv1alpha1.ConcurrencyAllow,
		},
		"successfulJobsHistoryLimit is at most 1000": {
			func(c *batchv1.CronJob) { c.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](5000) },
			func(sj *batchv1alpha1.ScheduledJob) any { return *sj.Spec.CompletedHistoryLimit }, int32(1000),
		},
		"backoffLimit became retryPolicy.maxRetries 6": {
			ofJob(func(j *job) { j.BackoffLimit = nil }),
			func(sj *batchv1alpha1.ScheduledJob) any { return *sj.Spec.RunTemplate.RetryPolicy.MaxRetries }, int32(6),
		},
		"maxRetries is at most 100": {
			ofJob(func(j *job) { j.BackoffLimit = ptr.To[int32](1000) }),
			func(sj *batchv1alpha1.ScheduledJob) any { return *sj.Spec.RunTemplate.RetryPolicy.MaxRetries }, int32(100),
		},
		"backoffLimitPerIndex goes on within the Job": {
			ofJob(func(j *job) { j.BackoffLimit, j.BackoffLimitPerIndex = nil, ptr.To[int32](2) }),
			func(sj *batchv1alpha1.ScheduledJob) any { return *sj.Spec.RunTemplate.RetryPolicy.MaxRetries }, int32(0),
		},
		"activeDeadlineSeconds became timeoutSeconds 60": {
			ofJob(func(j *job) { j.ActiveDeadlineSeconds = ptr.To[int64](60) }),
			func(sj *batchv1alpha1.ScheduledJob) any { return *sj.Spec.RunTemplate.TimeoutSeconds }, int64(60),
		},
		"ttlSecondsAfterFinished is at most": {
			ofJob(func(j *job) { j.TTLSecondsAfterFinished = ptr.To[int32](1 << 30) }),
			func(sj *batchv1alpha1.ScheduledJob) any { return *sj.Spec.RunTemplate.TTLSecondsAfterFinished }, int32(year),
		},
		"suspend in jobTemplate": {
			ofJob(func(j *job) { j.Suspend = ptr.To(true) }),
			func(sj *batchv1alpha1.ScheduledJob) any { return jobOf(sj).Suspend }, (*bool)(nil),
		},
		"managedBy example.com/other": {
			ofJob(func(j *job) { j.ManagedBy = ptr.To("example.com/other") }),
			func(sj *batchv1alpha1.ScheduledJob) any { return jobOf(sj).ManagedBy }, (*string)(nil),
		},
		"selector and manualSelector": {
			ofJob(func(j *job) { j.ManualSelector = ptr.To(true) }),
			func(sj *batchv1alpha1.ScheduledJob) any { return jobOf(sj).ManualSelector }, (*bool)(nil),
		},
		"podReplacementPolicy TerminatingOrFailed": {
			ofJob(func(j *job) { j.PodReplacementPolicy = ptr.To(batchv1.TerminatingOrFailed) }),
			func(sj *batchv1alpha1.ScheduledJob) any { return jobOf(sj).PodReplacementPolicy }, (*batchv1.PodReplacementPolicy)(nil),
		},
		"parallelism 3": {
			ofJob(func(j *job) { j.Parallelism = ptr.To[int32](3) }),
			func(sj *batchv1alpha1.ScheduledJob) any { return *jobOf(sj).Parallelism }, int32(3),
		},
		"restartPolicy OnFailure became Never": {
			ofJob(func(j *job) { j.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }),
			func(sj *batchv1alpha1.ScheduledJob) any { return jobOf(sj).Template.Spec.RestartPolicy }, corev1.RestartPolicyNever,
		},
	} {
		t.Run(note, func(t *testing.T) {
			g := NewWithT(t)
			from := cron(c.change)
			before := from.DeepCopy()
			sj, notes := ScheduledJob(from)
			g.Expect(notes).To(ContainElement(HavePrefix(note)))
			g.Expect(c.is(sj)).To(Equal(c.want))
			g.Expect(from).To(Equal(before), "what was read is not changed")
		})
	}
}

func jobOf(sj *batchv1alpha1.ScheduledJob) *batchv1.JobSpec {
	return &sj.Spec.RunTemplate.Work.Job.Template.Spec
}

func TestWhatToolsKnowTheirsByIsLeftOut(t *testing.T) {
	g := NewWithT(t)
	sj, _ := ScheduledJob(cron(func(c *batchv1.CronJob) {
		c.Labels = map[string]string{"app": "x", "app.kubernetes.io/managed-by": "Helm", "argocd.argoproj.io/instance": "i"}
		c.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "meta.helm.sh/release-name": "r"}
	}))
	g.Expect(sj.Labels).To(Equal(map[string]string{"app": "x"}))
	g.Expect(sj.Annotations).To(BeNil())
}

func TestWhenAnImageIsPulled(t *testing.T) {
	for image, policy := range map[string]corev1.PullPolicy{
		"busybox": corev1.PullAlways, "busybox:latest": corev1.PullAlways, "busybox:1": corev1.PullIfNotPresent,
		"registry:5000/busybox": corev1.PullAlways, "registry:5000/busybox:1": corev1.PullIfNotPresent, "busybox@sha256:00": corev1.PullIfNotPresent,
	} {
		NewWithT(t).Expect(usualPull(image)).To(Equal(policy), image)
	}
}
