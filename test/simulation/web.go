// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	httpwork "reprise.dev/reprise/internal/executor/http"
	"reprise.dev/reprise/internal/invariant"
)

// Hosts of the simulated web.
const (
	workHost     = "work.example"
	receiverHost = "receiver.example"
)

// web is what a process sees of the web servers.
type web struct{ process *process }

// exchange is one HTTP request on its way.
type exchange struct {
	request *http.Request
	body    []byte
	answer  chan *http.Response
	// The scheduler alone uses these.
	act     *invariant.Act // what has begun
	aborted bool
}

// RoundTrip sends a request to a web server and waits for its answer.
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	p := w.process
	x := &exchange{request: r, answer: make(chan *http.Response, 1)}
	if r.Body != nil {
		x.body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	if p.ended() {
		return nil, errEnded
	}
	key := r.Method + " " + r.URL.String() + " " + strings.Join(r.Header[httpwork.HeaderRun], "") + " " + strings.Join(r.Header[httpwork.HeaderAttempt], "")
	p.sim.network.arrive(&request{process: p, key: key, web: x})
	select {
	case answer := <-x.answer:
		if answer == nil {
			return nil, errors.New("connection refused")
		}
		return answer, nil
	case <-r.Context().Done():
		p.standStill()
		p.sim.network.arrive(&request{process: p, key: key, web: x, abort: true})
		return nil, r.Context().Err()
	case <-p.dead:
		p.sim.network.arrive(&request{process: p, key: key, web: x, abort: true})
		return nil, errEnded
	}
}

// call puts an HTTP request on its way.
func (s *sim) call(r *request) {
	r.n = r.process.asked[r.key]
	r.process.asked[r.key]++
	c := s.chance.of(r.name())
	s.after(s.delay(c.of("there")), r.name(), func() {
		switch x := r.web; {
		case x.aborted || r.process.ended():
		case x.request.URL.Hostname() == workHost:
			s.work(r)
		default:
			s.receive(r, c)
		}
	})
}

// hangUp ends an HTTP request whose caller does not listen any more.
func (s *sim) hangUp(x *exchange) {
	x.aborted = true
	if x.act != nil {
		end := *x.act
		end.Began, end.Aborted = false, true
		x.act = nil
		s.act(end)
	}
}

// work begins a call of a run.
func (s *sim) work(r *request) {
	x, header := r.web, r.web.request.Header
	namespace, name, _ := strings.Cut(first(header, httpwork.HeaderRun), "/")
	attempt, err := strconv.ParseInt(first(header, httpwork.HeaderAttempt), 10, 32)
	if err != nil {
		attempt = -1
	}
	s.calls[r.key]++
	x.act = &invariant.Act{
		Began: true, Work: invariant.Call, Execution: fmt.Sprintf("%s call %d", r.name(), s.calls[r.key]), Namespace: namespace, Name: name,
		Key: first(header, httpwork.HeaderIdempotencyKey), Attempt: int32(attempt), Manager: r.process.id,
	}
	s.act(*x.act)
	d := s.deedOf(name, int32(attempt), 200, 500, 503, 204, -1)
	if d.code < 0 {
		return // it never answers
	}
	s.after(d.takes, r.name()+" is done", func() {
		if x.aborted {
			return
		}
		end := *x.act
		end.Began = false
		x.act = nil
		s.act(end)
		s.respond(r, d.code)
	})
}

// respond sends an answer on its way.
func (s *sim) respond(r *request, code int) {
	s.after(s.delay(s.chance.of(r.name()+" answer")), r.name()+" answer", func() { s.hear(r, code) })
}

// hear gives the answer to the process, once it goes on if it stands still.
func (s *sim) hear(r *request, code int) {
	if r.process.paused {
		r.process.unheard = append(r.process.unheard, func() { s.hear(r, code) })
		return
	}
	r.web.answer <- &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: r.web.request,
	}
}

// first is a header that may have been spelled in any way.
func first(h http.Header, name string) string {
	for k, v := range h {
		if strings.EqualFold(k, name) && len(v) > 0 {
			return v[0]
		}
	}
	return ""
}
