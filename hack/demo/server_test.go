// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newTestServer(t *testing.T) *workServer {
	t.Helper()
	s, err := startServer(t.Context(), &worklog{path: filepath.Join(t.TempDir(), "work.log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.stop() })
	return s
}

func call(ctx context.Context, s *workServer, path, attempt, body string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address()+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Reprise-Run", "ns/r")
	request.Header.Set("Reprise-Attempt", attempt)
	request.Header.Set("Idempotency-Key", "k")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func TestTheServerFailsTheFirstFlakyCallAndLogsWhatItReceived(t *testing.T) {
	s := newTestServer(t)
	for attempt, want := range map[string]int{"0": http.StatusServiceUnavailable, "1": http.StatusOK} {
		if got, err := call(t.Context(), s, flakyPath, attempt, ""); err != nil || got != want {
			t.Errorf("attempt %s: %d, %v", attempt, got, err)
		}
	}
	log, err := s.log.entries()
	if err != nil {
		t.Fatal(err)
	}
	calls := log.calls("ns/r")
	if len(calls) != 2 || calls[0].Key != "k" || calls[0].AtOnce != 1 || calls[0].Path != flakyPath {
		t.Errorf("its log has %+v", log)
	}
}

func TestTheServerLogsWhatACloudEventSaysOfItself(t *testing.T) {
	s := newTestServer(t)
	body := `{"specversion":"1.0","id":"u/failed","type":"job.run.failed","subject":"r","data":{"uid":"u"}}`
	if _, err := call(t.Context(), s, announcementsPath, "", body); err != nil {
		t.Fatal(err)
	}
	log, err := s.log.entries()
	if err != nil {
		t.Fatal(err)
	}
	heard := log.announcements()
	if len(heard) != 1 || heard[0].UID != "u" || heard[0].Type != "job.run.failed" || heard[0].Subject != "r" || heard[0].ID != "u/failed" {
		t.Errorf("its log has %+v", log)
	}
}

func TestTheServerSeesTheSlowCallBreakOff(t *testing.T) {
	s := newTestServer(t)
	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := call(ctx, s, slowPath, "0", "")
		ended <- err
	}()
	await(t, s, received)
	hangUp()
	if err := <-ended; err == nil {
		t.Error("the call was answered")
	}
	await(t, s, broken)
}

// await returns when the log has the event.
func await(t *testing.T, s *workServer, event string) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		log, err := s.log.entries()
		if err != nil {
			t.Fatal(err)
		}
		if len(log.where(func(e entry) bool { return e.Event == event })) == 1 {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("its log has %+v", log)
		}
	}
}

func TestAServerWhosePortIsTakenTakesAnotherAndTheSamplesFollow(t *testing.T) {
	one, two := newTestServer(t), newTestServer(t)
	if one.address() == two.address() {
		t.Fatalf("both are at %s", one.address())
	}
	text := at([]sample{{text: "url: http://" + samplesAddress + "/a\n"}, {text: "url: http://" + samplesAddress + "/b\n"}}, two.address())
	if want := "url: http://" + two.address() + "/a\n---\nurl: http://" + two.address() + "/b\n"; text != want {
		t.Errorf("the samples are %q", text)
	}
}
