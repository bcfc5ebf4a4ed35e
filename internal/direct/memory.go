// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// digest stands for what must not be kept, such as a token.
type digest [sha256.Size]byte

// memory remembers values for a while: at least the last limit of them, and at most twice as many.
type memory[V any] struct {
	clock clock.PassiveClock
	last  time.Duration
	limit int

	mu         sync.Mutex
	young, old map[digest]remembered[V]
}

type remembered[V any] struct {
	value V
	until time.Time
}

func (m *memory[V]) get(k digest) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.young[k]
	if !ok {
		r, ok = m.old[k]
	}
	if !ok || !m.clock.Now().Before(r.until) {
		return *new(V), false
	}
	return r.value, true
}

// met says whether there is or was something under the key: for how long that is known depends on what came since.
func (m *memory[V]) met(k digest) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, young := m.young[k]
	_, old := m.old[k]
	return young || old
}

func (m *memory[V]) put(k digest, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.young == nil || len(m.young) >= m.limit {
		m.old, m.young = m.young, map[digest]remembered[V]{}
	}
	m.young[k] = remembered[V]{value: v, until: m.clock.Now().Add(m.last)}
}
