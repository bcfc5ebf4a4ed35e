// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/metrics"
	"reprise.dev/reprise/internal/metrics/metricstest"
)

// leader is a process that may lead.
type leader struct {
	epoch epoch.Epoch
	leads bool
}

func (l *leader) Leading() (epoch.Epoch, bool) { return l.epoch, l.leads }

func (l *leader) Epoch(context.Context) (epoch.Epoch, error) { return l.epoch, nil }

// bench is a watcher whose handlers are called by hand.
type bench struct {
	*Watcher
	self                    *leader
	queues, runs, schedules cache.ResourceEventHandler
	told                    []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	e, err := epoch.Parse(own)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{self: &leader{epoch: e, leads: true}}
	b.Watcher = New(Options{Self: b.self, Clock: clocktesting.NewFakePassiveClock(noon.Add(time.Minute))})
	b.queues, b.runs, b.schedules = handle(b.Watcher, b.queue()), handle(b.Watcher, b.noting(jobRun())), handle(b.Watcher, b.scheduledJob())
	return b
}

// noting has the bench note what is counted as a change of a run.
func (b *bench) noting(k kind[*batchv1alpha1.JobRun]) kind[*batchv1alpha1.JobRun] {
	phase := func(r *batchv1alpha1.JobRun) string {
		if r == nil {
			return "none"
		}
		return string(r.Status.Phase)
	}
	changes := k.changes
	k.changes = func(before, now *batchv1alpha1.JobRun, m moment) []Observation {
		b.told = append(b.told, phase(before)+" to "+phase(now))
		return changes(before, now, m)
	}
	return k
}

// show publishes the census as it would be while this process leads.
func (b *bench) show(t *testing.T) {
	t.Helper()
	t.Cleanup(metrics.Publish(b.census, own))
}

func inNamespace(ns string) change { return func(r *batchv1alpha1.JobRun) { r.Namespace = ns } }

