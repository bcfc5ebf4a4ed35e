// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/incarnation"
)

func TestTheManagerKnowsItsOwnKindsAndThoseItWorksWith(t *testing.T) {
	scheme := Scheme()
	for _, o := range []client.Object{
		&batchv1alpha1.ScheduledJob{}, &batchv1alpha1.JobRun{}, &batchv1alpha1.JobQueue{}, &batchv1alpha1.DirectReservation{},
		&batchv1alpha1.QueueLedger{}, &batchv1.Job{}, &corev1.Pod{}, &corev1.Secret{},
	} {
		kinds, _, err := scheme.ObjectKinds(o)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%T", o)
		NewWithT(t).Expect(kinds).To(HaveLen(1))
	}
}

func TestAProcessThatIsAloneHasNoLeaseToLose(t *testing.T) {
	g := NewWithT(t)
	o := DefaultOptions()
	o.LeaderElect = false
	lock, leader, err := newLease(&rest.Config{}, o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lock).To(BeNil())
	g.Expect(leader).To(Equal(incarnation.Always{}))
}

func TestCallsAreBoundedByTheVeryLeaseOfTheElection(t *testing.T) {
	g := NewWithT(t)
	o := DefaultOptions()
	lock, leader, err := newLease(&rest.Config{Host: "http://127.0.0.1:1"}, o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lock).To(BeIdenticalTo(leader))
	g.Expect(lock.Identity()).To(Equal(o.ID))
	g.Expect(lock.Describe()).To(Equal("reprise-system/reprise-manager"))
}

func TestOnlyJobsAndPodsThatWorkForRunsAreKeptInMemory(t *testing.T) {
	g := NewWithT(t)
	options := cacheOptions(nil)
	g.Expect(options.DefaultNamespaces).To(BeEmpty())
	kept := 0
	for o, by := range options.ByObject {
		if _, all := o.(*batchv1alpha1.JobRun); all {
			g.Expect(by.Label).To(BeNil())
			continue
		}
		kept++
		g.Expect(by.Label.Matches(labels.Set{batchv1alpha1.LabelRunUID: "uid"})).To(BeTrue(), "%T", o)
		g.Expect(by.Label.Matches(labels.Set{"app": "other"})).To(BeFalse(), "%T", o)
	}
	g.Expect(kept).To(Equal(2))
}

func TestOnlyTheNamespacesThatWereNamedAreWatched(t *testing.T) {
	NewWithT(t).Expect(cacheOptions([]string{"a", "b"}).DefaultNamespaces).To(And(HaveLen(2), HaveKey("a"), HaveKey("b")))
}

func TestWhatNobodyReadsOfAJobIsDropped(t *testing.T) {
	g := NewWithT(t)
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
	j.Spec.Suspend = new(true)
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "work"}}
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended}}
	got, err := stripJob(j)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "j"},
		Spec:       batchv1.JobSpec{Suspend: new(true)},
		Status:     batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended}}},
	}))
}

func TestOfAPodOnlyItsIdentityItsNodeAndItsPhaseAreKept(t *testing.T) {
	g := NewWithT(t)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", DeletionTimestamp: &metav1.Time{Time: noon}, ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
	p.Spec = corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "work"}}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Message: "long"}
	got, err := stripPod(p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", DeletionTimestamp: &metav1.Time{Time: noon}},
		Spec:       corev1.PodSpec{NodeName: "node"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}))
}

func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	g := NewWithT(t)
	o := DefaultOptions()
	g.Expect(metrics(o).SecureServing).To(BeTrue())
	g.Expect(metrics(o).FilterProvider).NotTo(BeNil())
	o.MetricsSecure = false
	g.Expect(metrics(o).SecureServing).To(BeFalse())
	g.Expect(metrics(o).FilterProvider).To(BeNil())
}

func TestNoRequestAboutTheLeaseOutlivesTheLeaseOrUsesUpTheDeadline(t *testing.T) {
	for name, c := range map[string]struct{ lease, renew, want time.Duration }{
		"the defaults":                         {15 * time.Second, 10 * time.Second, 4 * time.Second},
		"a lease much longer than its renewal": {time.Minute, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leaseClientDeadline(Options{LeaseDuration: c.lease, RenewDeadline: c.renew}); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
