// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Request is one request of the process.
type Request struct {
	// Method of HTTP, and the path without the query.
	Method, Path string
	// Resource in the plural, and the subresource if there is one: "jobruns" and "status".
	Resource, Subresource string
	// Namespace and Name of the object. Of a creation that leaves the name to the API server, Name is what it is made from.
	Namespace, Name string
	// Body is what was sent. Do not change it.
	Body []byte
	// Watch says that it is a watch, or a list that is one.
	Watch bool
	// Write is the number of this write, from 1; 0: it is none.
	Write int
	// Code of the answer; 0 if there is none, or not yet.
	Code int
}

// String tells the request in a line, without its body.
func (r Request) String() string {
	name := r.Resource
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s", r.Method, name, r.Name)
}

// List says that the request reads a list at once.
func (r Request) List() bool {
	return r.Method == http.MethodGet && r.Name == "" && r.Resource != "" && !r.Watch
}

// Writes returns every write so far in the order in which they were sent: whatever is no read counts, events, leases and
// questions to the API server that are put as a creation too. A write at which the process died is among them.
func (x *Wire) Writes() []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.writes)
}

// count notes a write and returns the doom that was chosen for it. It is called with the lock held.
func (x *Wire) count(r *Request) doom {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return goesOn
	}
	r.Write = len(x.writes) + 1
	x.writes = append(x.writes, *r)
	switch r.Write {
	case x.die.write:
		// Nothing else goes out meanwhile.
		x.pause = make(chan struct{})
		if x.die.landed {
			return deadAfter
		}
		return deadBefore
	case x.halt.write:
		x.pause = make(chan struct{})
		if x.halt.landed {
			return stillAfter
		}
		return stillBefore
	default:
		return goesOn
	}
}

func (x *Wire) answered(r Request, code int) {
	if r.Write == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.writes[r.Write-1].Code = code
}

// readRequest reads what is to be sent, and leaves hr as it was.
func readRequest(hr *http.Request) (Request, error) {
	r := Request{Method: hr.Method, Path: hr.URL.Path}
	watch := hr.URL.Query().Get("watch")
	r.Watch = hr.Method == http.MethodGet && (watch == "true" || watch == "1")
	if hr.Body != nil {
		body, err := io.ReadAll(hr.Body)
		_ = hr.Body.Close()
		if err != nil {
			return r, err
		}
		r.Body = body
		hr.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.parsePath()
	if r.Name == "" && r.Method == http.MethodPost {
		r.Name = nameIn(r.Body)
	}
	return r, nil
}

// parsePath reads /api/v1/… and /apis/group/version/…; of other paths there is nothing to say.
func (r *Request) parsePath() {
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&r.Resource, &r.Name, &r.Subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
}

// nameIn returns the name of an object in JSON, or what its name is to be made from.
func nameIn(body []byte) string {
	var o struct {
		Metadata struct{ Name, GenerateName string }
	}
	if json.Unmarshal(body, &o) != nil || o.Metadata.Name == "" {
		return o.Metadata.GenerateName
	}
	return o.Metadata.Name
}
