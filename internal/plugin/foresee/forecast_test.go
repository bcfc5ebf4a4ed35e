// SPDX-License-Identifier: Apache-2.0

package foresee

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
	"reprise.dev/reprise/internal/plugin/text"
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

func instant(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return at
}

var now = time.Date(2026, 11, 20, 6, 59, 30, 0, time.UTC)

// aSchedule was created an hour ago, and everything up to now is settled.
func aSchedule(expr string, change ...func(*batchv1alpha1.ScheduledJob)) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly", UID: "sj", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec: batchv1alpha1.ScheduledJobSpec{
			Schedule: expr, MissedRunPolicy: batchv1alpha1.MissedRunOnce, ConcurrencyPolicy: batchv1alpha1.ConcurrencyAllow, MaxQueuedRuns: 100,
			RunTemplate: &batchv1alpha1.JobRunTemplateSpec{},
		},
	}
	for _, f := range change {
		f(sj)
	}
	observed(sj)
	return sj
}

// observed fills in what the manager has noted of a ScheduledJob that it has seen just now.
func observed(sj *batchv1alpha1.ScheduledJob) {
	if sj.Status.ObservedSchedule == "" && sj.Spec.Schedule != "" {
		zone := sj.Spec.TimeZone
		if zone == "" {
			zone = "UTC"
		}
		sj.Status.ObservedSchedule = sj.Spec.Schedule + " in " + zone
		if sj.Spec.Suspend {
			sj.Status.ObservedSchedule += ", suspended"
		}
		sj.Status.HandledThrough = ptr.To(metav1.NewTime(now))
	}
}

// unsettled is a run of the ScheduledJob that is at work.
func unsettled(name string) batchv1alpha1.JobRun {
	return batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "1"},
		Spec:       batchv1alpha1.JobRunSpec{ScheduledJobRef: &batchv1alpha1.ObjectName{Name: "nightly"}},
		Status:     batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunRunning, Slot: batchv1alpha1.SlotHeld},
	}
}

func told5(t *testing.T, s subject, at time.Time) []string {
	t.Helper()
	f, err := forecast(s, 5, at)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return draw(f, at, text.Style{})
}

func TestTheNextTicksAreToldInTheZoneOfTheSchedule(t *testing.T) {
	sj := aSchedule("0 7 * * 1-5", func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.TimeZone = "Europe/Berlin" })
	golden(t, "zone.txt", told5(t, subject{sj: sj}, now))
	golden(t, "utc.txt", told5(t, subject{sj: aSchedule("0 7 * * *")}, now))
}

func TestTicksThatAChangeOfTheClockTouchesAreMarked(t *testing.T) {
	for file, tc := range map[string]struct{ expr, after string }{
		"moved.txt":   {"30 2 * * *", "2027-03-12T12:00:00Z"},
		"skipped.txt": {"30 * * * *", "2027-03-14T06:00:00Z"},
		"once.txt":    {"30 1 * * *", "2026-10-30T12:00:00Z"},
		"doubled.txt": {"30 * * * *", "2026-11-01T04:40:00Z"},
	} {
		after := instant(t, tc.after)
		sj := aSchedule(tc.expr, func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.TimeZone = "America/New_York" })
		sj.Status.HandledThrough = ptr.To(metav1.NewTime(after))
		golden(t, file, told5(t, subject{sj: sj}, after))
	}
}

