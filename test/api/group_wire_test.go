// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// writesOfGroup matches what the group controller writes: runs, the status of a group, and requests to end.
func writesOfGroup(r request) bool {
	switch {
	case r.method == http.MethodPost:
		return strings.HasSuffix(r.path, "/jobruns") && strings.Contains(r.body, `"groupRef"`) && !strings.Contains(r.body, `"retryOf"`)
	case r.method == http.MethodPut:
		return recordOfGroup(r) || requestToEnd(r)
	default:
		return false
	}
}

// recordOfGroup matches the writes of the status of a group.
func recordOfGroup(r request) bool {
	return r.method == http.MethodPut && strings.Contains(r.path, "/jobgroups/") && strings.HasSuffix(r.path, "/status")
}

// requestToEnd matches the writes that ask a run to end, and those of a run that was asked.
func requestToEnd(r request) bool {
	return r.method == http.MethodPut && strings.Contains(r.path, "/jobruns/") && strings.Contains(r.body, `"halt":{`)
}

// creationOfRun matches the creation of the run of that name.
func creationOfRun(name string) func(request) bool {
	return func(r request) bool {
		return r.method == http.MethodPost && strings.HasSuffix(r.path, "/jobruns") && strings.Contains(r.body, `"name":"`+name+`"`)
	}
}

// saying restricts a match to requests whose body has this text.
func saying(text string, match func(request) bool) func(request) bool {
	return func(r request) bool { return match(r) && strings.Contains(r.body, text) }
}

// fault is what befalls the n-th request that matches. Of what is to be carried out only what the API server accepts counts.
type fault struct {
	*wire
	match  func(request) bool
	landed bool // the request is carried out, and its answer never arrives; otherwise it never arrives itself
	fatal  bool // no request after it arrives
	upTo   bool // it befalls all those before the n-th too
	left   atomic.Int64
}

// faulty is a manager's end of a wire that has a fault.
type faulty struct {
	*fault
	base http.RoundTripper
}

// dies makes the manager on the wire die at its n-th write that matches, before the API server has it or after it has carried
// it out.
func (x *wire) dies(n int64, landed bool, match func(request) bool) *fault {
	return newFault(&fault{wire: x, match: match, landed: landed, fatal: true}, n)
}

// forgets lets the first write that matches be carried out, and its answer never arrive.
func (x *wire) forgets(match func(request) bool) *fault {
	return newFault(&fault{wire: x, match: match, landed: true}, 1)
}

// drops lets the first n writes that match never arrive.
func (x *wire) drops(n int64, match func(request) bool) *fault {
	return newFault(&fault{wire: x, match: match, upTo: true}, n)
}

func newFault(f *fault, n int64) *fault {
	f.left.Store(n)
	return f
}

// config is a manager's connection that has the fault.
func (f *fault) config() *rest.Config {
	c := f.wire.config()
	c.Wrap(func(base http.RoundTripper) http.RoundTripper { return faulty{f, base} })
	return c
}

// befalls counts a request and reports whether the fault befalls it.
func (f *fault) befalls() bool {
	left := f.left.Add(-1)
	return left == 0 || (f.upTo && left > 0)
}

// RoundTrip carries out one request.
func (f faulty) RoundTrip(hr *http.Request) (*http.Response, error) {
	r, err := readRequest(hr)
	if err != nil {
		return nil, err
	}
	if !f.match(r) || (!f.landed && !f.befalls()) {
		return f.base.RoundTrip(hr)
	}
	if f.landed {
		response, err := f.base.RoundTrip(hr)
		if err != nil || response.StatusCode >= http.StatusMultipleChoices || !f.befalls() {
			return response, err
		}
		_ = response.Body.Close()
	}
	if f.fatal {
		f.cut()
	}
	return nil, errLost
}

// died waits until the manager on a wire is dead.
func (w *world) died(x *wire) {
	w.t.Helper()
	w.Eventually(x.whole.Done()).Should(BeClosed(), func() string { return w.groupStory() })
}
