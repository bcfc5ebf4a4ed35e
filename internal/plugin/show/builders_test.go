// SPDX-License-Identifier: Apache-2.0

package show

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/retry"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares text with a file of testdata.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", name)
	if *update {
		NewWithT(t).Expect(os.WriteFile(path, []byte(got), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(got).To(Equal(string(want)))
}

var now = time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC)

func at(ago time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(now.Add(-ago))) }

// aRun is a Queued run that was created a minute ago.
func aRun(name string, change ...func(*batchv1alpha1.JobRun)) batchv1alpha1.JobRun {
	r := batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "7", CreationTimestamp: *at(time.Minute)},
		Spec: batchv1alpha1.JobRunSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{
			Work: &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://worker/"}},
		}},
		Status: batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunQueued},
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

// running has held a slot for that long.
func running(took time.Duration) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Phase, r.Status.Slot, r.Status.StartedAt = batchv1alpha1.JobRunRunning, batchv1alpha1.SlotHeld, at(took)
	}
}

// ended so long ago, after it had run for that long.
func ended(phase batchv1alpha1.JobRunPhase, reason, message string, ago, took time.Duration) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Phase, r.Status.Slot, r.Status.Reason, r.Status.Message = phase, batchv1alpha1.SlotFree, reason, message
		r.Status.StartedAt, r.Status.FinishedAt = at(ago+took), at(ago)
	}
}

func failed(ago, took time.Duration) func(*batchv1alpha1.JobRun) {
	return ended(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, "exit code 1", ago, took)
}

func completed(ago, took time.Duration) func(*batchv1alpha1.JobRun) {
	return ended(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "", ago, took)
}

// retried makes the automatic retry of a failed run, and records it.
func retried(of *batchv1alpha1.JobRun, change ...func(*batchv1alpha1.JobRun)) batchv1alpha1.JobRun {
	child := *retry.Child(of, nil, 0)
	child.UID, child.ResourceVersion, child.CreationTimestamp = types.UID(child.Name), "8", *of.Status.FinishedAt
	child.Status.Phase = batchv1alpha1.JobRunQueued
	of.Status.Retry = &batchv1alpha1.RetryRecord{Name: child.Name, UID: child.UID}
	for _, f := range change {
		f(&child)
	}
	return child
}

// aGroup of members; those with a status are told of in the same order.
func aGroup(name string, members []string, told ...batchv1alpha1.GroupMemberStatus) *batchv1alpha1.JobGroup {
	g := &batchv1alpha1.JobGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: *at(10 * time.Minute)},
		Status:     batchv1alpha1.JobGroupStatus{Phase: batchv1alpha1.JobGroupRunning, Settled: "1/3", Reason: batchv1alpha1.ReasonMembersRunning, StartedAt: at(10 * time.Minute), Members: told},
	}
	for _, m := range members {
		g.Spec.Members = append(g.Spec.Members, batchv1alpha1.GroupMember{Name: m})
	}
	return g
}
