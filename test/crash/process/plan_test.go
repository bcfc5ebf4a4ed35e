// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reprise.dev/reprise/internal/controlplane"
)

// kind of an intervention.
type kind string

const (
	// kill ends a process by SIGKILL; it is started again after a while.
	kill kind = "SIGKILL"
	// stop makes a process stand still by SIGSTOP, until SIGCONT.
	stop kind = "SIGSTOP"
)

// Names of the managers: the first two elect their leader, the third is alone.
const (
	managerA     = "manager-a"
	managerB     = "manager-b"
	managerAlone = "manager-alone"
)

var (
	managerNames = []string{managerA, managerB, managerAlone}
	electedNames = []string{managerA, managerB}
)

// intervention is one thing that is done to one process.
type intervention struct {
	Kind   kind
	Target string
	// Calm waits until managers lead everywhere, if they do within a while.
	Calm bool
	// After is the pause since the intervention before began, or since the calm.
	After time.Duration
	// For is how long the process is dead or stands still.
	For time.Duration
	// InCall takes whichever manager with leader election has a call that hangs, if there is one within a while.
	InCall bool
}

func (i intervention) String() string {
	when := ""
	if i.InCall {
		when = " (or whichever is in a call)"
	}
	calm := ""
	if i.Calm {
		calm = "calm, "
	}
	return fmt.Sprintf("%s+%.2fs %s %s%s for %.2fs", calm, i.After.Seconds(), i.Kind, i.Target, when, i.For.Seconds())
}

// Lengths of stops of a manager, measured by its lease: within it; beyond it; and beyond all that is waited for a call whose
// process cannot be seen, so that the documented window of HTTP work opens.
var (
	stopWithin = [2]time.Duration{200 * time.Millisecond, leaseDuration - 500*time.Millisecond}
	stopBeyond = [2]time.Duration{leaseDuration + 500*time.Millisecond, 2 * leaseDuration}
	stopPlane  = [2]time.Duration{200 * time.Millisecond, leaseDuration + 500*time.Millisecond}
	stopWindow = [2]time.Duration{callTimeout + leaseDuration + 10*time.Second, callTimeout + leaseDuration + 13*time.Second}
)

// card is an intervention without its times.
type card struct {
	kind    kind
	targets []string
	length  [2]time.Duration
	inCall  bool
	weight  int
}

var cards = []card{
	{kill, []string{managerA, managerB, managerAlone, managerAlone}, [2]time.Duration{0, 400 * time.Millisecond}, false, 64},
	{stop, managerNames, stopWithin, false, 9},
	{stop, managerNames, stopBeyond, false, 3},
	{kill, []string{controlplane.APIServer}, [2]time.Duration{0, time.Second}, false, 2},
	{stop, []string{controlplane.APIServer}, stopPlane, false, 4},
	{kill, []string{controlplane.Etcd}, [2]time.Duration{0, time.Second}, false, 5},
	{stop, []string{controlplane.Etcd}, stopPlane, false, 4},
	{stop, electedNames, stopBeyond, true, 4},
	{stop, electedNames, stopWindow, true, 2},
}

// fewInterventions is up to how many the stops in a call are left out, which take long: the last two cards.
const fewInterventions = 25

// plan makes a schedule of n interventions: each card once, as far as there is room, and further ones by their weights.
func plan(seed uint64, n int) []intervention {
	r := rand.New(rand.NewPCG(seed, 1))
	deck := cards
	if n <= fewInterventions {
		deck = deck[:len(deck)-2]
	}
	hand := make([]card, 0, n)
	for len(hand) < n {
		if len(hand) < len(deck) {
			hand = append(hand, deck[len(hand)])
		} else {
			hand = append(hand, draw(r, deck))
		}
	}
	r.Shuffle(len(hand), func(i, j int) { hand[i], hand[j] = hand[j], hand[i] })

	schedule := make([]intervention, n)
	burst := 0
	for i, c := range hand {
		calm, gap := burst == 0, between(r, 30*time.Millisecond, 600*time.Millisecond)
		if calm {
			burst, gap = 4+r.IntN(5), between(r, 300*time.Millisecond, 3*time.Second)
		}
		burst--
		schedule[i] = intervention{
			Kind: c.kind, Target: c.targets[r.IntN(len(c.targets))], Calm: calm, After: gap, For: between(r, c.length[0], c.length[1]), InCall: c.inCall,
		}
	}
	return schedule
}

func draw(r *rand.Rand, deck []card) card {
	total := 0
	for _, c := range deck {
		total += c.weight
	}
	at := r.IntN(total)
	for _, c := range deck {
		if at -= c.weight; at < 0 {
			return c
		}
	}
	panic("weights that add up to less than their sum")
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

// listing shows a schedule for a person.
func listing(schedule []intervention) string {
	var b strings.Builder
	for n, i := range schedule {
		fmt.Fprintf(&b, "%4d %s\n", n, i)
	}
	return b.String()
}

func TestTheSameSeedMakesTheSameSchedule(t *testing.T) {
	first, second, other := listing(plan(7, 50)), listing(plan(7, 50)), listing(plan(8, 50))
	if first != second {
		t.Errorf("two schedules of one seed:\n%s\n%s", first, second)
	}
	if first == other {
		t.Error("two seeds make one schedule")
	}
}

func TestASmallScheduleHasEveryKindOfIntervention(t *testing.T) {
	for seed := range uint64(20) {
		seen := map[string]bool{}
		for _, i := range plan(seed, 10) {
			target := i.Target
			if strings.HasPrefix(target, "manager") {
				target = "manager"
			}
			seen[string(i.Kind)+" "+target] = true
		}
		if len(seen) != 6 {
			t.Errorf("seed %d: %v", seed, seen)
		}
	}
}
