// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// gate counts requests in flight, bounds them, and lets no more in once the process is to end.
type gate struct {
	limit int

	mu   sync.Mutex
	n    int
	shut bool
	// work is what must end before the process does: requests, and what they leave to be done after them.
	work sync.WaitGroup
}

// enter lets a request in, which has to leave. The error says why not.
func (g *gate) enter() *problem {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.shut:
		return shuttingDown()
	case g.n >= g.limit:
		return refuse(http.StatusServiceUnavailable, "Overloaded", "%d requests are being served already; try again later", g.limit).again(comeAgain)
	}
	g.n++
	g.work.Add(1)
	return nil
}

func (g *gate) leave() {
	g.mu.Lock()
	g.n--
	g.mu.Unlock()
	g.work.Done()
}

// later does something that a request which is still in flight leaves behind.
func (g *gate) later(do func()) { g.work.Go(do) }

// close lets nobody in any more.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// closed says whether nobody is let in any more.
func (g *gate) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// empty waits until all work has ended, and says whether it has before ctx does. The gate must be closed.
func (g *gate) empty(ctx context.Context) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.work.Wait()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// shuttingDown is what a request hears that comes to a process which is ending, or is cut by its end. Another replica, or the
// next process, serves it.
func shuttingDown() *problem {
	return refuse(http.StatusServiceUnavailable, "ShuttingDown", "this replica of the manager is ending; try again").again(time.Second)
}
