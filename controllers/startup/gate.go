// SPDX-License-Identifier: Apache-2.0

// Package startup orders the first moments of a manager that has begun to lead: nothing is admitted, fired or granted
// before every orphan was evaluated once. It decides nothing; the rules that recover runs and reservations are level-triggered
// and live with their controllers.
package startup

import (
	"context"
	"sync"
)

// Gate keeps admission, fires and grants back until it is opened, which happens once.
type Gate struct {
	once   sync.Once
	opened chan struct{}
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{opened: make(chan struct{})} }

// Open lets everything through from now on.
func (g *Gate) Open() { g.once.Do(func() { close(g.opened) }) }

// Wait returns once the gate is open, or with the error of a context that ended first.
func (g *Gate) Wait(ctx context.Context) error {
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
