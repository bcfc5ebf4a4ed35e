// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hooks are what a test put in.
type hooks struct {
	asking  sync.Mutex // one question at a time
	request func(Request) Verdict
	watch   func(resource string, body io.ReadCloser) io.ReadCloser
	list    func(r Request, answer []byte) []byte
}

// Verdict is what becomes of one request. The zero value lets it pass.
type Verdict struct {
	refuse int
	lose   bool
	late   <-chan struct{}
}

// Refuse answers a request with the code; it is not carried out.
func Refuse(code int) Verdict { return Verdict{refuse: code} }

// Lose carries out a request and loses its answer.
func Lose() Verdict { return Verdict{lose: true} }

// Late keeps a request on its way until the channel is closed. Then it is carried out, also when the process is dead or does
// not wait any more.
func Late(until <-chan struct{}) Verdict { return Verdict{late: until} }

// OnRequest asks f about every request that is no watch, once and one at a time. Of a write at which the process dies or
// stands still it is not asked.
func (x *Wire) OnRequest(f func(Request) Verdict) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hooks.request = f
}

// OnWatch gives the bodies of watches of a resource to f, which may read them in its own way.
func (x *Wire) OnWatch(f func(resource string, body io.ReadCloser) io.ReadCloser) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hooks.watch = f
}

// OnList gives the answers of successful lists to f, and the process what f returns. Informers read their first list as a
// watch.
func (x *Wire) OnList(f func(r Request, answer []byte) []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hooks.list = f
}

func (x *Wire) ask(r Request) Verdict {
	x.mu.Lock()
	f := x.hooks.request
	x.mu.Unlock()
	if f == nil {
		return Verdict{}
	}
	x.hooks.asking.Lock()
	defer x.hooks.asking.Unlock()
	return f(r)
}

// hooked carries out a request as the test wants it.
func (e *end) hooked(hr *http.Request, r Request) (*http.Response, error) {
	v := e.ask(r)
	switch {
	case v.refuse != 0:
		e.answered(r, v.refuse)
		return refusal(hr, v.refuse), nil
	case v.late != nil:
		return e.late(hr, r, v.late)
	case v.lose:
		if _, err := e.detached(hr, r); err != nil {
			return nil, err
		}
		return nil, ErrLost
	default:
		response, err := e.send(hr, r)
		if err != nil || !r.List() || response.StatusCode != http.StatusOK {
			return response, err
		}
		return response, e.relist(r, response)
	}
}

// late waits with the request, without whoever waits for the answer.
func (e *end) late(hr *http.Request, r Request, until <-chan struct{}) (*http.Response, error) {
	type answer struct {
		*http.Response
		error
	}
	answers := make(chan answer, 1)
	go func() {
		<-until
		var a answer
		a.Response, a.error = e.detached(hr, r) //nolint:bodyclose // it is in memory, and the caller closes it
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.Response, a.error
	case <-e.whole.Done():
		return nil, ErrCut
	case <-hr.Context().Done():
		return nil, hr.Context().Err()
	}
}

func (e *end) relist(r Request, response *http.Response) error {
	e.mu.Lock()
	f := e.hooks.list
	e.mu.Unlock()
	if f == nil {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	body = f(r, body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Del("Content-Length")
	return nil
}

// watch begins a watch, which ends with the cut.
func (e *end) watch(hr *http.Request, r Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(hr.Context())
	stop := context.AfterFunc(e.whole, func() { cancel(ErrCut) })
	end := func() { stop(); cancel(nil) }
	response, err := e.base.RoundTrip(hr.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	e.mu.Lock()
	f := e.hooks.watch
	e.mu.Unlock()
	if f != nil && response.StatusCode == http.StatusOK {
		response.Body = f(r.Resource, response.Body)
	}
	response.Body = &paced{ReadCloser: response.Body, wire: e.Wire, stop: end}
	return response, nil
}

// refusal is an answer as the API server gives it.
func refusal(hr *http.Request, code int) *http.Response {
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: "refused by the test",
	}
	body, err := json.Marshal(s)
	if err != nil {
		panic(err) // a plain struct
	}
	response := &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		Request: hr,
	}
	if code == http.StatusTooManyRequests {
		response.Header.Set("Retry-After", "1")
	}
	return response
}

// reasons by which clients know an error.
var reasons = map[int]metav1.StatusReason{
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusNotFound:            metav1.StatusReasonNotFound,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}
