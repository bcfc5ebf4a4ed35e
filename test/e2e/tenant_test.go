// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// tenant is a user with the role edit in one namespace, and no other right.
type tenant struct {
	*world
	kubeconfig string
}

// tenant makes one for the namespace.
func (w *world) tenant() tenant {
	w.t.Helper()
	name := "tenant-" + w.ns
	_, kubeconfig, err := here.User(name, "system:authenticated")
	w.Expect(err).NotTo(HaveOccurred())
	w.mayEdit(rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}, name)
	return tenant{w, kubeconfig}
}

// mayEdit gives the role edit to somebody, and waits until the API server knows it.
func (w *world) mayEdit(who rbacv1.Subject, user string) {
	w.t.Helper()
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: w.named("edit-" + who.Name), Subjects: []rbacv1.Subject{who},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	})
	for _, resource := range []string{"jobruns", "directreservations"} {
		w.Eventually(func() string {
			out, _ := here.Kubectl(w.ctx, "auth", "can-i", "create", resource+".batch.reprise.dev", "-n", w.ns, "--as", user).Output() // no is an error
			return strings.TrimSpace(string(out))
		}).Should(Equal("yes"), "a controller adds the rights to the role")
	}
}

// try runs kubectl as the tenant, with an object as its input if there is one.
func (c tenant) try(input client.Object, args ...string) (string, error) {
	c.t.Helper()
	cmd := here.Kubectl(c.ctx, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
	if input != nil {
		text, err := yaml.Marshal(input)
		c.Expect(err).NotTo(HaveOccurred())
		cmd.Stdin = strings.NewReader(string(text))
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// kind sets the kind of an object that is to be written as text.
func kind[T client.Object](o T, kind string) T {
	o.GetObjectKind().SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind(kind))
	return o
}

func TestATenantDoesWithinItsNamespaceWhatItIsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	me := w.tenant()
	may := func(input client.Object, args ...string) string {
		out, err := me.try(input, append([]string{"-n", w.ns}, args...)...)
		w.Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), out)
		return out
	}
	may(kind(w.jobRun("mine", does("-print", "done by a tenant")), "JobRun"), "create", "-f", "-")
	w.eventually("mine", batchv1alpha1.JobRunCompleted)
	w.Expect(may(nil, "get", "jr,jg,sj,dr,jq")).To(ContainSubstring("mine"))
	w.Expect(may(nil, "logs", "-l", batchv1alpha1.LabelRun+"=mine")).To(Equal("done by a tenant\n"))

	dr := kind(&batchv1alpha1.DirectReservation{ObjectMeta: w.named("mine")}, "DirectReservation")
	may(dr, "create", "-f", "-")
	w.reservationIs(dr, batchv1alpha1.ReservationGranted)
	may(nil, "patch", "dr", "mine", "--type=merge", "-p", `{"spec":{"release":true}}`)
	w.reservationIs(dr, batchv1alpha1.ReservationReleased)

	for _, not := range [][]string{
		{"patch", "jr", "mine", "--subresource=status", "--type=merge", "-p", `{"status":{"message":"no"}}`},
		{"patch", "jq", "default", "--type=merge", "-p", `{"spec":{"suspend":true}}`},
		{"patch", "queueledgers", "default", "--type=merge", "-p", `{"spec":{}}`},
	} {
		out, err := me.try(nil, append([]string{"-n", w.ns}, not...)...)
		w.Expect(err).To(HaveOccurred(), "%v", not)
		w.Expect(out).To(ContainSubstring("forbidden"), "%v", not)
	}
}

func TestATenantCannotReadRunOrReserveInAnotherNamespace(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	me := w.tenant()
	other.queue("private", 1)
	other.create(other.jobRun("theirs", does("-pause")))
	other.working("theirs")

	inTheirs := kind(other.jobRun("intruder"), "JobRun")
	reserved := kind(&batchv1alpha1.DirectReservation{ObjectMeta: other.named("intruder")}, "DirectReservation")
	schedule := kind(&batchv1alpha1.ScheduledJob{ObjectMeta: other.named("intruder")}, "ScheduledJob")
	schedule.Spec.Schedule, schedule.Spec.RunTemplate = "@every 1s", &other.jobRun("").Spec.JobRunTemplateSpec
	group := kind(&batchv1alpha1.JobGroup{ObjectMeta: other.named("intruder")}, "JobGroup")
	group.Spec.Members = []batchv1alpha1.GroupMember{{Name: "one", RunTemplate: other.jobRun("").Spec.JobRunTemplateSpec}}
	for name, c := range map[string]struct {
		input client.Object
		args  []string
	}{
		"read a run":           {nil, []string{"get", "jr", "theirs", "-n", other.ns}},
		"list its runs":        {nil, []string{"get", "jr", "-n", other.ns}},
		"list its groups":      {nil, []string{"get", "jg", "-n", other.ns}},
		"list its schedules":   {nil, []string{"get", "sj", "-n", other.ns}},
		"list its queues":      {nil, []string{"get", "jq", "-n", other.ns}},
		"list reservations":    {nil, []string{"get", "dr", "-n", other.ns}},
		"list all runs":        {nil, []string{"get", "jr", "--all-namespaces"}},
		"read its logs":        {nil, []string{"logs", "-l", batchv1alpha1.LabelRun + "=theirs", "-n", other.ns}},
		"run":                  {inTheirs, []string{"create", "-f", "-"}},
		"run a group":          {group, []string{"create", "-f", "-"}},
		"schedule":             {schedule, []string{"create", "-f", "-"}},
		"reserve":              {reserved, []string{"create", "-f", "-"}},
		"cancel a run":         {nil, []string{"patch", "jr", "theirs", "-n", other.ns, "--type=merge", "-p", `{"spec":{"cancel":true}}`}},
		"delete a run":         {nil, []string{"delete", "jr", "theirs", "-n", other.ns, "--wait=false"}},
		"confirm that it ends": {nil, []string{"annotate", "jr", "theirs", "-n", other.ns, batchv1alpha1.AnnotationConfirmStopped + "=x"}},
	} {
		out, err := me.try(c.input, c.args...)
		w.Expect(err).To(HaveOccurred(), name)
		w.Expect(out).To(ContainSubstring("forbidden"), name)
	}

	// A name means what has it in the same namespace: no run reaches another's queue, run or schedule by it.
	run := kind(w.jobRun("mine", inQueue("private")), "JobRun")
	again := kind(&batchv1alpha1.JobRun{ObjectMeta: w.named("again")}, "JobRun")
	again.Spec.RetryOf = "theirs"
	for _, o := range []client.Object{run, again} {
		out, err := me.try(o, "create", "-f", "-")
		w.Expect(err).NotTo(HaveOccurred(), out)
	}
	w.Eventually(func() string {
		if c := meta.FindStatusCondition(w.get("mine").Status.Conditions, batchv1alpha1.ConditionStalled); c != nil {
			return c.Reason
		}
		return ""
	}).Should(Equal(batchv1alpha1.ReasonQueueNotFound))
	w.Eventually(func() string { return fmt.Sprint(w.get("again").Status.Conditions) }).Should(ContainSubstring("theirs"), "there is no such run here")
	w.Expect(w.lives()).To(BeEmpty())
	w.Expect(other.livesOf("theirs")).To(HaveLen(1))
	w.Expect(other.get("theirs").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning), "nothing has happened to it")
	other.cancelRun("theirs")
}
