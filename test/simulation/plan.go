// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// plan is what is to happen in a history; the rest is chance.
type plan struct {
	// Elected: two replicas with leader election. Otherwise one process at a time is alone.
	Elected bool
	// InPods: the processes run in pods, which show that they have ended.
	InPods   bool
	Recovery batchv1alpha1.RecoveryPolicy
	// Startup is the window of the start-up throttle.
	Startup time.Duration
	// Calm is when faults are over.
	Calm time.Duration
	// Rough is the share of messages that take long, Lag that of the times at which a cache is far behind, Old that of the
	// first lists that are old, Broken that of the deliveries at which a watch breaks.
	Rough, Lag, Old, Broken float64
	// Rates are the shares of requests that meet each fault.
	Rates map[fault]float64

	Wishes []wish
	Deaths []death
	Pauses []pause

	// Only, unless nil, are the faults that happen, by name: none else does.
	Only map[string]bool
}

// death is the end of a process.
type death struct {
	// Process is its number; Request that of the request at which it dies.
	Process, Request int
	// Landed: that request is carried out. Graceful: it is asked to end and may end in good order.
	Landed, Graceful bool
	// Restart is how long it takes until another one is started.
	Restart time.Duration
}

// pause is a time during which the leader stands still.
type pause struct {
	At, For time.Duration
}

// planOf draws a plan.
func planOf(seed uint64) plan {
	c := chance(seed).of("plan")
	p := plan{
		Elected: c.of("elected").hits(0.5), InPods: c.of("pods").hits(0.5),
		Recovery: pick(c.of("recovery"), batchv1alpha1.RecoveryFail, batchv1alpha1.RecoveryFail, batchv1alpha1.RecoveryAdopt),
		Startup:  pick(c.of("startup"), 0, 0, 5*time.Second, 30*time.Second),
		Calm:     c.of("calm").between(15*time.Second, 2*time.Minute),
		Rough:    pick(c.of("rough"), 0, 0.05, 0.3),
		Lag:      pick(c.of("lag"), 0, 0.1, 0.5),
		Old:      pick(c.of("old"), 0, 0.5),
		Broken:   pick(c.of("broken"), 0, 0.02, 0.1),
		Rates:    map[fault]float64{},
	}
	for _, f := range []fault{faultConflict, faultTooMany, faultInternal, faultRefused, faultLost, faultStray, faultSlow} {
		p.Rates[f] = pick(c.of("rate of "+string(f)), 0, 0, 0.01, 0.05)
	}
	p.Wishes = wishesOf(c.of("wishes"), p.Calm)
	for n := range c.of("deaths").below(8) {
		d := c.of("death").nth(n)
		p.Deaths = append(p.Deaths, death{
			Process: n + d.of("process").below(2), Request: int(d.of("request").between(4, 200)), Landed: d.of("landed").hits(0.5),
			Graceful: d.of("graceful").hits(0.2), Restart: d.of("restart").between(10*time.Millisecond, 40*time.Second),
		})
	}
	if p.Elected {
		for n := range c.of("pauses").below(5) {
			d := c.of("pause").nth(n)
			p.Pauses = append(p.Pauses, pause{At: time.Duration(d.of("at").unit() * float64(p.Calm)), For: pick(d.of("which"), d.of("for").between(time.Second, leaseDuration), d.of("for").between(leaseDuration, 45*time.Second))})
		}
	}
	return p
}

// String tells what is planned, line by line.
func (p plan) String() string {
	text := fmt.Sprintf("elected=%t pods=%t recovery=%s startup=%s calm=%s rough=%g lag=%g old=%g broken=%g\n",
		p.Elected, p.InPods, p.Recovery, p.Startup, p.Calm.Round(time.Second), p.Rough, p.Lag, p.Old, p.Broken)
	for _, d := range p.Deaths {
		text += fmt.Sprintf("  m%d dies at its request %d (landed=%t graceful=%t), the next after %s\n", d.Process, d.Request, d.Landed, d.Graceful, d.Restart)
	}
	for _, d := range p.Pauses {
		text += fmt.Sprintf("  the leader stands still at %s for %s\n", d.At, d.For)
	}
	for _, w := range p.Wishes {
		text += fmt.Sprintf("  at %s %s\n", w.At, w.What)
	}
	if p.Only == nil {
		return text + fmt.Sprintf("  faults at random: %v\n", p.Rates)
	}
	for _, f := range sortedKeys(p.Only) {
		text += "  fault: " + f + "\n"
	}
	return text
}

// happens decides about one fault, and remembers it if it happens.
func (s *sim) happens(name string, c chance, share float64) bool {
	if s.calm.Load() {
		return false
	}
	if s.plan.Only != nil {
		if !s.plan.Only[name] {
			return false
		}
	} else if !c.hits(share) {
		return false
	}
	s.fired = append(s.fired, name)
	s.stats.Faults++
	return true
}

// faultOf decides what goes wrong with a request; "" is nothing.
func (s *sim) faultOf(r *request, c chance) fault {
	for _, f := range []fault{faultConflict, faultTooMany, faultInternal, faultRefused, faultLost, faultStray, faultSlow} {
		if f == faultConflict && r.changes == nil || (f == faultStray && !r.write) {
			continue
		}
		if s.happens(r.name()+": "+string(f), c.of(string(f)), s.plan.Rates[f]) {
			return f
		}
	}
	return ""
}

// dies ends the process if it is to die at this request.
func (s *sim) dies(r *request) bool {
	p := r.process
	i := slices.IndexFunc(s.plan.Deaths, func(d death) bool { return d.Process == p.index && d.Request == p.sent })
	if i < 0 || s.calm.Load() {
		return false
	}
	d := s.plan.Deaths[i]
	if d.Graceful {
		s.trace("%s is asked to end", p.id)
		p.stop()
		return false
	}
	if d.Landed {
		s.after(0, r.name(), func() {
			_ = s.land(r, "its last")
			s.kill(p, "killed after "+r.name())
		})
	} else {
		s.kill(p, "killed before "+r.name())
	}
	return true
}

// buried starts another process in the place of one that has ended.
func (s *sim) buried(p *process) {
	s.buryPod(p)
	in := s.chance.of(p.id+" restarts").between(100*time.Millisecond, 10*time.Second)
	for _, d := range s.plan.Deaths {
		if d.Process == p.index {
			in = d.Restart
		}
	}
	if s.calm.Load() {
		in = time.Second
	}
	s.after(in, "another for "+p.id, func() {
		if len(s.alive()) < s.replicas() {
			s.launch()
		}
	})
}

func (s *sim) replicas() int {
	if s.plan.Elected && !s.calm.Load() {
		return 2
	}
	return 1
}