func aQueue(ns, name string) *batchv1alpha1.JobQueue {
	return &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

func TestARestartCountsNothingTwice(t *testing.T) {
	g := NewWithT(t)
	count := func() float64 {
		return metricstest.Value(t, metrics.RunsFinished, "restart", "main", "Completed", "Succeeded")
	}
	of := inNamespace("restart")
	before, now := aRun(of, startedAt(5, own)), aRun(of, startedAt(5, own), completed)

	first := newBench(t)
	first.queues.OnAdd(aQueue("restart", "main"), true)
	first.runs.OnAdd(before, false)
	first.runs.OnUpdate(before, now)
	g.Expect(count()).To(Equal(1.0))

	second := newBench(t)
	second.queues.OnAdd(aQueue("restart", "main"), true)
	second.runs.OnAdd(now, true)
	g.Expect(count()).To(Equal(1.0))
	g.Expect(second.told).To(BeEmpty())
}

func TestWhatHappensUnderAnotherLeaderIsItsOwnToCount(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	b.self.leads = false
	of := inNamespace("standby")
	b.queues.OnAdd(aQueue("standby", "main"), true)
	b.runs.OnAdd(aRun(of), false)
	b.runs.OnUpdate(aRun(of), aRun(of, startedAt(5, own)))
	g.Expect(metricstest.Value(t, metrics.QueueWait, "standby", "main")).To(BeZero())
	g.Expect(b.told).To(BeEmpty())

	b.self.leads = true
	b.runs.OnUpdate(aRun(of, startedAt(5, own)), aRun(of, startedAt(5, own), completed))
	g.Expect(metricstest.Value(t, metrics.RunDuration, "standby", "main", "Completed")).To(Equal(1.0))
	g.Expect(b.told).To(Equal([]string{"Running to Completed"}))
	b.show(t)
	for phase, want := range map[string]float64{"Queued": 0, "Running": 0, "Completed": 1} {
		got, told := metricstest.Gauge(t, metrics.Runs, "standby", "main", phase)
		g.Expect(told).To(BeTrue(), phase)
		g.Expect(got).To(Equal(want), phase)
	}
}

func TestANamesakeThatTakesAnObjectsPlaceIsAnotherObject(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	of := inNamespace("namesake")
	b.queues.OnAdd(aQueue("namesake", "main"), true)
	before := aRun(of, startedAt(5, own))
	b.runs.OnAdd(before, true)
	b.runs.OnUpdate(before, aRun(of, func(r *batchv1alpha1.JobRun) { r.UID = "another" }))
	g.Expect(b.told).To(Equal([]string{"Running to none", "none to Queued"}))
	b.show(t)
	queued, _ := metricstest.Gauge(t, metrics.Runs, "namesake", "main", "Queued")
	running, _ := metricstest.Gauge(t, metrics.Runs, "namesake", "main", "Running")
	g.Expect([]float64{queued, running}).To(Equal([]float64{1, 0}))
}

func TestADeletionThatTheWatchHasMissedIsSeenAllTheSame(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	r := aRun(inNamespace("missed"), startedAt(5, own))
	b.runs.OnAdd(r, true)
	b.queues.OnAdd(aQueue("missed", "main"), true)
	b.runs.OnDelete(cache.DeletedFinalStateUnknown{Key: "missed/a", Obj: r})
	g.Expect(b.told).To(Equal([]string{"Running to none"}))
	b.show(t)
	running, _ := metricstest.Gauge(t, metrics.Runs, "missed", "main", "Running")
	g.Expect(running).To(BeZero())
}

func TestOnlyRunsOfEarlierManagersAreOrphans(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	of := inNamespace("orphans")
	b.queues.OnAdd(aQueue("orphans", "main"), true)
	b.runs.OnAdd(aRun(of, startedAt(5, own)), true)
	b.runs.OnAdd(aRun(of, startedAt(5, earlier)), true)
	b.runs.OnAdd(aRun(of, startedAt(5, "")), true)
	b.show(t)
	orphans, _ := metricstest.Gauge(t, metrics.OrphanedRuns, "orphans", "main")
	g.Expect(orphans).To(Equal(2.0))
}

func TestNamesOfWhatIsGoneDoNotPileUp(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	begun := func() bool {
		_, told := metricstest.Told(t, metrics.ChainsFailed, "gone", "main")
		return told
	}
	ticks := func() bool {
		_, told := metricstest.Told(t, metrics.Ticks, "gone", "missed")
		return told
	}
	sj := aSchedule(nil, 0, 0)
	sj.Namespace = "gone"
	b.schedules.OnAdd(sj, true)
	g.Expect([]bool{begun(), ticks()}).To(Equal([]bool{false, true}))
	b.queues.OnAdd(aQueue("gone", "main"), true)
	g.Expect([]bool{begun(), ticks()}).To(Equal([]bool{true, true}))
	b.queues.OnDelete(aQueue("gone", "main"))
	g.Expect([]bool{begun(), ticks()}).To(Equal([]bool{false, true}))
	b.schedules.OnDelete(sj)
	g.Expect([]bool{begun(), ticks()}).To(Equal([]bool{false, false}))
}

func TestAQueueThatDoesNotExistHasNoName(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	of := inNamespace("nowhere")
	cancelled := ended(batchv1alpha1.JobRunCancelled, batchv1alpha1.ReasonCancelled, 3)
	b.runs.OnAdd(aRun(of), false)
	b.runs.OnUpdate(aRun(of), aRun(of, cancelled))
	_, told := metricstest.Told(t, metrics.RunsFinished, "nowhere", "main", "Cancelled", "Cancelled")
	g.Expect(told).To(BeFalse())
	g.Expect(metricstest.Value(t, metrics.RunsFinished, "nowhere", metrics.Missing, "Cancelled", "Cancelled")).To(Equal(1.0))

	b.show(t)
	missing := func(queue string) float64 {
		n, _ := metricstest.Gauge(t, metrics.Runs, "nowhere", queue, "Queued")
		return n
	}
	b.runs.OnAdd(aRun(of), false)
	b.runs.OnAdd(aRun(of, func(r *batchv1alpha1.JobRun) { r.Spec.Work = nil }), false)
	g.Expect([]float64{missing("main"), missing(metrics.Missing)}).To(Equal([]float64{0, 2}))
	b.queues.OnAdd(aQueue("nowhere", "main"), false)
	g.Expect([]float64{missing("main"), missing(metrics.Missing)}).To(Equal([]float64{1, 1}), "the other is yet to be resolved")
}

// Whatever comes and goes in whatever order, the census is that of what is there.
func TestTheCensusIsThatOfWhatIsThere(t *testing.T) {
	states := []*batchv1alpha1.JobRun{
		aRun(), aRun(startedAt(5, earlier)), aRun(startedAt(5, own), cancelling), aRun(startedAt(5, own), crashed, holding), aRun(startedAt(5, own), completed),
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t)
		there := map[string]*batchv1alpha1.JobRun{}
		for range rapid.IntRange(0, 30).Draw(rt, "events") {
			name := fmt.Sprint(rapid.IntRange(0, 4).Draw(rt, "name"))
			before := there[name]
			now := states[rapid.IntRange(0, len(states)-1).Draw(rt, "state")].DeepCopy()
			now.Namespace = "census"
			switch {
			case before == nil:
				b.runs.OnAdd(now, rapid.Bool().Draw(rt, "first"))
				there[name] = now
			case rapid.Bool().Draw(rt, "gone"):
				b.runs.OnDelete(before)
				delete(there, name)
			default:
				b.runs.OnUpdate(before, now)
				there[name] = now
			}
		}
		b.queues.OnAdd(aQueue("census", "main"), false)
		withdraw := metrics.Publish(b.census, own)
		defer withdraw()
		want := map[string]float64{}
		for _, r := range there {
			want[string(r.Status.Phase)]++
		}
		for _, phase := range []string{"Queued", "Running", "Cancelling", "Failed", "Completed"} {
			got, told := metricstest.Gauge(t, metrics.Runs, "census", "main", phase)
			if shown := want[phase] > 0 || phase == "Queued" || phase == "Running" || phase == "Cancelling"; got != want[phase] || told != shown {
				rt.Fatalf("%s: %v (told: %t), want %v", phase, got, told, want[phase])
			}
		}
	})
}

func TestTheCensusIsShownWhileTheProcessLeads(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Start(ctx) }()
	told := func() bool {
		at, told := metricstest.Gauge(t, metrics.LeadingSince)
		return told && at == float64(noon.Add(time.Minute).Unix())
	}
	g.Eventually(told).Should(BeTrue())
	cancel()
	g.Expect(<-done).To(Succeed())
	g.Expect(told()).To(BeFalse())
}