func TestWhatKeepsTicksFromFiringIsSaid(t *testing.T) {
	policy := func(p batchv1alpha1.ConcurrencyPolicy) func(*batchv1alpha1.ScheduledJob) {
		return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.ConcurrencyPolicy = p }
	}
	full := func(p batchv1alpha1.MissedRunPolicy) func(*batchv1alpha1.ScheduledJob) {
		return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.MaxQueuedRuns, sj.Spec.MissedRunPolicy = 1, p }
	}
	behind := func(sj *batchv1alpha1.ScheduledJob) {
		observed(sj)
		sj.Status.HandledThrough = ptr.To(metav1.NewTime(now.Add(-90 * time.Second)))
	}
	busy := []batchv1alpha1.JobRun{unsettled("nightly-1")}
	for name, tc := range map[string]struct {
		s    subject
		want string
	}{
		"a suspension": {
			subject{sj: aSchedule("* * * * *", func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Suspend = true })},
			"suspended: nothing fires until it is resumed, and what passes until then is never fired (kubectl reprise resume nightly)"},
		"too many that have not settled, of which the latest fires": {
			subject{sj: aSchedule("* * * * *", full(batchv1alpha1.MissedRunOnce)), runs: busy},
			"the next tick, if that is still so: held back. 1 not settled (nightly-1), and maxQueuedRuns is 1; when there is room, the latest that was missed fires alone"},
		"too many that have not settled, of which all fire": {
			subject{sj: aSchedule("* * * * *", full(batchv1alpha1.MissedRunAll), behind), runs: busy},
			"now: held back. 1 not settled (nightly-1), and maxQueuedRuns is 1; when there is room, all that were missed fire, the oldest first"},
		"too many that have not settled, of which none fires": {
			subject{sj: aSchedule("* * * * *", full(batchv1alpha1.MissedSkip)), runs: busy},
			"the next tick, if that is still so: held back. 1 not settled (nightly-1), and maxQueuedRuns is 1; when there is room, those that were missed are only counted"},
		"an overlap that is forbidden": {
			subject{sj: aSchedule("* * * * *", policy(batchv1alpha1.ConcurrencyForbid)), runs: busy},
			"the next tick, if that is still so: skipped. concurrencyPolicy is Forbid, and nightly-1 has not settled"},
		"an overlap that replaces": {
			subject{sj: aSchedule("* * * * *", policy(batchv1alpha1.ConcurrencyReplace)), runs: busy},
			"the next tick, if that is still so: replaces. concurrencyPolicy is Replace: nightly-1 is cancelled, and the tick fires when it has stopped"},
		"a manager that is not there": {
			subject{sj: aSchedule("* * * * *", behind)},
			"now: fires. the tick of 2026-11-20T06:59:00Z is due; is the manager running?"},
		"a starting deadline that is over": {
			subject{sj: aSchedule("* * * * *", behind, func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.StartingDeadlineSeconds = ptr.To[int64](5) })},
			"now: given up. the tick of 2026-11-20T06:59:00Z came too late"},
		"that there is no schedule": {
			subject{sj: aSchedule("")}, "no schedule: it runs by hand alone (kubectl reprise run nightly)"},
		"that @every depends on what is not known": {
			subject{sj: aSchedule("@every 90s"), unapplied: true},
			"from a file: @every counts from the creation of the ScheduledJob; the times are those of one created now"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := forecast(tc.s, 1, now)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(f.Notes).To(Equal([]string{tc.want}))
		})
	}
}

func TestNothingKeepsAnOrdinaryTick(t *testing.T) {
	f, err := forecast(subject{sj: aSchedule("0 7 * * *"), runs: []batchv1alpha1.JobRun{unsettled("nightly-1")}}, 1, now)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(f.Notes).To(BeEmpty())
	NewWithT(t).Expect(f.Fires[0].Creates).To(Equal("nightly-1795158000"))
}

func TestATickThatIsSettledIsNotToldAgainByAClockThatIsBehind(t *testing.T) {
	g := NewWithT(t)
	sj := aSchedule("* * * * *")
	sj.Status.HandledThrough = ptr.To(metav1.NewTime(now.Add(90 * time.Second)))
	f, err := forecast(subject{sj: sj}, 1, now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Fires[0].Time).To(BeTemporally("==", now.Add(150*time.Second)))
	g.Expect(f.Notes).To(ContainElement(ContainSubstring("the clock here may be behind")))
}

func TestAOneTimeScheduleTellsItsTimeOrWhyItHasNone(t *testing.T) {
	once := func(in time.Duration, change ...func(*batchv1alpha1.ScheduledJob)) subject {
		return subject{sj: aSchedule("", append(change, func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.RunAt = ptr.To(metav1.NewTime(now.Add(in))) })...)}
	}
	fired := func(sj *batchv1alpha1.ScheduledJob) {
		sj.Status.FiredRunAt, sj.Status.ObservedSchedule = ptr.To(metav1.NewTime(now.Add(-time.Hour))), "at 2026-11-20T05:59:30Z"
	}
	for name, tc := range map[string]struct {
		s     subject
		fires int
		note  string
	}{
		"to come":       {once(time.Hour), 1, ""},
		"past, and due": {once(-time.Hour), 1, "its time is past (60m ago): it fires at once, exactly once"},
		"fired":         {once(-time.Hour, fired), 0, "nothing is to come: settled: edit spec.runAt to run again"},
		"suspended": {once(time.Hour, func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Suspend = true }), 0,
			"once, at 2026-11-20T07:59:30Z"},
		"too late": {once(-time.Hour, func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.StartingDeadlineSeconds = ptr.To[int64](60) }), 0,
			"nothing is to come: 2026-11-20T05:59:30Z is past by more than the starting deadline: edit spec.runAt to run it"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f, err := forecast(tc.s, 5, now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.Fires).To(HaveLen(tc.fires))
			g.Expect(strings.Join(append(f.Notes, "")[:1], "")).To(Equal(tc.note))
		})
	}
}

func TestAScheduleThatCannotBeUsedIsAnErrorWithAWayOut(t *testing.T) {
	for expr, want := range map[string]string{
		"0 0 30 2 *": "there is no such date",
		"0 7 * *":    "write minute, hour, day of month, month and day of week",
		"@evry 5m":   "use @hourly, @daily, @weekly, @monthly, @yearly or @every <duration>",
	} {
		_, err := forecast(subject{sj: aSchedule(expr), unapplied: true}, 5, now)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
	}
	_, err := forecast(subject{sj: aSchedule("@daily", func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.TimeZone = "Europe/Lissabon" })}, 5, now)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`unknown time zone "Europe/Lissabon"`)))
}
