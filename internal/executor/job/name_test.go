// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var (
	objectNames = rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?){0,2}`)
	uids        = rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

func named(name, uid string) runChange {
	return func(r *batchv1alpha1.JobRun) { r.Name, r.UID = name, types.UID(uid) }
}

func TestEveryJobNameIsADNSLabelAndTellsTheUIDsOfNamesakesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, uid, other := objectNames.Draw(t, "name"), uids.Draw(t, "uid"), uids.Draw(t, "other")
		got := Name(aRun(named(name, uid)))
		if problems := validation.IsDNS1123Label(got); problems != nil {
			t.Errorf("Name(%q) = %q: %v", name, got, problems)
		}
		if uid != other && got == Name(aRun(named(name, other))) {
			t.Errorf("runs of the name %q with UIDs %s and %s share the Job name %s", name, uid, other, got)
		}
		if got != Name(aRun(named(name, uid))) {
			t.Error("the name is not the same a second time")
		}
	})
}

func TestTheNameOfAnIndexedJobLeavesRoomForTheIndexOfItsPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		completions := rapid.Int32Range(0, 1_000_000).Draw(t, "completions")
		r := aRun(named(strings.Repeat("x", 63), uid), template(func(j *batchv1.JobTemplateSpec) {
			j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
			j.Spec.Completions = &completions
		}))
		hostname := Name(r) + "-" + strconv.Itoa(int(max(completions-1, 0)))
		if problems := validation.IsDNS1123Label(hostname); problems != nil {
			t.Errorf("host name %q: %v", hostname, problems)
		}
	})
}

func TestANameBeginsWithThatOfItsRun(t *testing.T) {
	for run, prefix := range map[string]string{
		"nightly-1":               "nightly-1-",
		"a.b":                     "a-b-",
		strings.Repeat("x", 57):   strings.Repeat("x", 52) + "-",
		strings.Repeat("xy-", 20): strings.Repeat("xy-", 17) + "x-",
	} {
		if got := Name(aRun(named(run, uid))); !strings.HasPrefix(got, prefix) || len(got) != len(prefix)+hashLength {
			t.Errorf("Name(%q) = %q, want %s<hash>", run, got, prefix)
		}
	}
}

func TestTheNameOnRecordStaysTheName(t *testing.T) {
	r := aRun(func(r *batchv1alpha1.JobRun) { r.Status.JobName = "as-recorded" })
	if got := Name(r); got != "as-recorded" {
		t.Errorf("Name = %q", got)
	}
}

func TestLabelValuesAreValidForEveryObjectName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-.a-z0-9]{0,80}[a-z0-9])?`).Draw(t, "name")
		if problems := validation.IsValidLabelValue(labelValue(name)); problems != nil {
			t.Errorf("labelValue(%q) = %q: %v", name, labelValue(name), problems)
		}
	})
}
