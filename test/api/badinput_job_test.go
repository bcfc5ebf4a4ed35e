// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAJobThatTheAPIServerRejectsFailsTheRunInTheServersWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	pod := func(change func(*corev1.PodSpec)) func(*batchv1alpha1.JobRun) {
		return func(r *batchv1alpha1.JobRun) { change(&r.Spec.Work.Job.Template.Spec.Template.Spec) }
	}
	w.create(
		w.jobRun("no-image", retries(0), pod(func(s *corev1.PodSpec) { s.Containers[0].Image = "" })),
		w.jobRun("no-volume", retries(0), pod(func(s *corev1.PodSpec) {
			s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		})),
		w.jobRun("too-much", retries(0), pod(func(s *corev1.PodSpec) {
			s.Containers[0].Resources = corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}
		})),
		w.jobRun("retried", pod(func(s *corev1.PodSpec) { s.Containers[0].Name = "Not_A_Label" })),
		w.jobRun("next", exits("0")),
	)
	for name, says := range map[string]string{
		"no-image":   "spec.template.spec.containers[0].image: Required value",
		"no-volume":  `spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"`,
		"too-much":   "must be less than or equal to cpu limit",
		"retried":    `Invalid value: "Not_A_Label"`,
		"retried-r1": `Invalid value: "Not_A_Label"`,
	} {
		r := w.eventually(name, batchv1alpha1.JobRunFailed)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonInvalidWork), name)
		w.Expect(r.Status.Message).To(And(HavePrefix("the API server rejects the Job: "), ContainSubstring(says)), name)
		w.slotFree(name)
	}
	w.settled("retried", batchv1alpha1.ConditionFailed)
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(w.lives()).To(Equal([]string{"Started next", "Ended next"}))
}

func TestNamesAtTheirLimitLeaveRoomForRetriesAndJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	name := strings.Repeat("n", 57)
	w.create(w.jobRun(name))
	w.endPod(w.get(name), 1)
	w.eventually(name, batchv1alpha1.JobRunFailed)
	w.endPod(w.eventually(name+"-r1", batchv1alpha1.JobRunRunning), 0)
	w.settled(name, batchv1alpha1.ConditionComplete)
	for _, run := range []string{name, name + "-r1"} {
		w.Expect(len(w.get(run).Status.JobName)).To(And(BeNumerically(">", len("nnn")), BeNumerically("<=", 63)))
	}
	w.Expect(w.get(name).Status.JobName).NotTo(Equal(w.get(name + "-r1").Status.JobName))

	long := strings.Repeat("s", 46)
	due := time.Now().Add(-time.Minute)
	w.create(w.schedule(long, s.URL, runsAt(due), func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.RunTemplate = &w.jobRun("", exits("1")).Spec.JobRunTemplateSpec
	}))
	tick := fmt.Sprintf("%s-%d", long, due.Unix())
	w.eventually(tick, batchv1alpha1.JobRunFailed)
	w.eventually(tick+"-r1", batchv1alpha1.JobRunFailed)
	w.settled(tick, batchv1alpha1.ConditionFailed)

	w.Expect(w.Create(w.ctx, w.httpRun(name+"n", s.URL))).To(MatchError(ContainSubstring("the name of a JobRun may have at most 57 characters")))
	w.Expect(w.Create(w.ctx, w.schedule(long+"s", s.URL))).To(MatchError(ContainSubstring("the name of a ScheduledJob may have at most 46 characters")))
	w.Expect(w.Create(w.ctx, &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: strings.Repeat("q", 64)}})).
		To(MatchError(ContainSubstring("the name of a JobQueue is a DNS label: at most 63 characters")))
}
