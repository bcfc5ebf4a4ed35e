// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/faultwire"
	"reprise.dev/reprise/internal/operator"
)

// ordeal is a mixed history under adversity. Its seed decides what the user does and what goes wrong; when each happens among
// the other's steps is up to the machine.
type ordeal struct {
	name string
	seed uint64
	// calls says that there are calls among the work.
	calls bool
	// elected has the processes elect their leader. Otherwise each is alone by declaration.
	elected bool
	// deaths are how often the manager is killed at any time.
	deaths int
	// blur of each process's sight, and what goes wrong with its requests. Their seeds come from this one's.
	blur faultwire.Blur
	plan faultwire.Plan
	// back has every process after the first fill its caches from the past.
	back bool
}

// Times of processes that are elected.
const (
	leaseDuration = 6 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

func elected(_ *process, o *operator.Options) {
	o.LeaderElect = true
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = leaseDuration, renewDeadline, retryPeriod
}

func (o ordeal) String() string { return fmt.Sprintf("%s %d", o.name, o.seed) }

// adversity is what goes wrong in a history, until it ends.
type adversity struct {
	ordeal
	h *history

	mu     sync.Mutex
	views  []*faultwire.View
	faults []*faultwire.Faults
	over   bool
}

// befall makes it go wrong for the n-th process, too.
func (a *adversity) befall(n int) []change {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []change
	if a.elected {
		all = append(all, elected)
	}
	if a.over {
		return all
	}
	blur, plan := a.blur, a.plan
	blur.Seed, plan.Seed = a.seed+uint64(n)<<32, a.seed+uint64(n)<<32
	if a.back && n > 0 {
		blur.Back = a.h.past(rand.New(rand.NewPCG(blur.Seed, 2)))
	}
	view, faults := faultwire.NewView(blur), faultwire.NewFaults(plan)
	a.views, a.faults = append(a.views, view), append(a.faults, faults)
	return append(all, func(p *process, _ *operator.Options) {
		p.under = append(p.under, view.Config)
		if len(plan.Faults) > 0 {
			p.under = append(p.under, faults.Config)
		}
	})
}

// past chooses, for each kind, a version that the namespace has had, half of the time.
func (h *history) past(random *rand.Rand) func(string) string {
	versions := h.record.all()
	var mu sync.Mutex
	return func(string) string {
		mu.Lock()
		defer mu.Unlock()
		if len(versions) == 0 || random.IntN(2) == 0 {
			return ""
		}
		return versions[random.IntN(len(versions))].Object.GetResourceVersion()
	}
}

// end ends it.
func (a *adversity) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for _, v := range a.views {
		v.Clear()
	}
	for _, f := range a.faults {
		f.End()
	}
}

// tell counts what went wrong.
func (a *adversity) tell() (seen faultwire.Seen, faults map[faultwire.Fault]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	faults = map[faultwire.Fault]int{}
	for _, v := range a.views {
		n := v.Seen()
		seen.Events, seen.Late, seen.Unseen = seen.Events+n.Events, seen.Late+n.Late, seen.Unseen+n.Unseen
		seen.Expired, seen.Broken, seen.Back = seen.Expired+n.Expired, seen.Broken+n.Broken, seen.Back+n.Back
	}
	for _, f := range a.faults {
		for fault, n := range f.Counts() {
			faults[fault] += n
		}
	}
	return seen, faults
}

// adverse is how long things go wrong after the user's last deed, at most.
const adverse = 10 * time.Second

// awaitFor waits until the condition holds, or so long.
func (h *history) awaitFor(d time.Duration, holds func(view) bool) {
	enough := time.NewTimer(d)
	defer enough.Stop()
	for {
		v, _, next := h.record.now()
		if holds(v) {
			return
		}
		select {
		case <-next:
		case <-enough.C:
			return
		case <-h.ctx.Done():
			return
		}
	}
}

// keep has a process started whenever there is none, as a cluster does, until ctx ends.
func (h *history) keep(ctx context.Context, changes func(n int) []change) {
	for n := 0; ctx.Err() == nil && h.ctx.Err() == nil; n++ {
		p := h.start(changes(n)...)
		select {
		case <-p.wire.Died():
			h.pass(100 * time.Millisecond)
		case <-ctx.Done():
		case <-h.ctx.Done():
		}
	}
}

