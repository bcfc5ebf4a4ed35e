// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// asked is an API server that keeps what it was asked, and answers as told.
type asked struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func newAsked(t *testing.T, answer http.HandlerFunc) *asked {
	a := &asked{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.requests = append(a.requests, r.Method+" "+r.URL.String())
		a.mu.Unlock()
		answer(rw, r)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *asked) log() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.requests...)
}

func fine(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "{}") }

// on makes a client of the server through a layer of the wire.
func (a *asked) on(t *testing.T, layer func(*rest.Config) *rest.Config) *http.Client {
	c, err := rest.HTTPClientFor(layer(&rest.Config{Host: a.URL}))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	g := NewWithT(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := c.Do(r)
	g.Expect(err).NotTo(HaveOccurred())
	raw, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode, string(raw)
}

func TestTheFirstListOfACacheIsAnsweredAsOfAnOlderVersionAndNoOther(t *testing.T) {
	g := NewWithT(t)
	a := newAsked(t, fine)
	v := NewView(Blur{Back: func(resource string) string { return map[string]string{"pods": "7"}[resource] }})
	c := a.on(t, v.Config)
	pods, jobs := "/api/v1/namespaces/ns/pods", "/apis/batch/v1/namespaces/ns/jobs"
	for _, path := range []string{
		pods, // past the cache, all at once
		pods + "?limit=500", pods + "?continue=more&limit=500", jobs + "?limit=500",
		pods + "?limit=500", // the cache fills once more, in the same process, or something reads past it
	} {
		code, _ := get(t, c, a.URL+path)
		g.Expect(code).To(Equal(http.StatusOK))
	}
	g.Expect(a.log()).To(Equal([]string{
		"GET " + pods,
		"GET " + pods + "?limit=500&resourceVersion=7&resourceVersionMatch=Exact", "GET " + pods + "?continue=more&limit=500", "GET " + jobs + "?limit=500",
		"GET " + pods + "?limit=500",
	}))
	g.Expect(v.Seen().Back).To(Equal(1))
}

func TestAListOfAVersionThatTheAPIServerHasForgottenIsAnsweredAsOfTheLatest(t *testing.T) {
	g := NewWithT(t)
	a := newAsked(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resourceVersion") == "7" {
			rw.WriteHeader(http.StatusGone)
			return
		}
		fine(rw, r)
	})
	v := NewView(Blur{Back: func(string) string { return "7" }})
	code, _ := get(t, a.on(t, v.Config), a.URL+"/api/v1/pods?limit=500")
	g.Expect(code).To(Equal(http.StatusOK))
	g.Expect(a.log()).To(HaveLen(2))
	g.Expect(v.Seen().Back).To(BeZero())
}

func TestInitialEventsAreNotStreamed(t *testing.T) {
	g := NewWithT(t)
	a := newAsked(t, fine)
	code, _ := get(t, a.on(t, NewView(Blur{}).Config), a.URL+"/api/v1/pods?watch=true&sendInitialEvents=true")
	g.Expect(code).To(Equal(http.StatusUnprocessableEntity))
	g.Expect(a.log()).To(BeEmpty())
}

func TestAWatchIsBlurredOnItsWay(t *testing.T) {
	g := NewWithT(t)
	a := newAsked(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, happened(many(3)...)) })
	v := NewView(Blur{})
	_, raw := get(t, a.on(t, v.Config), a.URL+"/api/v1/pods?watch=true")
	g.Expect(raw).To(Equal(happened(many(3)...)))
	g.Expect(v.Seen().Events).To(Equal(3))
}
