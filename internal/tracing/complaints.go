// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// complainEvery is how often at most the log tells that spans cannot be sent.
const complainEvery = time.Minute

// complaints are the errors of the libraries of OpenTelemetry.
type complaints struct {
	log   logr.Logger
	clock clock.PassiveClock

	mu   sync.Mutex
	last time.Time
	more int
}

// Handle logs the error, or counts it for the next line.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if !c.last.IsZero() && now.Sub(c.last) < complainEvery {
		c.more++
		return
	}
	c.log.Info("traces cannot be sent; spans are dropped when the queue is full, and nothing else suffers", "why", err.Error(), "notToldSince", c.more)
	c.last, c.more = now, 0
}
