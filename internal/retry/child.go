// SPDX-License-Identifier: Apache-2.0

package retry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// Child builds the automatic retry of a failed run, under the name that follows collision foreign objects. Everything it
// needs is in its spec, so that it does not depend on runs that may be gone: what applied to the failed run, with its present
// priority, and what it carries of the chain. From the root, or from the failed run if the root is nil (gone), it has the
// ScheduledJob, without a scheduledTime, since it is no tick of it, the JobGroup and member, which find it but have no say in it,
// and the owners: it is never owned by a run. Labels are not handed down: tools that prune by label would take the retry for
// theirs.
func Child(failed, root *batchv1alpha1.JobRun, collision int) *batchv1alpha1.JobRun {
	if root == nil {
		root = failed
	}
	child := &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: failed.Namespace, Name: ChildName(failed, collision)},
		Spec: batchv1alpha1.JobRunSpec{
			JobRunTemplateSpec: template(failed),
			RetryOf:            failed.Name,
			GroupRef:           root.Spec.GroupRef.DeepCopy(),
			Attempt:            run.Attempt(failed) + 1,
			Chain:              ptr.To(run.Chain(failed)),
		},
	}
	if name := run.ScheduledJob(root); name != "" {
		child.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: name}
	}
	if d := Decide(failed); !d.NotBefore.IsZero() {
		child.Spec.NotBefore = ptr.To(metav1.NewTime(d.NotBefore))
	}
	for _, o := range root.OwnerReferences {
		child.OwnerReferences = append(child.OwnerReferences, *o.DeepCopy())
	}
	return child
}

// IsChild reports whether an object that has the name of a retry is the automatic retry of this failed run, made by this
// manager or another one. A run of the same name that belongs to something else is not.
func IsChild(existing, failed *batchv1alpha1.JobRun) bool {
	chain := existing.Spec.Chain
	return chain != nil &&
		chain.RootUID == run.ChainUID(failed) &&
		existing.Spec.RetryOf == failed.Name &&
		existing.Spec.Attempt == run.Attempt(failed)+1
}

// template returns a copy of what applies to a run, as it applies now: priority and ttlSecondsAfterFinished may have been
// set on the run itself.
func template(r *batchv1alpha1.JobRun) batchv1alpha1.JobRunTemplateSpec {
	var t batchv1alpha1.JobRunTemplateSpec
	if applies := run.Template(r); applies != nil {
		applies.DeepCopyInto(&t)
	}
	if p := r.Spec.Priority; p != nil {
		t.Priority = ptr.To(*p)
	}
	if ttl := r.Spec.TTLSecondsAfterFinished; ttl != nil {
		t.TTLSecondsAfterFinished = ptr.To(*ttl)
	}
	return t
}
