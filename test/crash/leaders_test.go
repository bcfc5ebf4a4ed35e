// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise.dev/reprise/internal/faultwire"
	"reprise.dev/reprise/internal/invariant"
	"reprise.dev/reprise/internal/operator"
)

// Two leaders: the old one stands still at any of its writes, a new one takes over, and the old one goes on.

// duel is a mixed history in which the manager stands still at one of its writes, and goes on when another has taken over.
type duel struct {
	name string
	seed uint64
	// elected has the two elect their leader. Otherwise each is alone by declaration, and nothing but the epoch tells the old
	// one that it is not; then all work is Job work, since a process that is alone takes the calls of those before it to have
	// ended.
	elected bool
	// at is the write at which the old leader stands still; what keeps its lease does not count. landed has the API server
	// carry it out before; otherwise it is on its way, and lands whatever becomes of the process meanwhile.
	at     int
	landed bool
	// after is how many such writes the new leader has made when the old one goes on; it stands still until what was on its way
	// has landed. -1: as many as it wants.
	after int
}

func (d duel) String() string { return fmt.Sprintf("%s %d", d.name, d.seed) }

// standing are the writes at which the old leader stands still. Of as many seeds in a row each has one.
const standing = 120

func newDuel(name string, seed uint64, elected bool) duel {
	random := rand.New(rand.NewPCG(seed, 3))
	d := duel{name: name, seed: seed, elected: elected, at: int(1 + seed*37%standing), landed: random.IntN(3) == 0, after: -1}
	if random.IntN(4) > 0 {
		d.after = random.IntN(12)
	}
	return d
}

// stand is where a process stands still.
type stand struct {
	wire    *faultwire.Wire
	write   int           // its number on the wire; valid once caught is closed
	sent    bool          // it was carried out before the process stood still
	caught  chan struct{} // closed when the process stands still
	release chan struct{} // closed when what is on its way may land

	mu   sync.Mutex
	over bool // it need not stand still any more
}

// standAt has the process stand still at its n-th write, leases apart.
func standAt(x *faultwire.Wire, n int, landed bool) *stand {
	s := &stand{wire: x, sent: landed, caught: make(chan struct{}), release: make(chan struct{})}
	x.OnRequest(func(r faultwire.Request) faultwire.Verdict {
		if r.Write == 0 || r.Resource == "leases" {
			return faultwire.Verdict{}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if n--; n != 0 || s.over {
			return faultwire.Verdict{}
		}
		x.Pause()
		s.write = r.Write
		close(s.caught)
		if landed {
			return faultwire.Verdict{}
		}
		return faultwire.Late(s.release)
	})
	return s
}

// land lets what is on its way land, and waits until it has.
func (s *stand) land(h *history) {
	close(s.release)
	for !s.sent && s.wire.Writes()[s.write-1].Code == 0 {
		h.pass(5 * time.Millisecond)
		h.must(h.ctx.Err(), "waiting for what was on its way")
	}
}

// live has the history happen.
func (d duel) live(namespace string) (out outcome) {
	begun := time.Now()
	h, err := newHistory(namespace)
	if err != nil {
		return outcome{problems: []string{err.Error()}}
	}
	defer h.end()
	random := rand.New(rand.NewPCG(d.seed, 0))
	h.limit = 1 + random.Int32N(2)
	if d.elected {
		h.lease = leaseDuration
	}
	deeds := mix(random, d.elected)
	err = h.attempt(func() {
		h.create(h.queue(withReceiver(h)))
		out.reached = d.fight(h, deeds)
		h.settle()
		h.restart()
	})
	h.conclude(&out, begun, err, deeds, func() string { return fmt.Sprintf("%+v", d) })
	return out
}

// fight has the user do her deeds while the two leaders meet. It reports whether the old one came to its write.
func (d duel) fight(h *history, deeds []deed) (reached bool) {
	var changes []change
	if d.elected {
		changes = append(changes, elected)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	keeping, end := context.WithCancel(h.ctx)
	defer end()

	var at *stand
	old := h.start(append(changes, func(p *process, _ *operator.Options) { at = standAt(p.wire, d.at, d.landed) })...)
	var user error
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		user = h.attempt(func() { h.deeds(deeds) })
		h.log.openGate("slow")
	})
	reached = h.stands(at, done, old)
	from := time.Now()
	if reached {
		stop := d.takeOver(keeping, h, &wg, changes)
		at.land(h)
		old.stood(from)
		old.wire.Resume()
		if stop != nil {
			stop.land(h)
			stop.wire.Resume()
		}
	} else if isDead(old) {
		wg.Go(func() { h.keep(keeping, func(int) []change { return changes }) })
	}
	<-done
	h.must(user, "the user")
	h.settle()
	if reached {
		d.ends(h, old)
	}
	return reached
}

