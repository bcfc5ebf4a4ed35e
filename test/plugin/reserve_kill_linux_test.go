// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// scene is a moment of the protocol: the plugin is brought to it.
type scene struct {
	name string
	// trap holds the plugin up there; nil: it is there by itself.
	trap *trap
	// later: the trap is set when the command works, since the acknowledgement is a renewal too.
	later bool
	// occupied: a run has the slot.
	occupied bool
	// comes brings it there.
	comes func(s *stage)
}

func scenes() []scene {
	idle := func(*stage) {}
	works := func(s *stage) { s.working() }
	ends := func(s *stage) {
		s.working()
		s.leave()
	}
	waits := func(s *stage) { s.Eventually(s.stand).Should(ConsistOf(batchv1alpha1.ReservationActive)) }
	return []scene{
		{name: "before the reservation is made", trap: &trap{match: creation}, comes: idle},
		{name: "when it was made and that was not answered", trap: &trap{match: creation, answer: true}, comes: idle},
		{name: "while it waits", occupied: true, comes: waits},
		{name: "before the grant is acknowledged", trap: &trap{match: renewal}, comes: idle},
		{name: "when that was not answered", trap: &trap{match: renewal, answer: true}, comes: idle},
		{name: "while the command works", comes: works},
		{name: "before it is renewed", trap: &trap{match: renewal}, later: true, comes: works},
		{name: "when it was renewed and that was not answered", trap: &trap{match: renewal, answer: true}, later: true, comes: works},
		{name: "before it is released", trap: &trap{match: release}, comes: ends},
		{name: "when it was released and that was not answered", trap: &trap{match: release, answer: true}, comes: ends},
	}
}

// plays brings a reservation to the scene, with a run that wants the slot after it.
func (c scene) plays(s *stage) *command {
	s.t.Helper()
	if c.occupied {
		s.occupied()
	}
	if c.trap != nil && !c.later {
		s.trap(s.t, c.trap)
	}
	p := s.reserve(working)
	c.comes(s)
	if c.later {
		s.trap(s.t, c.trap)
	}
	if c.trap != nil {
		s.Eventually(c.trap.caught).Should(BeClosed(), func() string { return p.err.String() })
	}
	s.wants("next")
	return p
}

func TestWhoeverIsKilledTheCommandHasEndedWhenTheNextRunBegins(t *testing.T) {
	kill := func(s *stage, pids ...int) {
		for _, pid := range pids {
			s.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
		}
	}
	for victim, kills := range map[string]func(s *stage, p *command, manager func()){
		"the plugin": func(s *stage, p *command, _ func()) { kill(s, p.cmd.Process.Pid) },
		"the guard":  func(s *stage, p *command, _ func()) { kill(s, childrenOf(p.cmd.Process.Pid)...) },
		"the plugin and the manager": func(s *stage, p *command, manager func()) {
			manager()
			kill(s, p.cmd.Process.Pid)
			s.killable()
		},
		"the manager": func(s *stage, _ *command, manager func()) {
			manager()
			s.killable()
		},
	} {
		for _, c := range scenes() {
			t.Run(victim+" "+c.name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				manager := s.killable()
				p := c.plays(s)
				kills(s, p, manager)
				if c.trap != nil {
					c.trap.open()
				}
				s.first()
				if victim == "the manager" { // the plugin lives, and so does the command, until it is let go
					s.leave()
				}
				p.result()
				s.Expect(s.living()).To(BeEmpty())
				s.Eventually(s.phase("next")).Should(Equal(batchv1alpha1.JobRunCompleted), func() string { return p.err.String() })
				s.Expect(s.broken).To(BeEmpty())
				s.Eventually(func() bool {
					for _, phase := range s.stand() {
						if !phase.Terminal() {
							return false
						}
					}
					return true
				}).Should(BeTrue())
				s.Expect(len(s.reservations())).To(BeNumerically("<=", 1))
			})
		}
	}
}
