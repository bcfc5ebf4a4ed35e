// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestTheStatusDecidesTheOutcome(t *testing.T) {
	const (
		completed, failed, skipped = batchv1alpha1.JobRunCompleted, batchv1alpha1.JobRunFailed, batchv1alpha1.JobRunSkipped
		succeeded, wrong, nothing  = batchv1alpha1.ReasonSucceeded, batchv1alpha1.ReasonWorkFailed, batchv1alpha1.ReasonNothingToDo
	)
	for name, c := range map[string]struct {
		code            int
		success, skip   []int32
		phase           batchv1alpha1.JobRunPhase
		reason, message string
	}{
		"200 is success":                      {200, nil, nil, completed, succeeded, "server answered 200 OK"},
		"204 is success":                      {204, nil, nil, completed, succeeded, "server answered 204 No Content"},
		"299 is success":                      {299, nil, nil, completed, succeeded, "server answered 299"},
		"503 is failure":                      {503, nil, nil, failed, wrong, "server answered 503 Service Unavailable"},
		"404 is failure":                      {404, nil, nil, failed, wrong, "server answered 404 Not Found"},
		"a redirect is failure":               {302, nil, nil, failed, wrong, "server answered 302 Found"},
		"a listed success code is success":    {409, []int32{200, 409}, nil, completed, succeeded, "server answered 409 Conflict"},
		"a success code not listed is none":   {201, []int32{200}, nil, failed, wrong, "server answered 201 Created"},
		"a skip code skips":                   {404, nil, []int32{404}, skipped, nothing, "server answered 404 Not Found"},
		"a skip code wins over success":       {204, nil, []int32{204}, skipped, nothing, "server answered 204 No Content"},
		"other codes are as without skip":     {200, nil, []int32{204}, completed, succeeded, "server answered 200 OK"},
		"a redirect may be listed as success": {307, []int32{307}, nil, completed, succeeded, "server answered 307 Temporary Redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://169.254.169.254/")
				w.WriteHeader(c.code)
			})
			o := newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: s.URL, SuccessStatusCodes: c.success, SkipStatusCodes: c.skip}))
			want(t, o, c.phase, c.reason, c.message)
			if o.Result == nil || o.Result.HTTPStatus == nil || int(*o.Result.HTTPStatus) != c.code {
				t.Errorf("result %+v", o.Result)
			}
		})
	}
}

func TestTheBeginningOfTheResponseIsKept(t *testing.T) {
	long := strings.Repeat("é", 600)
	for name, c := range map[string]struct {
		code       int
		sent, kept string
		truncated  bool
	}{
		"a short one as it is":              {200, "done: 12 rows", "done: 12 rows", false},
		"of a failure too":                  {500, "out of stock", "out of stock", false},
		"none":                              {200, "", "", false},
		"one that just fits":                {200, strings.Repeat("x", 1024), strings.Repeat("x", 1024), false},
		"a long one cut between runes":      {200, "x" + long, "x" + long[:1022], true},
		"cut where dropped bytes left room": {200, strings.Repeat("\r", 10) + "x" + long, "x" + long[:1012], true},
		"a long one of a failure cut":       {500, strings.Repeat("x", 5000), strings.Repeat("x", 1024), true},
		"with control characters replaced":  {200, "a\x00b\x1b[31m\r\nc\td", "a\ufffdb\ufffd[31m\nc\td", false},
		"with invalid text replaced":        {200, "a\xff\xfeb", "a\ufffd\ufffdb", false},
		"with what grew by that cut":        {200, strings.Repeat("\x01", 1000), strings.Repeat("\ufffd", 341), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.sent)
			})
			o := newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: s.URL}))
			if o.Result.Body != c.kept || o.Result.BodyTruncated != c.truncated {
				t.Errorf("got %q (%d bytes), truncated %v", o.Result.Body, len(o.Result.Body), o.Result.BodyTruncated)
			}
		})
	}
}

func TestOnlySuccessWaitsForTheWholeResponse(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write(make([]byte, maxKept+1))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	for reason, work := range map[string]batchv1alpha1.HTTPWork{
		batchv1alpha1.ReasonWorkFailed:  {URL: s.URL},
		batchv1alpha1.ReasonNothingToDo: {URL: s.URL, SkipStatusCodes: []int32{409}, SuccessStatusCodes: []int32{409}},
	} {
		if o := newBench(t, loopback).outcome(claimed("a", work)); o.Reason != reason || !o.Result.BodyTruncated {
			t.Errorf("%s: %+v", reason, o)
		}
	}
}

func TestAResponseOf100MBFailsTheRunWithoutBeingKept(t *testing.T) {
	var sent atomic.Int64
	chunk := make([]byte, 64<<10)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for sent.Load() < 100<<20 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	b := newBench(t, loopback)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := b.outcome(claimed("a", batchv1alpha1.HTTPWork{URL: s.URL}))
	runtime.ReadMemStats(&after)
	want(t, o, batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonResponseTooLarge,
		"server answered 200 OK, but the response is longer than 33554432 bytes")
	if n := sent.Load(); n > 48<<20 {
		t.Errorf("the server could send %d bytes", n)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes were allocated for it", n)
	}
	if len(o.Result.Body) == 0 || !o.Result.BodyTruncated {
		t.Errorf("%+v", o.Result)
	}
}

func TestAResponseOfTheGreatestLengthIsAccepted(t *testing.T) {
	chunk := make([]byte, 1<<20)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range MaxResponseBytes / len(chunk) {
			_, _ = w.Write(chunk)
		}
	})
	o := newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: s.URL}))
	want(t, o, batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "server answered 200 OK")
}

func TestAResponseThatEndsEarlyIsNoSuccess(t *testing.T) {
	for name, headers := range map[string]string{
		"shorter than its Content-Length": "Content-Length: 100\r\n",
		"in chunks without the last one":  "Transfer-Encoding: chunked\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s\r\n5\r\nhello\r\n", headers)
				_ = conn.Close()
			})
			o := newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: s.URL}))
			want(t, o, batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonConnectionFailed,
				"server answered 200 OK, but its response did not come whole: call to "+strings.TrimPrefix(s.URL, "http://")+
					" failed: the server closed the connection too early")
			if !strings.Contains(o.Result.Body, "hello") || !o.Result.BodyTruncated {
				t.Errorf("%+v", o.Result)
			}
		})
	}
}
