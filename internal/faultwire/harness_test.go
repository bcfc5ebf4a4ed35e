// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait.
const patience = 20 * time.Second

// far is the other end of a wire: it carries out what arrives, and answers with what was sent.
type far struct {
	t      *testing.T
	base   *rest.Config
	url    string
	events chan string // what a watch tells, line by line

	mu      sync.Mutex
	arrived []string
	holding chan struct{} // what arrives is carried out, but not answered until this is closed
}

func newFar(t *testing.T) *far {
	f := &far{t: t, events: make(chan string, 10)}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url, f.base = s.URL, &rest.Config{Host: s.URL}
	return f
}

func (f *far) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.arrived = append(f.arrived, r.Method+" "+r.URL.Path)
	holding := f.holding
	f.mu.Unlock()
	if holding != nil {
		select {
		case <-holding:
		case <-r.Context().Done():
			return
		}
	}
	if r.URL.Query().Get("watch") == "" {
		_, _ = rw.Write(body)
		return
	}
	for {
		rw.(http.Flusher).Flush()
		select {
		case line := <-f.events:
			_, _ = io.WriteString(rw, line+"\n")
		case <-r.Context().Done():
			return
		}
	}
}

// got returns what has arrived, and forgets it.
func (f *far) got() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	arrived := f.arrived
	f.arrived = nil
	return arrived
}

// near is the process's end.
type near struct {
	*far
	client *http.Client
}

func (f *far) near(x *Wire) *near {
	c, err := rest.HTTPClientFor(x.Config(f.base))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.CloseIdleConnections)
	return &near{far: f, client: c}
}

// send sends one request and returns the whole answer.
func (n *near) send(ctx context.Context, method, path, body string) (code int, answer string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, n.url+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	response, err := n.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	all, err := io.ReadAll(response.Body)
	return response.StatusCode, string(all), err
}

const (
	runs   = "/apis/batch.reprise.dev/v1alpha1/namespaces/ns/jobruns"
	status = runs + "/a/status"
)

func (n *near) write(body string) error {
	_, _, err := n.send(n.t.Context(), http.MethodPut, status, body)
	return err
}

func (n *near) read() error {
	_, _, err := n.send(n.t.Context(), http.MethodGet, runs+"/a", "")
	return err
}

// watches begins a watch and returns its lines.
func (n *near) watches(ctx context.Context) *bufio.Scanner {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+runs+"?watch=true", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	response, err := n.client.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewScanner(response.Body)
}

// within waits for something that must happen.
func within[T any](t *testing.T, c <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(patience):
		t.Fatal("it does not happen")
	}
	return got
}

// later does something that waits.
func later[T any](f func() T) <-chan T {
	c := make(chan T, 1)
	go func() { c <- f() }()
	return c
}
