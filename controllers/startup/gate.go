// SPDX-License-Identifier: Apache-2.0

// Package startup orders the first moments of a manager that has begun to lead: nothing is admitted, fired or granted
// before every orphan was evaluated once. It decides nothing; the rules that recover runs and reservations are level-triggered
// and live with their controllers.
package startup

import (
	"context"
	"sync"
)

// Gate keeps admission, fires and grants back until it is opened, and again once it is shut. Each happens once.
type Gate struct {
	opening, shutting sync.Once
	opened, shut      chan struct{}
}

// NewGate returns a gate that is not open yet.
func NewGate() *Gate { return &Gate{opened: make(chan struct{}), shut: make(chan struct{})} }

// Open lets everything through, unless the gate is shut.
func (g *Gate) Open() { g.opening.Do(func() { close(g.opened) }) }

// Shut keeps everything back from now on: the process ends.
func (g *Gate) Shut() { g.shutting.Do(func() { close(g.shut) }) }

// Wait returns nil while the gate is open. It waits for the opening of a gate that is not open yet, and for the end of the
// context, whose error it returns, at one that is shut.
func (g *Gate) Wait(ctx context.Context) error {
	select {
	case <-g.opened:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-g.shut:
		<-ctx.Done()
		return ctx.Err()
	default:
		return nil
	}
}
