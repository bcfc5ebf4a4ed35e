// SPDX-License-Identifier: Apache-2.0

package startup_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"reprise.dev/reprise/controllers/startup"
)

// over is a context that has ended: what waits in spite of it would wait.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAGateKeepsBackUntilItIsOpened(t *testing.T) {
	g := NewWithT(t)
	gate := startup.NewGate()
	g.Expect(gate.Wait(over())).To(MatchError(context.Canceled))

	waited := make(chan error)
	go func() { waited <- gate.Wait(t.Context()) }()
	gate.Open()
	g.Expect(<-waited).To(Succeed())
	gate.Open()
	g.Expect(gate.Wait(t.Context())).To(Succeed())
}

func TestAGateThatIsShutKeepsBackForGood(t *testing.T) {
	for name, shutting := range map[string]func(*startup.Gate){
		"after it was open":          func(g *startup.Gate) { g.Open(); g.Shut() },
		"before it was ever open":    func(g *startup.Gate) { g.Shut(); g.Open() },
		"however often this is said": func(g *startup.Gate) { g.Open(); g.Shut(); g.Shut(); g.Open() },
	} {
		t.Run(name, func(t *testing.T) {
			gate := startup.NewGate()
			shutting(gate)
			NewWithT(t).Expect(gate.Wait(over())).To(MatchError(context.Canceled))
		})
	}
}
