// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"reprise.dev/reprise/internal/invariant"
)

// longestCall is how long the server waits for its caller to go away, when it is asked to.
const longestCall = 30 * time.Second

// server is what runs call, and whom queues tell of their ends. It writes down what happens to it.
type server struct {
	*httptest.Server
	// owner finds the manager process that has a port; nil if it cannot.
	owner func(port int) *child

	mu            sync.Mutex
	acts          []entry
	inFlight      int
	hanging       map[*child]int
	announcements map[string][]invariant.Announcement // by namespace
}

// entry is an act with the process that caused it.
type entry struct {
	invariant.Act
	by *child
}

// callerKey is that of a connection's process in its context.
type callerKey struct{}

func newServer(t *testing.T, owner func(port int) *child) *server {
	s := &server{owner: owner, hanging: map[*child]int{}, announcements: map[string][]invariant.Announcement{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/work", s.work)
	mux.HandleFunc("/announce/{namespace}/{receiver}", s.announce)
	s.Server = httptest.NewUnstartedServer(mux)
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		remote, _ := c.RemoteAddr().(*net.TCPAddr)
		return context.WithValue(ctx, callerKey{}, s.owner(remote.Port))
	}
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// demand is what a run asks of the server.
type demand struct {
	takes time.Duration
	fails int  // the first so many attempts fail
	hangs bool // it answers nothing until the caller goes away
}

func (s *server) address(d demand) string {
	return fmt.Sprintf("%s/work?ms=%d&fails=%d&hangs=%t", s.URL, d.takes.Milliseconds(), d.fails, d.hangs)
}

// work does what its query asks for. It goes on although its caller stands still, and ends when the connection does.
func (s *server) work(rw http.ResponseWriter, r *http.Request) {
	namespace, name, _ := strings.Cut(r.Header.Get("Reprise-Run"), "/")
	attempt, err := strconv.ParseInt(r.Header.Get("Reprise-Attempt"), 10, 32)
	if err != nil {
		attempt = -1
	}
	act := invariant.Act{Work: invariant.Call, Namespace: namespace, Name: name, Key: r.Header.Get("Idempotency-Key"), Attempt: int32(attempt)}
	by, _ := r.Context().Value(callerKey{}).(*child)
	end := s.begin(act, by)

	query := r.URL.Query()
	takes, _ := strconv.Atoi(query.Get("ms"))
	length := time.Duration(takes) * time.Millisecond
	if query.Get("hangs") == "true" {
		length = longestCall
		s.hangs(by, 1)
		defer s.hangs(by, -1)
	}
	select {
	case <-time.After(length):
	case <-r.Context().Done():
		end(true)
		return
	}
	end(false)
	if fails, _ := strconv.Atoi(query.Get("fails")); int(attempt) < fails {
		rw.WriteHeader(http.StatusInternalServerError)
	}
}

// begin writes down the beginning of a call and returns what writes down its end.
func (s *server) begin(act invariant.Act, by *child) func(aborted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	act.At, act.Began, act.Execution = time.Now(), true, fmt.Sprintf("call-%d", len(s.acts))
	s.acts = append(s.acts, entry{act, by})
	s.inFlight++
	return func(aborted bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		act.At, act.Began, act.Aborted = time.Now(), false, aborted
		s.acts = append(s.acts, entry{act, by})
		s.inFlight--
	}
}

func (s *server) hangs(by *child, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hanging[by] += change
}

// hangsFor reports whether a call of a process hangs.
func (s *server) hangsFor(c *child) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hanging[c] > 0
}

// announce accepts seven announcements of eight, and wants no more of every second of the others.
func (s *server) announce(rw http.ResponseWriter, r *http.Request) {
	var event struct {
		Type string `json:"type"`
		Data struct {
			UID types.UID `json:"uid"`
		} `json:"data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ns := r.PathValue("namespace")
	heard := s.announcements[ns]
	code := http.StatusOK
	switch len(heard) % 16 {
	case 7:
		code = http.StatusServiceUnavailable
	case 15:
		code = http.StatusGone
	}
	s.announcements[ns] = append(heard, invariant.Announcement{
		At: time.Now(), Receiver: r.PathValue("receiver"), ScheduledJob: r.URL.Query().Has("schedule"), UID: event.Data.UID, Event: event.Type,
		Accepted: code == http.StatusOK, Gone: code == http.StatusGone,
	})
	rw.WriteHeader(code)
}

// calls returns what was written down of the calls of a namespace.
func (s *server) calls(namespace string) []invariant.Act {
	s.mu.Lock()
	defer s.mu.Unlock()
	var acts []invariant.Act
	for _, e := range s.acts {
		if e.Namespace != namespace {
			continue
		}
		if e.by != nil {
			e.Manager = e.by.id()
		}
		acts = append(acts, e.Act)
	}
	return acts
}

// heard returns the announcements of a namespace.
func (s *server) heard(namespace string) []invariant.Announcement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.announcements[namespace]
}

// busy reports whether calls are in flight.
func (s *server) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight > 0
}
