// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"reprise.dev/reprise/internal/egress"
)

// maxErrorText is how many characters of a foreign error text are quoted.
const maxErrorText = 512

// call is one call to an upstream.
type call struct {
	to *url.URL
	// reservation that it is made under.
	reservation string
	// added are the headers of the queue.
	added  http.Header
	body   io.ReadCloser
	egress http.RoundTripper
}

// errBroken: the answer broke off after it had begun.
var errBroken = errors.New("the answer did not come to its end")

// pass makes the call, and hands its answer on as it comes. It returns when the call has ended: with nil when the answer was
// whole, with errBroken when it had begun, and with any other error when nothing was answered.
func (c *call) pass(ctx context.Context, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // it is panicked with as it is
			err = errBroken
		} else if p != nil {
			panic(p)
		}
	}()
	(&httputil.ReverseProxy{
		Rewrite:        c.rewrite,
		ModifyResponse: c.modify,
		Transport:      c.egress,
		FlushInterval:  -1, // at once
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, failure error) { err = failure },
		ErrorLog:       log.New(io.Discard, "", 0), // what goes wrong is in the log line of the request
	}).ServeHTTP(w, r.WithContext(ctx))
	return err
}

// rewrite makes the outgoing request: what was between the client and us stays with us.
func (c *call) rewrite(p *httputil.ProxyRequest) {
	out := p.Out
	out.URL, out.Host = c.to, ""
	for _, name := range []string{"Authorization", "Cookie", "Expect"} { // the body is under way: nobody waits for leave to send it
		out.Header.Del(name)
	}
	ownOut(out.Header)
	out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	p.SetXForwarded()
	out.Header.Set(HeaderReservation, c.reservation)
	for name, values := range c.added {
		out.Header[name] = values
	}
	if host := c.added.Get("Host"); host != "" {
		out.Host = host
	}
	out.Body, out.GetBody, out.Trailer = c.body, nil, nil
	sendOnce(out)
}

// ownOut takes out what is ours.
func ownOut(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, headerPrefix) {
			delete(h, name)
		}
	}
}

// sendOnce keeps the transport from repeating the request on its own when a kept connection breaks under it: the upstream may
// have begun. It repeats GET and HEAD, and what has an Idempotency-Key spelled just like that, unless there is a body that cannot
// be made anew. Names of headers are the same in any spelling to everybody else. A request without a body must say so in its
// length, which is only safe for the methods that are not repeated.
func sendOnce(out *http.Request) {
	for _, name := range []string{HeaderIdempotencyKey, "X-" + HeaderIdempotencyKey} {
		if values, ok := out.Header[name]; ok {
			delete(out.Header, name)
			out.Header[strings.ToLower(name)] = values
		}
	}
	if out.ContentLength == 0 && out.Method != http.MethodGet && out.Method != http.MethodHead {
		out.Body = nil
	}
}

// modify takes out of the answer what would be taken for ours.
func (c *call) modify(r *http.Response) error {
	if r.StatusCode == http.StatusSwitchingProtocols {
		return errors.New("the upstream switches protocols, which nobody asked for")
	}
	ownOut(r.Header)
	r.Header.Del("Set-Cookie") // cookies are not passed on either
	r.Header.Set(HeaderReservation, c.reservation)
	return nil
}

// failed is the problem with a call that got no answer.
func (c *call) failed(err error) *problem {
	if forbidden := (*egress.Forbidden)(nil); errors.As(err, &forbidden) {
		return refuse(http.StatusBadGateway, "AddressForbidden", "%s", forbidden).about(c.reservation)
	}
	return refuse(http.StatusBadGateway, "UpstreamFailed", "the upstream did not answer: %s", cutTo(err.Error(), maxErrorText)).about(c.reservation)
}
