// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Schedules: fires of one time and of many, on time and missed, alone and over one another.

func scheduleScenarios() []scenario {
	return slices.Concat(
		once("once-run-once", batchv1alpha1.MissedRunOnce, batchv1alpha1.ConcurrencyAllow),
		once("once-run-all", batchv1alpha1.MissedRunAll, batchv1alpha1.ConcurrencyForbid),
		once("once-skip", batchv1alpha1.MissedSkip, batchv1alpha1.ConcurrencyReplace),
		scenario{
			name: "once-ttl",
			drive: func(h *history) {
				h.create(h.queue())
				for _, name := range abc {
					sj := schedule(name, h.calls(0))
					sj.Spec.RunAt = ptr.To(metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second)))
					sj.Spec.TTLSecondsAfterFired = ptr.To[int32](0)
					h.create(sj)
				}
				h.await("all are gone", func(v view) bool { return len(every[*batchv1alpha1.ScheduledJob](v)) == 0 })
			},
			expect: func(_ *history, v view) []string { return fired(v, map[string]int{"a": 1, "b": 1, "c": 1}) },
		}.at(1, 2),
		scenario{
			name:  "every-second",
			drive: everySecond,
			expect: func(_ *history, v view) (wrong []string) {
				if roots := rootsOf(v, "a"); len(roots) < 3 {
					wrong = append(wrong, fmt.Sprintf("it fired %d times", len(roots)))
				}
				return wrong
			},
		}.at(1, 2),
		missed("missed-run-once", batchv1alpha1.MissedRunOnce, 1),
		missed("missed-run-all", batchv1alpha1.MissedRunAll, 3),
		missed("missed-skip", batchv1alpha1.MissedSkip, 0),
		overlap("overlap-allow", batchv1alpha1.ConcurrencyAllow, func(sj *batchv1alpha1.ScheduledJob, runs []*batchv1alpha1.JobRun) bool {
			return len(runs) == 3
		}),
		overlap("overlap-forbid", batchv1alpha1.ConcurrencyForbid, func(sj *batchv1alpha1.ScheduledJob, _ []*batchv1alpha1.JobRun) bool {
			return sj.Status.SkippedRuns > 0
		}),
		scenario{
			name: "overlap-replace", drive: replaced,
			expect: func(_ *history, v view) (wrong []string) {
				for _, root := range rootsOf(v, "a")[:2] { // the third was made when these had stopped, and no gate was open by then
					for _, r := range v.chain(root.Name) {
						if r.Status.Phase == batchv1alpha1.JobRunCompleted {
							wrong = append(wrong, fmt.Sprintf("run %s, which was to be replaced, is %s", r.Name, r.Status.Phase))
						}
					}
				}
				return wrong
			},
		}.at(1, 2),
	)
}

func schedule(name string, t template) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: called(name)}
	sj.Spec.RunTemplate = &t
	return sj
}

// rootsOf returns the first run of each chain of a ScheduledJob.
func rootsOf(v view, name string) []*batchv1alpha1.JobRun {
	return slices.DeleteFunc(v.runs(), func(r *batchv1alpha1.JobRun) bool {
		return r.Spec.ScheduledJobRef == nil || r.Spec.ScheduledJobRef.Name != name || r.Spec.RetryOf != ""
	})
}

// fired expects that many fires of each ScheduledJob.
func fired(v view, want map[string]int) (wrong []string) {
	for _, name := range abc {
		if got := len(rootsOf(v, name)); got != want[name] {
			wrong = append(wrong, fmt.Sprintf("schedule %s fired %d times, not %d", name, got, want[name]))
		}
	}
	return wrong
}

// once is three one-time schedules that are past due: whatever the policies, each fires exactly once.
func once(name string, missed batchv1alpha1.MissedRunPolicy, overlap batchv1alpha1.ConcurrencyPolicy) []scenario {
	return scenario{
		name: name, fast: missed == batchv1alpha1.MissedRunOnce,
		drive: func(h *history) {
			h.create(h.queue())
			for _, name := range abc {
				sj := schedule(name, h.calls(0))
				sj.Spec.RunAt = ptr.To(metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second)))
				sj.Spec.MissedRunPolicy, sj.Spec.ConcurrencyPolicy = missed, overlap
				h.create(sj)
			}
			h.await("all have fired", func(v view) bool {
				return !slices.ContainsFunc(abc, func(name string) bool { return len(rootsOf(v, name)) == 0 })
			})
		},
		expect: func(_ *history, v view) []string { return fired(v, map[string]int{"a": 1, "b": 1, "c": 1}) },
	}.at(1, 2)
}