// takeOver has another process lead, and returns where it stands still for the old one to go on; nil if it has done all that
// there is to do, or a good part of it.
func (d duel) takeOver(keeping context.Context, h *history, wg *sync.WaitGroup, changes []change) *stand {
	old, stops := h.last(), make(chan *stand, 1)
	wg.Go(func() {
		h.keep(keeping, func(n int) []change {
			if n > 0 || d.after < 0 {
				return changes
			}
			return append(changes[:len(changes):len(changes)], func(p *process, _ *operator.Options) { stops <- standAt(p.wire, d.after+1, false) })
		})
	})
	if d.after < 0 {
		h.awaitFor(adverse, func(v view) bool { return h.last() != old && isReady(h.last()) && v.unsettled() == "" })
		return nil
	}
	stop := <-stops
	h.standsSoon(stop)
	return stop
}

// stands waits until the process stands still. It reports false if everything came to its end before, or the process did: one
// that is elected cannot keep its lease on a machine that is too busy.
func (h *history) stands(s *stand, done <-chan struct{}, p *process) bool {
	for {
		v, last, next := h.record.now()
		var enough <-chan time.Time
		select {
		case <-done:
			if v.unsettled() == "" {
				enough = time.After(time.Until(last.Add(quiet)))
			}
		default:
		}
		select {
		case <-s.caught:
			return true
		case <-enough:
			return false
		case <-p.wire.Died():
			return s.stands()
		case <-next:
		case <-h.ctx.Done():
			h.giveUp("neither does the leader stand still nor does everything end: %s", v.unsettled())
		}
	}
}

// standsSoon waits until a process stands still, if it does so soon.
func (h *history) standsSoon(s *stand) {
	soon := time.NewTimer(adverse)
	defer soon.Stop()
	select {
	case <-s.caught:
	case <-soon.C:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = true
		s.sent = s.sent || !s.stands()
	case <-h.ctx.Done():
	}
}

// stands reports whether the process has come to its write.
func (s *stand) stands() bool {
	select {
	case <-s.caught:
		return true
	default:
		return false
	}
}

func isReady(p *process) bool {
	select {
	case <-p.log.ready:
		return true
	default:
		return false
	}
}

// stood notes that the process stood still since then.
func (p *process) stood(from time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = append(p.paused, invariant.Interval{From: from, To: time.Now()})
}

// provocations are how often a deposed leader that is alone is given the chance to meet the epoch of the other.
const provocations = 5

// ends expects that the deposed leader ends itself: by its election, or at the next thing that it has to do with the other. One
// that is alone and has nothing to do goes on, and may even execute a run that the other then fails as an orphan.
func (d duel) ends(h *history, old *process) {
	for i := 0; i < provocations && !d.elected && !isDead(old); i++ {
		name := fmt.Sprintf("provoked-%d", i)
		h.must(h.newRun(name, task{path: fine}), "creating a run")
		h.told(name)
	}
	if !d.elected && !isDead(old) {
		h.giveUp("the deposed leader lives on, though there was work for both")
	}
	select {
	case <-old.wire.Died():
	case <-h.ctx.Done():
		h.giveUp("the deposed leader does not end itself")
	}
	if !d.elected && old.wire.Exits() == 0 {
		h.giveUp("the deposed leader ended, but not because it met a higher epoch")
	}
}

func isDead(p *process) bool {
	select {
	case <-p.wire.Died():
		return true
	default:
		return false
	}
}

func TestADeposedLeaderThatGoesOnDoesNoHarm(t *testing.T) {
	t.Parallel()
	type family struct {
		name               string
		elected            bool
		fast, sample, full int
	}
	var wg sync.WaitGroup
	for _, f := range []family{{"two-alone", false, 3, 40, 5 * standing}, {"two-elected", true, 2, 24, 3 * standing}} {
		for _, seed := range seedsFromEnv(t, f.name, f.fast, f.sample, f.full) {
			d := newDuel(f.name, seed, f.elected)
			tally.begin(d.name)
			ordealsAtOnce <- struct{}{}
			wg.Go(func() {
				defer func() { <-ordealsAtOnce }()
				out := d.live(strings.ReplaceAll(d.String(), " ", "-"))
				tally.history(d.name, out)
				if !out.reached {
					t.Logf("%s: everything ended before write %d", d, d.at)
				}
				if len(out.problems) > 0 {
					tally.wrong("SEED='%s': %s", d, strings.Join(out.problems, "; "))
					t.Errorf("%s (%s; SEED='%s' go test ./test/crash -run %s)\n%s\n%s", d, out.took.Round(time.Millisecond), d, t.Name(), strings.Join(out.problems, "\n"), out.story)
				}
			})
		}
	}
	wg.Wait()
}
