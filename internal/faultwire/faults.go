// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
)

// Fault is what an API server, or the way to it, does to one request.
type Fault string

// The faults. Those of writes leave reads alone.
const (
	// Conflict refuses a write with 409: it is not carried out, though nobody else has written.
	Conflict Fault = "conflict"
	// Throttled refuses a request with 429 and Retry-After; clients of Kubernetes then repeat it by themselves.
	Throttled Fault = "429"
	// Failed answers 500 to a request that is not carried out.
	Failed Fault = "500"
	// Reset breaks the connection before the request is sent.
	Reset Fault = "reset"
	// TimedOut carries the request out and answers 504.
	TimedOut Fault = "timeout after commit"
	// Repeated carries a write out and answers 500 with Retry-After: clients of Kubernetes then send it once more by themselves,
	// and get the answer to that, such as a conflict with their own write.
	Repeated Fault = "repeated after commit"
	// Lost carries the request out and breaks the connection before the answer.
	Lost Fault = "answer lost"
)

// AllFaults are all of them.
var AllFaults = []Fault{Conflict, Throttled, Failed, Reset, TimedOut, Repeated, Lost}

// ofWrites says which faults leave reads alone: of a read that is repeated nobody sees anything.
func (f Fault) ofWrites() bool { return f == Conflict || f == Repeated }

// Plan says which requests of a process are faulty.
type Plan struct {
	// Seed of everything that chance decides here.
	Seed uint64
	// Faults that may happen; each is as probable as any other.
	Faults []Fault
	// Probability of a fault, request for request. Watches are requests, too.
	Probability float64
	// InARow is how many faults may happen in a row to requests for one object or collection by one method.
	InARow int
}

// Faults makes requests of a process faulty.
type Faults struct {
	plan Plan

	mu     sync.Mutex
	random *rand.Rand
	over   bool
	row    map[string]int
	counts map[Fault]int
}

// NewFaults returns what a plan says.
func NewFaults(p Plan) *Faults {
	return &Faults{plan: p, random: rand.New(rand.NewPCG(p.Seed, 1)), row: map[string]int{}, counts: map[Fault]int{}}
}

// Config is the connection of a process whose requests are faulty.
func (f *Faults) Config(base *rest.Config) *rest.Config {
	c := rest.CopyConfig(base)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return faulty{faults: f, next: next} })
	return c
}

// End ends the faults.
func (f *Faults) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

// Counts returns how often each fault has happened so far.
func (f *Faults) Counts() map[Fault]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}

// choose returns the fault of a request; "" for none.
func (f *Faults) choose(r *http.Request) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := r.Method + " " + r.URL.Path
	// Both are drawn each time, so that one request depends little on what the others were.
	chance, which := f.random.Float64(), f.plan.Faults[f.random.IntN(len(f.plan.Faults))]
	if f.over || chance >= f.plan.Probability || f.row[key] >= f.plan.InARow || (which.ofWrites() && r.Method == http.MethodGet) {
		delete(f.row, key)
		return ""
	}
	f.row[key]++
	f.counts[which]++
	return which
}

// faulty is the way to the API server on which faults happen.
type faulty struct {
	faults *Faults
	next   http.RoundTripper
}

// errReset is what is seen of a connection that breaks.
var errReset = fmt.Errorf("by the test: %w", syscall.ECONNRESET)

// RoundTrip carries out one request, or does not.
func (f faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	fault := f.faults.choose(r)
	switch fault {
	case Conflict:
		return refusal(r, http.StatusConflict), nil
	case Throttled:
		return refusal(r, http.StatusTooManyRequests), nil
	case Failed:
		return refusal(r, http.StatusInternalServerError), nil
	case Reset:
		return nil, errReset
	case TimedOut, Repeated, Lost:
		if err := f.carryOut(r); err != nil {
			return nil, err
		}
	default:
		return f.next.RoundTrip(r)
	}
	switch fault {
	case TimedOut:
		return refusal(r, http.StatusGatewayTimeout), nil
	case Repeated:
		response := refusal(r, http.StatusInternalServerError)
		response.Header.Set("Retry-After", "1")
		return response, nil
	default:
		return nil, errReset
	}
}

// carryOut sends a request of which nobody sees the answer.
func (f faulty) carryOut(r *http.Request) error {
	if r.URL.Query().Get("watch") == "true" {
		return nil // there is nothing to carry out
	}
	response, err := f.next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}