// live has the history happen.
func (o ordeal) live(namespace string) (out outcome, a *adversity) {
	begun := time.Now()
	h, err := newHistory(namespace)
	if err != nil {
		return outcome{problems: []string{err.Error()}}, nil
	}
	defer h.end()
	random := rand.New(rand.NewPCG(o.seed, 0))
	h.limit = 1 + random.Int32N(2)
	if o.elected {
		h.lease = leaseDuration
	}
	deeds := mix(random, o.calls)
	for range o.deaths {
		deeds = slices.Insert(deeds, random.IntN(len(deeds)), deed{0, "the manager dies", func(h *history) error {
			h.last().kill()
			return nil
		}})
	}
	a = &adversity{ordeal: o, h: h}
	keeping, stop := context.WithCancel(h.ctx)
	kept := make(chan struct{})
	err = h.attempt(func() {
		h.create(h.queue(withReceiver(h)))
		go func() {
			defer close(kept)
			h.keep(keeping, a.befall)
		}()
		for len(h.all()) == 0 {
			h.pass(time.Millisecond)
		}
		h.deeds(deeds)
		h.log.openGate("slow")
		h.awaitFor(adverse, func(v view) bool { return v.unsettled() == "" })
		a.end()
		h.settle()
		stop()
		<-kept
		h.restart()
	})
	stop()
	h.conclude(&out, begun, err, deeds, func() string {
		seen, faults := a.tell()
		return fmt.Sprintf("%+v, %v", seen, faults)
	})
	return out, a
}

// conclude judges a history of deeds that has come to its end, and tells it if something is wrong: what the user did, and what
// there was besides.
func (h *history) conclude(out *outcome, begun time.Time, err error, deeds []deed, besides func() string) {
	out.report = h.check()
	out.problems = told(out.report)
	if err != nil {
		out.problems = append(out.problems, err.Error())
	}
	out.took = time.Since(begun)
	if len(out.problems) == 0 {
		return
	}
	var b strings.Builder
	for _, d := range deeds {
		_, _ = fmt.Fprintln(&b, "  the user,", d)
	}
	_, _ = fmt.Fprintf(&b, "  limit %d, %s\n", h.limit, besides())
	out.story = b.String() + h.story()
}

// withReceiver has everything announced, and failures to another receiver, too, which wants nothing before the gate of slow work is
// open.
func withReceiver(h *history) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) {
		q.Spec.Notifications = ears(h.ear("ear", ""), h.ear("alarm", "gate=slow", batchv1alpha1.EventRunFailed, batchv1alpha1.EventRunPermanentlyFailed))
	}
}

// seedsFromEnv returns the seeds of a family: as many as the mode wants, those of a sample for the usual minutes, or the one
// that SEED names ("unobserved 17").
func seedsFromEnv(t *testing.T, family string, fast, sample, full int) []uint64 {
	if name, seed, one := strings.Cut(os.Getenv("SEED"), " "); one {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			t.Fatalf("SEED is %q: %v", os.Getenv("SEED"), err)
		}
		if name != family {
			return nil
		}
		return []uint64{n}
	}
	chosen, err := selectionFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{"fast": fast, "sample": max(1, sample*chosen.histories/(perMinute*defaultMinutes)), "full": full}[chosen.mode]
	first, err := strconv.ParseUint(chosen.seed, 10, 32)
	if err != nil {
		t.Fatalf("CRASH_SEED is %q: %v", chosen.seed, err)
	}
	var all []uint64
	for i := range uint64(n) {
		all = append(all, first*1000+i)
	}
	return all
}

// ordealsAtOnce is how many go on at once: they wait most of the time.
var ordealsAtOnce = make(chan struct{}, 24)

// undergo lives all of them, and enters them into the table.
func undergo(t *testing.T, all []ordeal) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := map[string]*adversities{}
	for _, o := range all {
		tally.begin(o.name)
		ordealsAtOnce <- struct{}{}
		wg.Go(func() {
			defer func() { <-ordealsAtOnce }()
			out, a := o.live(strings.ReplaceAll(o.String(), " ", "-"))
			tally.history(o.name, out)
			mu.Lock()
			defer mu.Unlock()
			if total[o.name] == nil {
				total[o.name] = &adversities{faults: map[faultwire.Fault]int{}}
			}
			total[o.name].add(a)
			if len(out.problems) > 0 {
				tally.wrong("SEED='%s': %s", o, strings.Join(out.problems, "; "))
				t.Errorf("%s (%s; SEED='%s' go test ./test/crash -run %s)\n%s\n%s", o, out.took.Round(time.Millisecond), o, t.Name(), strings.Join(out.problems, "\n"), out.story)
			}
		})
	}
	wg.Wait()
	for name, n := range total {
		t.Logf("%s: %+v %v", name, n.seen, n.faults)
	}
	for _, o := range all {
		if o.back && total[o.name].seen.Back == 0 {
			t.Fatalf("no process of %s filled a cache from the past: it lists otherwise than the wire expects", o.name)
		}
	}
}

// adversities are what went wrong in several histories.
type adversities struct {
	seen   faultwire.Seen
	faults map[faultwire.Fault]int
}

func (n *adversities) add(a *adversity) {
	if a == nil {
		return
	}
	seen, faults := a.tell()
	n.seen.Events, n.seen.Late, n.seen.Unseen = n.seen.Events+seen.Events, n.seen.Late+seen.Late, n.seen.Unseen+seen.Unseen
	n.seen.Expired, n.seen.Broken, n.seen.Back = n.seen.Expired+seen.Expired, n.seen.Broken+seen.Broken, n.seen.Back+seen.Back
	for fault, k := range faults {
		n.faults[fault] += k
	}
}