// everySecond has a schedule fire on time three times, and then suspends it.
func everySecond(h *history) {
	h.create(h.queue())
	sj := schedule("a", h.calls(0))
	sj.Spec.Schedule = "@every 1s"
	h.create(sj)
	h.await("it has fired three times", func(v view) bool { return len(rootsOf(v, "a")) >= 3 })
	h.change(sj, func() { sj.Spec.Suspend = true })
	h.await("it is suspended", func(v view) bool {
		sj := named[*batchv1alpha1.ScheduledJob](v, "a")
		return sj.Status.ObservedGeneration == sj.Generation
	})
}

// replaced has every fire replace the one before, three times.
func replaced(h *history) {
	h.create(h.queue())
	sj := schedule("a", h.holds("gate"))
	sj.Spec.Schedule, sj.Spec.ConcurrencyPolicy = "@every 2s", batchv1alpha1.ConcurrencyReplace
	h.create(sj)
	h.await("it has fired three times", func(v view) bool { return len(rootsOf(v, "a")) >= 3 })
	h.change(sj, func() { sj.Spec.Suspend = true })
	h.await("it is suspended", func(v view) bool {
		sj := named[*batchv1alpha1.ScheduledJob](v, "a")
		return sj.Status.ObservedGeneration == sj.Generation
	})
	h.log.openGate("gate")
}

// threeMissed is by how much later the managers of a scenario with missed ticks come: three ticks of every hour have passed.
const threeMissed = 3*time.Hour + 30*time.Minute

// everyHour makes schedules of every hour, which a manager sees.
func everyHour(h *history, names []string, t template, change func(*batchv1alpha1.ScheduledJob)) {
	h.create(h.queue())
	for _, name := range names {
		sj := schedule(name, t)
		sj.Spec.Schedule = "@every 1h"
		change(sj)
		h.create(sj)
	}
	h.await("the schedules are known", func(v view) bool {
		return !slices.ContainsFunc(every[*batchv1alpha1.ScheduledJob](v), func(sj *batchv1alpha1.ScheduledJob) bool {
			return sj.Status.NextScheduleTime == ""
		})
	})
}

// missed is three schedules of which three ticks each were missed.
func missed(name string, policy batchv1alpha1.MissedRunPolicy, fires int) []scenario {
	return scenario{
		name:  name,
		shift: threeMissed,
		before: func(h *history) {
			everyHour(h, abc, h.calls(0), func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.MissedRunPolicy = policy })
		},
		drive: func(h *history) {
			h.await("the missed ticks are handled", func(v view) bool {
				return !slices.ContainsFunc(abc, func(name string) bool {
					missed := named[*batchv1alpha1.ScheduledJob](v, name).Status.MissedRuns
					return int(missed)+len(rootsOf(v, name)) < 3
				})
			})
		},
		expect: func(_ *history, v view) (wrong []string) {
			for _, name := range abc {
				sj := named[*batchv1alpha1.ScheduledJob](v, name)
				if int(sj.Status.MissedRuns) != 3-fires {
					wrong = append(wrong, fmt.Sprintf("schedule %s counts %d missed ticks, not %d", name, sj.Status.MissedRuns, 3-fires))
				}
			}
			return append(wrong, fired(v, map[string]int{"a": fires, "b": fires, "c": fires})...)
		},
	}.at(1, 2)
}

// overlap is a schedule of which three ticks are due at once, each before the work of the one before has ended.
func overlap(name string, policy batchv1alpha1.ConcurrencyPolicy, piled func(*batchv1alpha1.ScheduledJob, []*batchv1alpha1.JobRun) bool) []scenario {
	return scenario{
		name:  name,
		shift: threeMissed,
		before: func(h *history) {
			everyHour(h, []string{"a"}, h.holds("gate"), func(sj *batchv1alpha1.ScheduledJob) {
				sj.Spec.MissedRunPolicy, sj.Spec.ConcurrencyPolicy = batchv1alpha1.MissedRunAll, policy
			})
		},
		drive: func(h *history) {
			h.await("the ticks pile up", func(v view) bool {
				return piled(named[*batchv1alpha1.ScheduledJob](v, "a"), rootsOf(v, "a"))
			})
			h.log.openGate("gate")
		},
		expect: func(_ *history, v view) (wrong []string) {
			sj := named[*batchv1alpha1.ScheduledJob](v, "a")
			executed := slices.DeleteFunc(rootsOf(v, "a"), func(r *batchv1alpha1.JobRun) bool { return r.Status.Phase == batchv1alpha1.JobRunSkipped })
			if len(executed)+int(sj.Status.SkippedRuns)+int(sj.Status.MissedRuns) != 3 {
				wrong = append(wrong, fmt.Sprintf("of three ticks %d fired, %d were skipped and %d missed", len(executed), sj.Status.SkippedRuns, sj.Status.MissedRuns))
			}
			return wrong
		},
	}.at(1, 2)
}
