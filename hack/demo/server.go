// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// samplesAddress is where the samples say that the server is. If it is taken, the samples are applied with another one.
const samplesAddress = "127.0.0.1:18080"

const (
	announcementsPath = "/announcements"
	flakyPath         = "/flaky"
	slowPath          = "/slow"
)

const (
	// usually is how long an ordinary call takes: long enough that several meet.
	usually = 200 * time.Millisecond
	// slowly is how long the slow call takes when it is made again. The first one never ends.
	slowly = 2 * time.Second
	// maxBody is more than any sample sends.
	maxBody = 1 << 20
)

// workServer is what the runs call. Everything that it receives is in its log.
type workServer struct {
	log    *worklog
	server *http.Server
	listen net.Listener
	calls  atomic.Int64 // of runs, in flight
	page   latch        // of the first page of the chat
}

// startServer listens where the samples expect it or, if that port is taken, on a free one.
func startServer(ctx context.Context, log *worklog) (*workServer, error) {
	var config net.ListenConfig
	listen, err := config.Listen(ctx, "tcp", samplesAddress)
	if err != nil {
		listen, err = config.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	s := &workServer{log: log, listen: listen, page: newLatch()}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(listen) }() // ends with stop
	return s, nil
}

func (s *workServer) address() string { return s.listen.Addr().String() }

func (s *workServer) stop() error { return s.server.Close() }

// ServeHTTP notes the call, does what the path stands for, and notes how it ended.
func (s *workServer) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	e := entry{
		Path: r.URL.Path, Run: r.Header.Get("Reprise-Run"), Attempt: r.Header.Get("Reprise-Attempt"), Key: r.Header.Get("Idempotency-Key"),
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxBody))
	if err != nil {
		return // the caller is gone
	}
	readEvent(body, &e)
	if strings.HasPrefix(r.URL.Path, chatPath) {
		s.chat(rw, r, e)
		return
	}
	if e.Run != "" {
		e.AtOnce = int(s.calls.Add(1))
		defer s.calls.Add(-1)
	}
	if !s.note(rw, e, received) {
		return
	}
	e.AtOnce = 0
	e.Status = work(r, e.Attempt)
	if r.Context().Err() != nil {
		e.Status = 0
		s.note(rw, e, broken)
		return
	}
	if s.note(rw, e, answered) {
		rw.WriteHeader(e.Status)
		_, _ = io.WriteString(rw, http.StatusText(e.Status))
	}
}

// note writes to the log. What is not in the log must not have succeeded.
func (s *workServer) note(rw http.ResponseWriter, e entry, event string) bool {
	e.Event, e.Time = event, time.Now().UTC()
	if err := s.log.add(e); err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return false
	}
	return true
}

// work takes the time that the path stands for, at most until the caller is gone, and returns the answer.
func work(r *http.Request, attempt string) int {
	switch {
	case r.URL.Path == announcementsPath:
	case r.URL.Path == flakyPath && attempt == "0":
		return http.StatusServiceUnavailable
	case r.URL.Path == slowPath && attempt == "0":
		<-r.Context().Done()
	case r.URL.Path == slowPath:
		pause(r.Context(), slowly)
	default:
		pause(r.Context(), usually)
	}
	return http.StatusOK
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// readEvent notes what a CloudEvent says of itself. Any other body says nothing.
func readEvent(body []byte, e *entry) {
	var event struct {
		SpecVersion string `json:"specversion"`
		ID          string `json:"id"`
		Type        string `json:"type"`
		Subject     string `json:"subject"`
		Data        struct {
			UID string `json:"uid"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &event) == nil && event.SpecVersion != "" {
		e.ID, e.Type, e.Subject, e.UID = event.ID, event.Type, event.Subject, event.Data.UID
	}
}
