// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/version"
)

// received is what a server saw of a call.
type received struct {
	method, body string
	header       http.Header
	length       int64
	chunked      bool
}

// recorder is a server that keeps what it receives.
func recorder(t *testing.T) (string, <-chan received) {
	calls := make(chan received, 16)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		calls <- received{r.Method, string(body), r.Header, r.ContentLength, len(r.TransferEncoding) > 0}
	})
	return s.URL, calls
}

func TestMethodAndContent(t *testing.T) {
	for name, c := range map[string]struct {
		work                      batchv1alpha1.HTTPWork
		method, body, contentType string
	}{
		"without a body it is a GET":       {batchv1alpha1.HTTPWork{}, "GET", "", ""},
		"with a body it is a POST":         {batchv1alpha1.HTTPWork{Body: ptr.To("hi")}, "POST", "hi", "text/plain; charset=utf-8"},
		"with an empty body it is a POST":  {batchv1alpha1.HTTPWork{Body: ptr.To("")}, "POST", "", ""},
		"a JSON body is sent as such":      {batchv1alpha1.HTTPWork{Body: ptr.To(`{"a": 1}`)}, "POST", `{"a": 1}`, "application/json"},
		"the method of the work wins":      {batchv1alpha1.HTTPWork{Method: "PUT", Body: ptr.To("hi")}, "PUT", "hi", "text/plain; charset=utf-8"},
		"a GET may have a body":            {batchv1alpha1.HTTPWork{Method: "GET", Body: ptr.To("hi")}, "GET", "hi", "text/plain; charset=utf-8"},
		"a HEAD has none":                  {batchv1alpha1.HTTPWork{Method: "HEAD"}, "HEAD", "", ""},
		"a POST may have none":             {batchv1alpha1.HTTPWork{Method: "POST"}, "POST", "", ""},
		"a DELETE may have none":           {batchv1alpha1.HTTPWork{Method: "DELETE"}, "DELETE", "", ""},
		"the work may name a content type": {batchv1alpha1.HTTPWork{Body: ptr.To("a,b"), Headers: inClear("content-type", "text/csv")}, "POST", "a,b", "text/csv"},
	} {
		t.Run(name, func(t *testing.T) {
			url, calls := recorder(t)
			c.work.URL = url
			b := newBench(t, loopback)
			if o := b.outcome(claimed("a", c.work)); o.Phase != batchv1alpha1.JobRunCompleted {
				t.Fatalf("%+v", o)
			}
			got := <-calls
			if got.method != c.method || got.body != c.body || got.header.Get("Content-Type") != c.contentType {
				t.Errorf("got %s %q of type %q", got.method, got.body, got.header.Get("Content-Type"))
			}
			if got.chunked || got.length != int64(len(c.body)) {
				t.Errorf("length %d, chunked %v", got.length, got.chunked)
			}
		})
	}
}

func TestEveryAttemptOfAChainCarriesTheSameKeyAndItsOwnNumber(t *testing.T) {
	url, calls := recorder(t)
	b := newBench(t, loopback)
	root := claimed("report", batchv1alpha1.HTTPWork{URL: url})
	child := claimed("report-r1", batchv1alpha1.HTTPWork{URL: url})
	child.Spec.RetryOf, child.Spec.Attempt = "report", 1
	child.Spec.Chain = &batchv1alpha1.Chain{RootName: "report", RootUID: root.UID, IdempotencyKey: string(root.UID)}
	for attempt, r := range []*batchv1alpha1.JobRun{root, child} {
		b.outcome(r)
		h := (<-calls).header
		if got := h[HeaderIdempotencyKey]; len(got) != 1 || got[0] != "uid-of-report" {
			t.Errorf("%s: key %q", r.Name, got)
		}
		if h.Get(HeaderRun) != "shop/"+r.Name || h.Get(HeaderAttempt) != string(rune('0'+attempt)) {
			t.Errorf("%s: run %q, attempt %q", r.Name, h.Get(HeaderRun), h.Get(HeaderAttempt))
		}
	}
}

