// SPDX-License-Identifier: Apache-2.0

package creator_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
)

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	tick = noon.Add(-10 * time.Minute)
	made = creator.Made{UID: "uid", At: noon}
)

const (
	superseded = batchv1alpha1.ReasonSuperseded
	forbidden  = batchv1alpha1.ReasonOverlapForbidden
)

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

func TestWhatAScheduledJobSaysOfWhatWasMadeForItsTick(t *testing.T) {
	every := func(changes ...func(*batchv1alpha1.ScheduledJob)) *batchv1alpha1.ScheduledJob {
		sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Name: "sj", CreationTimestamp: *at(tick.Add(-time.Hour)), Generation: 1}}
		sj.Spec.Schedule, sj.Status.ObservedGeneration = "*/10 * * * *", 1
		for _, c := range changes {
			c(sj)
		}
		return sj
	}
	once := func(when time.Time) func(*batchv1alpha1.ScheduledJob) {
		return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule, sj.Spec.RunAt = "", at(when) }
	}
	through := func(when time.Time) func(*batchv1alpha1.ScheduledJob) {
		return func(sj *batchv1alpha1.ScheduledJob) { sj.Status.HandledThrough = at(when) }
	}
	skippedAt := func(when time.Time) func(*batchv1alpha1.ScheduledJob) {
		return func(sj *batchv1alpha1.ScheduledJob) { sj.Status.LastSkippedTime = at(when) }
	}
	firedAt := func(when time.Time) func(*batchv1alpha1.ScheduledJob) {
		return func(sj *batchv1alpha1.ScheduledJob) { sj.Status.LastScheduleTime = at(when) }
	}
	naming := func(sj *batchv1alpha1.ScheduledJob) {
		sj.Status.Active = []batchv1alpha1.ActiveRun{{UID: "other"}, {UID: "uid"}}
	}
	for name, c := range map[string]struct {
		sj     *batchv1alpha1.ScheduledJob
		answer creator.Answer
		reason string
	}{
		"there is none": {nil, creator.Gone, ""},
		"one of its name was made later": {every(through(noon), func(sj *batchv1alpha1.ScheduledJob) {
			sj.CreationTimestamp = *at(noon.Add(time.Second))
		}), creator.Gone, ""},
		"it names it":                                                     {every(naming, through(noon)), creator.Named, ""},
		"it has not come to the tick":                                     {every(through(tick.Add(-time.Second))), creator.Unrecorded, ""},
		"it has fired nothing yet":                                        {every(), creator.Unrecorded, ""},
		"it is to fire at that time":                                      {every(once(tick)), creator.Unrecorded, ""},
		"it is to fire at another time":                                   {every(once(noon)), creator.Refused, superseded},
		"it has fired at that time":                                       {every(once(tick), func(sj *batchv1alpha1.ScheduledJob) { sj.Status.FiredRunAt = at(tick) }), creator.Refused, superseded},
		"it has settled the tick without it":                              {every(through(tick)), creator.Refused, superseded},
		"it has skipped the tick":                                         {every(through(tick), skippedAt(tick)), creator.Refused, forbidden},
		"it has skipped the tick and a later one":                         {every(through(noon), skippedAt(noon)), creator.Refused, forbidden},
		"it has fired before it skipped the tick and a later one":         {every(through(noon), skippedAt(noon), firedAt(tick.Add(-time.Second))), creator.Refused, forbidden},
		"it has fired the tick, with another, and skipped a later one":    {every(through(noon), skippedAt(noon), firedAt(tick)), creator.Refused, superseded},
		"it has skipped an earlier tick, and settled this one without it": {every(through(noon), skippedAt(tick.Add(-time.Second))), creator.Refused, superseded},
		"it skipped a later time before it was to fire at this one":       {every(skippedAt(noon), once(tick)), creator.Unrecorded, ""},
		"it has no such tick":                                             {every(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "5 * * * *" }), creator.Refused, superseded},
		"it has no schedule":                                              {every(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "" }), creator.Refused, superseded},
		"nobody understands its schedule":                                 {every(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "TZ=0" }), creator.Refused, superseded},
		"it has settled the tick under its former schedule":               {every(through(tick), func(sj *batchv1alpha1.ScheduledJob) { sj.Generation = 2 }), creator.Unrecorded, ""},
		"it has handled that time as a recurring one":                     {every(through(noon), once(tick)), creator.Unrecorded, ""},
		"it has not seen its schedule so far":                             {every(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule, sj.Generation = "5 * * * *", 2 }), creator.Unrecorded, ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, creator.OfTick(c.sj, made, tick), c.answer, c.reason) })
	}
}

func TestWhatAGroupSaysOfWhatWasMadeForItsMember(t *testing.T) {
	group := func(phase batchv1alpha1.JobGroupPhase, members ...batchv1alpha1.GroupMemberStatus) *batchv1alpha1.JobGroup {
		g := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", CreationTimestamp: *at(noon)}}
		g.Spec.Members = []batchv1alpha1.GroupMember{{Name: "a"}, {Name: "b"}}
		g.Status.Phase, g.Status.Members = phase, members
		return g
	}
	later := group("Running")
	later.CreationTimestamp = *at(noon.Add(time.Second))
	for name, c := range map[string]struct {
		group  *batchv1alpha1.JobGroup
		member string
		answer creator.Answer
		reason string
	}{
		"there is none":                              {nil, "a", creator.Gone, ""},
		"one of its name was made later":             {later, "a", creator.Gone, ""},
		"it names it":                                {group("Running", batchv1alpha1.GroupMemberStatus{Name: "a", Phase: "Queued", RunUID: "uid"}), "a", creator.Named, ""},
		"it names it, and has ended":                 {group("Failed", batchv1alpha1.GroupMemberStatus{Name: "a", Phase: "Failed", RunUID: "uid"}), "a", creator.Named, ""},
		"it names nobody yet":                        {group("Pending"), "b", creator.Unrecorded, ""},
		"it is not the turn of the member":           {group("Running", batchv1alpha1.GroupMemberStatus{Name: "b", Phase: "Waiting"}), "b", creator.Unrecorded, ""},
		"it names another for the member":            {group("Running", batchv1alpha1.GroupMemberStatus{Name: "b", Phase: "Queued", RunUID: "other"}), "b", creator.Refused, superseded},
		"the member was ended without it":            {group("Running", batchv1alpha1.GroupMemberStatus{Name: "b", Phase: "Cancelled"}), "b", creator.Refused, superseded},
		"it has ended, and tells of nobody":          {group("Skipped"), "b", creator.Refused, superseded},
		"it has no such member":                      {group("Running"), "c", creator.Refused, superseded},
		"it has not, and one that it had is told of": {group("Running", batchv1alpha1.GroupMemberStatus{Name: "c", Phase: "Waiting"}), "c", creator.Refused, superseded},
	} {
		t.Run(name, func(t *testing.T) { expect(t, creator.OfMember(c.group, made, c.member), c.answer, c.reason) })
	}
}

func expect(t *testing.T, got creator.Verdict, answer creator.Answer, reason string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(got.Answer).To(Equal(answer))
	g.Expect(got.Reason).To(Equal(reason))
	g.Expect(got.Message == "").To(Equal(reason == ""), "a refusal is explained")
	g.Expect(got.Final()).To(Equal(answer == creator.Named || answer == creator.Gone))
}

func TestAnObjectIsKnownByItsUIDAndWhenItWasMade(t *testing.T) {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{UID: "uid", CreationTimestamp: *at(noon)}}
	NewWithT(t).Expect(creator.Of(r)).To(Equal(made))
}
