// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	executor "reprise.dev/reprise/internal/executor/http"
)

func TestACommandIsShortForFlags(t *testing.T) {
	for line, want := range map[string]task{
		"":                 {},
		"sleep 30s":        {sleep: 30 * time.Second},
		"exit 3":           {code: 3},
		"grace 20s":        {pause: true, onTerm: 20 * time.Second},
		"eat":              {eat: true},
		"print two words":  {text: "two words"},
		"serve :8080":      {address: ":8080"},
		"pause":            {pause: true, onTerm: time.Nanosecond},
		"-exit 4 grace 2s": {pause: true, onTerm: 2 * time.Second, code: 4},
		"-print hello -sleep 5s -on-term 10s -exit 2": {
			text: "hello", sleep: 5 * time.Second, onTerm: 10 * time.Second, code: 2,
		},
	} {
		got, err := parse(strings.Fields(line), io.Discard)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%q is %+v, %v", line, got, err)
		}
	}
}

func TestWhatIsNoCommandIsRefused(t *testing.T) {
	for _, line := range []string{"dance", "sleep", "sleep long", "exit 1 2", "eat 5", "-fly"} {
		if got, err := parse(strings.Fields(line), io.Discard); err == nil {
			t.Errorf("%q is %+v", line, *got)
		}
	}
}

func TestWorkEndsWithItsCode(t *testing.T) {
	var out bytes.Buffer
	if got := (&task{text: "hello", sleep: time.Millisecond, code: 3}).run(&out, nil); got != 3 || out.String() != "hello\n" {
		t.Errorf("exit code %d, output %q", got, out.String())
	}
}

func TestAnAddressThatCannotBeServedFails(t *testing.T) {
	if got := (&task{address: "nowhere"}).run(io.Discard, nil); got != exitFailed {
		t.Errorf("exit code %d", got)
	}
}

func TestHowWorkEndsWhenAskedTo(t *testing.T) {
	ask := func() <-chan os.Signal {
		ended := make(chan os.Signal, 1)
		ended <- syscall.SIGTERM
		return ended
	}
	if got := (&task{pause: true}).run(io.Discard, ask()); got != 143 {
		t.Errorf("without a grace the exit code is %d, not that of a process that SIGTERM ended", got)
	}
	begun := time.Now()
	if got := (&task{pause: true, onTerm: 50 * time.Millisecond}).run(io.Discard, ask()); got != 0 {
		t.Errorf("after a grace the exit code is %d", got)
	}
	if took := time.Since(begun); took < 50*time.Millisecond {
		t.Errorf("a grace of 50 ms took %v", took)
	}
}

func TestAGluttonThatNobodyKillsStops(t *testing.T) {
	if err := eat(8 << 20); err == nil || !strings.Contains(err.Error(), "took 8388608 bytes") {
		t.Error(err)
	}
}

func TestTheServerTellsOfItsCalls(t *testing.T) {
	var out bytes.Buffer
	s := httptest.NewServer(newServer(&out))
	defer s.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/do?sleep=1ms&status=503", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(executor.HeaderIdempotencyKey, "key")
	request.Header.Set(executor.HeaderRun, "ns/run")
	request.Header.Set(executor.HeaderAttempt, "2")
	if got := status(t, request); got != 503 {
		t.Errorf("asked for 503, got %d", got)
	}
	calls := list(t, s.URL)
	if len(calls) != 1 {
		t.Fatalf("%d calls: %+v", len(calls), calls)
	}
	got := calls[0]
	if got.Ended == nil || got.Ended.Before(got.Started) {
		t.Errorf("from %v to %v", got.Started, got.Ended)
	}
	got.Started, got.Ended = time.Time{}, nil
	if want := (call{Method: "POST", Path: "/do", Key: "key", Run: "ns/run", Attempt: "2", Status: 503}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if log := out.String(); strings.Count(log, "\n") != 2 || strings.Count(log, `"run":"ns/run"`) != 2 {
		t.Errorf("the log is %s", log)
	}
}

func TestTheServerRefusesAWishItDoesNotUnderstand(t *testing.T) {
	s := httptest.NewServer(newServer(io.Discard))
	defer s.Close()
	for _, query := range []string{"sleep=long", "status=ok", "status=99"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := status(t, request); got != http.StatusBadRequest {
			t.Errorf("%s: got %d", query, got)
		}
	}
	if calls := list(t, s.URL); len(calls) != 0 {
		t.Errorf("refused calls count as answered: %+v", calls)
	}
}

// lines is a writer that hands on what is written.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

func TestTheServerSeesThatACallerWentAway(t *testing.T) {
	log := make(lines, 2)
	s := httptest.NewServer(newServer(log))
	defer s.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/?sleep=1h", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, goAway := context.WithCancel(t.Context())
	var caller sync.WaitGroup
	caller.Go(func() {
		if response, err := http.DefaultClient.Do(request.WithContext(ctx)); err == nil {
			t.Errorf("an answer came: %s", response.Status)
		}
	})
	if line := <-log; !strings.Contains(line, `"what":"started"`) {
		t.Errorf("the log begins with %s", line)
	}
	if calls := list(t, s.URL); len(calls) != 1 || calls[0].Ended != nil {
		t.Errorf("an open call is %+v", calls)
	}
	goAway()
	caller.Wait()
	if line := <-log; !strings.Contains(line, `"what":"ended"`) || !strings.Contains(line, `"status":0`) {
		t.Errorf("the log goes on with %s", line)
	}
}

// status makes a call and returns the status of its answer.
func status(t *testing.T, request *http.Request) int {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}

// list returns what the server tells of its calls.
func list(t *testing.T, server string) []call {
	t.Helper()
	response, err := http.Get(server + "/calls")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var calls []call
	if err := json.NewDecoder(response.Body).Decode(&calls); err != nil || calls == nil {
		t.Fatalf("%+v, %v", calls, err)
	}
	return calls
}
