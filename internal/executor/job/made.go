// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// made are the runs that this process has claimed, by their UIDs, with the UID of the Job that it has made for each: "" while
// the claim, or the creation after it, is on its way. The zero value is empty.
//
// Without the former a look between the claim and the creation of the Job would find no work, and a look back at whether Start
// was called might come after it: the run would pass for one whose Job somebody removed. The latter only saves requests.
type made struct {
	mu   sync.Mutex
	jobs map[types.UID]types.UID
}

// expect notes a run whose Job is about to be made.
func (m *made) expect(run types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs == nil {
		m.jobs = map[types.UID]types.UID{}
	}
	m.jobs[run] = ""
}

// note takes the Job that was made for a run, if the run was not forgotten meanwhile: nobody would forget it again.
func (m *made) note(run, job types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.jobs[run]; known {
		m.jobs[run] = job
	}
}

func (m *made) forget(run types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, run)
}

// expected reports whether the Job of a run is about to be made.
func (m *made) expected(run types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	job, known := m.jobs[run]
	return known && job == ""
}

// job returns the Job that was made for a run, "" if none is known.
func (m *made) job(run types.UID) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.jobs[run]
}