func TestHeadersOfTheManagerWinOverThoseOfTheWork(t *testing.T) {
	url, calls := recorder(t)
	b := newBench(t, loopback)
	b.outcome(claimed("a", batchv1alpha1.HTTPWork{URL: url, Headers: inClear(
		"reprise-run", "other/run", "REPRISE-ATTEMPT", "7", "idempotency-key", "mine", "User-Agent", "cron/1", "X-Team", " blue ",
	)}))
	h := (<-calls).header
	for name, want := range map[string]string{
		HeaderRun: "shop/a", HeaderAttempt: "0", HeaderIdempotencyKey: "uid-of-a", "User-Agent": "cron/1", "X-Team": "blue",
	} {
		if got := h.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestACallJoinsTheTraceOfItsRunUnlessTheWorkNamesOne(t *testing.T) {
	url, calls := recorder(t)
	b := newBench(t, loopback)
	b.options.Traceparent = func(r *batchv1alpha1.JobRun) string { return "00-of-" + r.Name + "-01" }
	for name, c := range map[string]struct {
		headers []batchv1alpha1.HTTPHeader
		want    string
	}{
		"plain": {nil, "00-of-plain-01"},
		"own":   {inClear("traceparent", "mine"), "mine"},
	} {
		b.outcome(claimed(name, batchv1alpha1.HTTPWork{URL: url, Headers: c.headers}))
		if got := (<-calls).header.Values("traceparent"); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	b.options.Traceparent = nil
	b.outcome(claimed("untold", batchv1alpha1.HTTPWork{URL: url}))
	if got := (<-calls).header.Values("traceparent"); len(got) != 0 {
		t.Errorf("without traces: %q", got)
	}
}

func TestTheManagerNamesItselfAndAsksForNoCompression(t *testing.T) {
	url, calls := recorder(t)
	newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: url}))
	h := (<-calls).header
	if got := h.Get("User-Agent"); got != "reprise/"+version.String() {
		t.Errorf("User-Agent %q", got)
	}
	if got := h.Get("Accept-Encoding"); got != "" {
		t.Errorf("Accept-Encoding %q", got)
	}
}

func TestARequestIsNeverRepeatedWithinAnAttempt(t *testing.T) {
	for name, work := range map[string]batchv1alpha1.HTTPWork{
		"GET":                           {},
		"GET with a body":               {Method: "GET", Body: ptr.To("hi")},
		"HEAD":                          {Method: "HEAD"},
		"POST":                          {Body: ptr.To("hi")},
		"POST without a body":           {Method: "POST"},
		"DELETE":                        {Method: "DELETE"},
		"POST with a key of the user's": {Method: "POST", Headers: inClear("X-Idempotency-Key", "mine")},
	} {
		t.Run(name, func(t *testing.T) {
			connections := make(chan string, 16)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				connections <- r.RemoteAddr
				if r.Header.Get(HeaderRun) == "shop/broken" {
					panic(http.ErrAbortHandler)
				}
			})
			b := newBench(t, loopback)
			work.URL = s.URL
			if o := b.outcome(claimed("whole", work)); o.Phase != batchv1alpha1.JobRunCompleted {
				t.Fatalf("%+v", o)
			}
			want(t, b.outcome(claimed("broken", work)), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonConnectionFailed,
				"call to "+strings.TrimPrefix(s.URL, "http://")+" failed: the server closed the connection too early")
			if first, second := <-connections, <-connections; first != second {
				t.Errorf("the connection was not kept, so that nothing is proved: %s, %s", first, second)
			}
			if len(connections) != 0 {
				t.Error("the request was repeated")
			}
		})
	}
}

// inClear returns headers with values in clear, from pairs of names and values.
func inClear(pairs ...string) []batchv1alpha1.HTTPHeader {
	var headers []batchv1alpha1.HTTPHeader
	for i := 0; i < len(pairs); i += 2 {
		headers = append(headers, batchv1alpha1.HTTPHeader{Name: pairs[i], Value: &pairs[i+1]})
	}
	return headers
}
