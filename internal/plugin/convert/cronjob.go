// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// longest is how long the name of a ScheduledJob may be.
	longest = 46
	// year is the longest of many spans, in seconds.
	year = 365 * 24 * 60 * 60
	// mostKept is the highest history limit.
	mostKept = 1000
)

// What a CronJob does where it is silent.
const (
	successfulKept = 3
	failedKept     = 1
)

// ScheduledJob returns the ScheduledJob that does what the CronJob does, and what a person should know of it. The CronJob may be one
// from a file, with nothing filled in.
func ScheduledJob(cron *batchv1.CronJob) (*batchv1alpha1.ScheduledJob, []string) {
	n := &notes{}
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{
		Name: n.name(cron.Name), Namespace: cron.Namespace,
		Labels: own(cron.Labels), Annotations: own(cron.Annotations),
	}}
	spec := cron.Spec
	sj.Spec = batchv1alpha1.ScheduledJobSpec{
		Suspend:                 ptr.Deref(spec.Suspend, false),
		StartingDeadlineSeconds: n.deadline(spec.StartingDeadlineSeconds),
		ConcurrencyPolicy:       n.concurrency(spec.ConcurrencyPolicy),
		CompletedHistoryLimit:   n.kept("successfulJobsHistoryLimit", spec.SuccessfulJobsHistoryLimit, successfulKept),
		FailedHistoryLimit:      n.kept("failedJobsHistoryLimit", spec.FailedJobsHistoryLimit, failedKept),
	}
	sj.Spec.Schedule, sj.Spec.TimeZone = n.schedule(spec.Schedule, ptr.Deref(spec.TimeZone, ""))
	sj.Spec.RunTemplate = n.template(spec.JobTemplate)
	if !sj.Spec.Suspend {
		n.add("suspend the CronJob before you apply the ScheduledJob, or both will run")
	}
	return sj, n.all
}

// notes collects what a person should know.
type notes struct{ all []string }

func (n *notes) add(format string, args ...any) { n.all = append(n.all, fmt.Sprintf(format, args...)) }

func (n *notes) name(name string) string {
	if len(name) <= longest {
		return name
	}
	short := strings.TrimRight(name[:longest], "-.")
	n.add("the name of a ScheduledJob has at most %d characters: it is called %s", longest, short)
	return short
}

// foreign are the beginnings of labels and annotations by which tools know what is theirs; the ScheduledJob is not.
var foreign = []string{"kubectl.kubernetes.io/", "meta.helm.sh/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/"}

// own returns the labels or annotations that the user has given.
func own(all map[string]string) map[string]string {
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(key, value string) bool {
		for _, prefix := range foreign {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
		return key == "app.kubernetes.io/managed-by" && value == "Helm"
	})
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// schedule takes apart a zone that is written into the schedule, as old CronJobs have it.
func (n *notes) schedule(schedule, zone string) (string, string) {
	fields := strings.Fields(schedule)
	if len(fields) > 0 {
		if before, after, ok := strings.Cut(fields[0], "="); ok && (before == "TZ" || before == "CRON_TZ") {
			fields, zone = fields[1:], after
			n.add("%s= is no part of a schedule: it is timeZone", before)
		}
	}
	schedule = strings.Join(fields, " ")
	if zone == "" && !strings.HasPrefix(schedule, "@every") {
		n.add("without timeZone a ScheduledJob goes by UTC, a CronJob by the zone of kube-controller-manager; that is UTC too on most clusters")
	}
	return schedule, zone
}

func (n *notes) deadline(seconds *int64) *int64 {
	if seconds == nil {
		return nil
	}
	bounded := min(max(*seconds, 1), year)
	if bounded != *seconds {
		n.add("startingDeadlineSeconds is between 1 and %d: %d became %d", year, *seconds, bounded)
	}
	return &bounded
}

func (n *notes) concurrency(policy batchv1.ConcurrencyPolicy) batchv1alpha1.ConcurrencyPolicy {
	switch policy {
	case batchv1.ForbidConcurrent:
		return batchv1alpha1.ConcurrencyForbid
	case batchv1.ReplaceConcurrent:
		return batchv1alpha1.ConcurrencyReplace
	default:
		n.add("concurrencyPolicy Allow: runs that overlap wait in the queue; how many run at once is the limit of the queue")
		return batchv1alpha1.ConcurrencyAllow
	}
}

func (n *notes) kept(field string, limit *int32, otherwise int32) *int32 {
	bounded := min(ptr.Deref(limit, otherwise), mostKept)
	if limit != nil && bounded != *limit {
		n.add("%s is at most %d: %d became that", field, mostKept, *limit)
	}
	return &bounded
}
