// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/invariant"
)

const (
	// awaitCall is how long a stop waits for a call that hangs.
	awaitCall = 20 * time.Second
	// awaitLeaders is how long a burst of interventions waits for managers that lead.
	awaitLeaders = 10 * time.Second
)

// defaultInterventions are few: they are part of every test run.
const defaultInterventions = 10

func uidOf(pod *corev1.Pod) types.UID { return types.UID(pod.Labels[batchv1alpha1.LabelRunUID]) }

// number reads an environment variable.
func number(t *testing.T, name string, unset uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unset
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// theatre is everything that takes part.
type theatre struct {
	t         *testing.T
	server    *server
	histories []*history

	planeBusy map[string]*sync.Mutex
	mu        sync.Mutex
	done      map[string]int
	log       strings.Builder
	phases    strings.Builder
	began     time.Time
}

func TestNoInvariantIsBrokenWhileProcessesAreKilledAndStopped(t *testing.T) {
	seed, n := number(t, "SEED", rand.Uint64()), int(number(t, "PROCESS_KILLS", defaultInterventions))
	schedule := plan(seed, n)
	replay := fmt.Sprintf("SEED=%d PROCESS_KILLS=%d go test ./test/crash/process -run '^%s$' -v", seed, n, t.Name())
	logs, kept := os.LookupEnv("PROCESS_LOGS")
	if !kept {
		logs = t.TempDir()
	}
	x := &theatre{t: t, done: map[string]int{}, planeBusy: map[string]*sync.Mutex{controlplane.APIServer: {}, controlplane.Etcd: {}}, began: time.Now()}
	x.server = newServer(t, x.owner)
	x.begin(seed, logs, managerA, managerB)
	x.begin(seed+1, logs, managerAlone)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to replay the schedule of interventions and the load:\n%s\nthe schedule:\n%s\nwhat was done:\n%s\n%s",
				replay, listing(schedule), x.log.String(), x.lastWords())
		}
	})

	x.phase("begin")
	x.play(schedule)
	x.phase("interventions")
	if err := plane.Err(); err != nil {
		t.Fatal(err)
	}
	report := invariant.Report{}
	var pasts []invariant.History
	lefts := x.settle()
	x.phase("settle")
	for i, h := range x.histories {
		left := lefts[i]
		for _, what := range left {
			t.Errorf("not settled: %s", what)
		}
		past := h.history(len(left) == 0, h.restart())
		pasts = append(pasts, past)
		report.Merge(invariant.Check(past))
		if kept {
			dump(t, filepath.Join(logs, h.ns+".jsonl"), past)
		}
	}
	x.phase("one more restart")
	if kept {
		if err := os.WriteFile(filepath.Join(logs, "interventions.txt"), []byte(x.log.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
	for _, v := range report.Violations {
		t.Error(v)
	}
	x.summarise(seed, pasts, report)
}

// begin starts a history with managers of these names.
func (x *theatre) begin(seed uint64, logs string, names ...string) {
	x.t.Helper()
	h := newHistory(x.t, x.server, seed)
	for _, name := range names {
		h.addPost(name, logs, len(names) == 1)
	}
	x.mu.Lock()
	x.histories = append(x.histories, h)
	x.mu.Unlock()
	h.begin()
}

// phase notes how long a part of the test took.
func (x *theatre) phase(name string) {
	fmt.Fprintf(&x.phases, "%s until %.0f s, ", name, time.Since(x.began).Seconds())
}

// settle waits until all histories have settled, and returns what is left of each.
func (x *theatre) settle() [][]string {
	left := make([][]string, len(x.histories))
	var all sync.WaitGroup
	for i, h := range x.histories {
		all.Go(func() { left[i] = h.settle() })
	}
	all.Wait()
	return left
}

// owner finds the manager process that has a port.
func (x *theatre) owner(port int) *child {
	x.mu.Lock()
	histories := slices.Clone(x.histories)
	x.mu.Unlock()
	var living []*child
	for _, h := range histories {
		for _, p := range h.posts {
			if c, _ := p.present(); c != nil {
				living = append(living, c)
			}
		}
	}
	return ownerOf(port, living)
}

// play carries out the schedule under load, and returns when everything is healed and the load is over.
func (x *theatre) play(schedule []intervention) {
	working, rest := context.WithCancel(context.Background())
	defer rest()
	var load, acting sync.WaitGroup
	for _, h := range x.histories {
		load.Go(func() { h.load.run(working) })
	}
	for _, i := range schedule {
		if i.Calm {
			within(awaitLeaders, func() bool { return !slices.ContainsFunc(x.histories, func(h *history) bool { return !h.led() }) })
		}
		wait(i.After, nil)
		acting.Go(func() { x.act(i) })
	}
	acting.Wait()
	rest()
	load.Wait()
	for _, h := range x.histories {
		h.quieten(context.Background())
		h.holders.Wait()
	}
}

// act carries out one intervention. One process suffers one at a time.
func (x *theatre) act(i intervention) {
	began := time.Now()
	if busy := x.planeBusy[i.Target]; busy != nil {
		busy.Lock()
		defer busy.Unlock()
		began = time.Now()
		x.onPlane(i)
	} else {
		i.Target = x.onManager(i)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	target := i.Target
	if slices.Contains(managerNames, target) {
		target = "manager"
	}
	x.done[string(i.Kind)+" "+target]++
	fmt.Fprintf(&x.log, "%s to %s: %s %s\n", clock(began), clock(time.Now()), i.Kind, i.Target)
}

// onManager carries out an intervention on a manager and returns its name.
func (x *theatre) onManager(i intervention) string {
	p, release := x.choose(i)
	defer release()
	if i.Kind == kill {
		p.kill(i.For)
	} else {
		p.stop(i.For)
	}
	return p.name
}

// choose takes the manager of an intervention for it alone: the one that was meant, or another one while that suffers already.
func (x *theatre) choose(i intervention) (p *post, release func()) {
	if i.InCall {
		x.histories[0].hang(x.t.Context())
		if within(awaitCall, func() bool { p, release = x.inCall(); return p != nil }) {
			return p, release
		}
	}
	names := append([]string{i.Target}, managerNames...)
	for {
		for _, name := range names {
			if p := x.post(name); p.busy.TryLock() {
				return p, p.busy.Unlock
			}
		}
		wait(poll, nil)
	}
}

// inCall takes the manager with leader election that has a call which hangs, and keeps the other one from harm, so that it can take
// over meanwhile. nil: there is none.
func (x *theatre) inCall() (*post, func()) {
	for n, name := range electedNames {
		p, other := x.post(name), x.post(electedNames[1-n])
		c, _ := p.present()
		switch {
		case c == nil || !x.server.hangsFor(c) || !p.busy.TryLock():
		case !other.busy.TryLock():
			p.busy.Unlock()
		default:
			return p, func() { other.busy.Unlock(); p.busy.Unlock() }
		}
	}
	return nil, nil
}

// post finds the place of a manager.
func (x *theatre) post(name string) *post {
	for _, h := range x.histories {
		for _, p := range h.posts {
			if p.name == name {
				return p
			}
		}
	}
	panic("no such manager: " + name)
}

func (x *theatre) onPlane(i intervention) {
	var first, second error
	if i.Kind == kill {
		first = plane.Kill(i.Target)
		wait(i.For, nil)
		second = plane.Restart(x.t.Context(), i.Target)
	} else {
		first = plane.Pause(i.Target)
		wait(i.For, nil)
		second = plane.Continue(i.Target)
	}
	for _, err := range []error{first, second} {
		if err != nil {
			x.t.Errorf("%s: %v", i, err)
		}
	}
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05.000") }

// lastWords are those of the present managers.
func (x *theatre) lastWords() string {
	var b strings.Builder
	for _, h := range x.histories {
		for _, p := range h.posts {
			if c, n := p.present(); c != nil {
				fmt.Fprintf(&b, "the last words of %s, process %d of its post:\n%s\n", p.name, n, c.lastWords())
			}
		}
	}
	return b.String()
}

// summarise prints what was done and what came of it, and fails if so little happened that nothing was tested.
func (x *theatre) summarise(seed uint64, pasts []invariant.History, report invariant.Report) {
	interventions := 0
	for _, what := range slices.Sorted(maps.Keys(x.done)) {
		fmt.Printf("process: %-24s %5d\n", what, x.done[what])
		interventions += x.done[what]
	}
	facts := map[string]int{}
	for _, past := range pasts {
		count(facts, past)
	}
	for _, what := range slices.Sorted(maps.Keys(facts)) {
		fmt.Printf("process: %-24s %5d\n", what, facts[what])
	}
	for i := 1; i <= invariant.Invariants; i++ {
		fmt.Printf("process: facts for invariant %-2d %6d\n", i, report.Checked[i])
	}
	fmt.Printf("process: %s\n", strings.TrimSuffix(x.phases.String(), ", "))
	fmt.Printf("process: interventions %d, http-window: %d, violations %d, %.0f s, SEED=%d\n",
		interventions, report.HTTPWindow, len(report.Violations), time.Since(x.began).Seconds(), seed)
	for _, must := range []string{"runs Completed", "runs Failed", "calls", "pods", "managers that led"} {
		if facts[must] == 0 {
			x.t.Errorf("nothing was tested: no %s", must)
		}
	}
}

// count adds what a history tells.
func count(facts map[string]int, past invariant.History) {
	last := map[types.UID]*batchv1alpha1.JobRun{}
	for _, v := range past.Versions {
		switch o := v.Object.(type) {
		case *batchv1alpha1.JobRun:
			last[o.UID] = o
		case *batchv1alpha1.DirectReservation:
			if o.Status.Phase == batchv1alpha1.ReservationGranted {
				facts["versions Granted"]++
			}
		}
	}
	for _, r := range last {
		facts["runs "+string(r.Status.Phase)]++
		if r.Status.Retry != nil {
			facts["retries"]++
		}
		if r.Status.Reason == batchv1alpha1.ReasonCrashRecovery {
			facts["recoveries"]++
		}
	}
	for _, a := range past.Acts {
		if a.Began {
			facts[map[invariant.Work]string{invariant.Call: "calls", invariant.Pod: "pods", invariant.Direct: "holders"}[a.Work]]++
		}
	}
	for _, m := range past.Managers {
		if m.Epoch != "" {
			facts["managers that led"]++
		}
	}
	facts["announcements"] += len(past.Announcements)
}
