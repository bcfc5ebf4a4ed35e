// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Kinds that commands take references to.
const (
	JobRun            = "JobRun"
	JobGroup          = "JobGroup"
	ScheduledJob      = "ScheduledJob"
	JobQueue          = "JobQueue"
	DirectReservation = "DirectReservation"
	CronJob           = "CronJob"
)

// short are the names that kubectl knows the kinds by, besides their own in singular and plural.
var short = map[string]string{JobRun: "jr", JobGroup: "jg", ScheduledJob: "sj", JobQueue: "jq", DirectReservation: "dr", CronJob: "cj"}

// Short returns the short name of a kind, as in sj/NAME.
func Short(kind string) string { return short[kind] }

// ParseRef reads a reference: NAME, which is one of the first kind, or KIND/NAME with a kind in any of the forms that kubectl
// understands. Another kind than those is a misuse.
func ParseRef(arg string, kinds ...string) (kind, name string, err error) {
	written, name, both := strings.Cut(arg, "/")
	if !both {
		kind, name = kinds[0], arg
	} else {
		kind = kindOf(written)
	}
	switch {
	case kind == "" || !slices.Contains(kinds, kind):
		return "", "", Usagef("%q is of no kind that this command takes: write %s", arg, forms(kinds))
	case name == "" || strings.Contains(name, "/"):
		return "", "", Usagef("%q is no name: write %s", arg, forms(kinds))
	}
	return kind, name, nil
}

func kindOf(written string) string {
	resource, _, _ := strings.Cut(strings.ToLower(written), ".")
	for kind, abbreviated := range short {
		if singular := strings.ToLower(kind); resource == abbreviated || resource == singular || resource == singular+"s" {
			return kind
		}
	}
	return ""
}

func forms(kinds []string) string {
	ways := []string{"NAME"}
	for _, kind := range kinds[1:] {
		ways = append(ways, short[kind]+"/NAME")
	}
	if len(ways) == 1 {
		ways = append(ways, short[kinds[0]]+"/NAME")
	}
	return strings.Join(ways, " or ")
}

// New returns an empty object of one of Reprise's kinds, and an empty list of them.
func New(kind string) (client.Object, client.ObjectList) {
	switch kind {
	case JobGroup:
		return &batchv1alpha1.JobGroup{}, &batchv1alpha1.JobGroupList{}
	case ScheduledJob:
		return &batchv1alpha1.ScheduledJob{}, &batchv1alpha1.ScheduledJobList{}
	case JobQueue:
		return &batchv1alpha1.JobQueue{}, &batchv1alpha1.JobQueueList{}
	case DirectReservation:
		return &batchv1alpha1.DirectReservation{}, &batchv1alpha1.DirectReservationList{}
	default:
		return &batchv1alpha1.JobRun{}, &batchv1alpha1.JobRunList{}
	}
}

// Suspended reports whether a ScheduledJob or a JobQueue is suspended.
func Suspended(o client.Object) bool {
	switch o := o.(type) {
	case *batchv1alpha1.ScheduledJob:
		return o.Spec.Suspend
	case *batchv1alpha1.JobQueue:
		return o.Spec.Suspend
	default:
		return false
	}
}
