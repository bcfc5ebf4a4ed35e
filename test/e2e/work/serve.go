// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The headers that tell which run calls.
const (
	headerKey     = "Idempotency-Key"
	headerRun     = "Reprise-Run"
	headerAttempt = "Reprise-Attempt"
)

// call is one call that was answered, or is being answered.
type call struct {
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Key     string    `json:"key,omitempty"`
	Run     string    `json:"run,omitempty"`
	Attempt string    `json:"attempt,omitempty"`
	Started time.Time `json:"started"`
	// Ended is absent as long as the call is open.
	Ended *time.Time `json:"ended,omitempty"`
	// Status is what was answered, 0 if the caller went away before.
	Status int `json:"status"`
}

// server answers every call and remembers it. `?sleep=2s` makes an answer wait, `?status=503` chooses it; GET /calls
// returns all calls so far, in the order of their start, as JSON.
type server struct {
	out io.Writer

	mu    sync.Mutex
	calls []call
}

func serve(address string, out io.Writer) error {
	s := &http.Server{Addr: address, Handler: newServer(out), ReadHeaderTimeout: time.Minute}
	return s.ListenAndServe()
}

func newServer(out io.Writer) http.Handler {
	s := &server{out: out, calls: []call{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /calls", s.list)
	mux.HandleFunc("/", s.answer)
	return mux
}

func (s *server) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	calls := slices.Clone(s.calls)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(calls) // a caller that went away asks again
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	wait, status, err := wishes(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// A body that was not read keeps the server from seeing that its caller went away.
	_, _ = io.Copy(io.Discard, r.Body)
	index := s.begin(r)
	select {
	case <-time.After(wait):
		s.end(index, status)
		w.WriteHeader(status)
	case <-r.Context().Done():
		s.end(index, 0)
	}
}

// wishes reads how a caller wants to be answered.
func wishes(r *http.Request) (wait time.Duration, status int, err error) {
	status = http.StatusOK
	query := r.URL.Query()
	if text := query.Get("sleep"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil {
			return 0, 0, err
		}
	}
	if text := query.Get("status"); text != "" {
		if status, err = strconv.Atoi(text); err != nil || status < 200 || status > 599 {
			return 0, 0, fmt.Errorf("%q is not the status of an answer", text)
		}
	}
	return wait, status, nil
}

func (s *server) begin(r *http.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call{
		Method: r.Method, Path: r.URL.Path, Started: time.Now(),
		Key: r.Header.Get(headerKey), Run: r.Header.Get(headerRun), Attempt: r.Header.Get(headerAttempt),
	})
	s.log("started", s.calls[len(s.calls)-1])
	return len(s.calls) - 1
}

func (s *server) end(index, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.calls[index].Ended, s.calls[index].Status = &now, status
	s.log("ended", s.calls[index])
}

// log prints a call as a line of JSON. The caller holds mu, or lines would mix.
func (s *server) log(what string, c call) {
	_ = json.NewEncoder(s.out).Encode(struct {
		What string `json:"what"`
		call
	}{what, c})
}
