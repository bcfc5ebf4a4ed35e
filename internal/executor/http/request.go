// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/version"
)

// Headers that every call carries.
const (
	// HeaderIdempotencyKey is the same for all attempts of a chain.
	HeaderIdempotencyKey = "Idempotency-Key"
	// HeaderRun is the namespace and name of the run.
	HeaderRun = "Reprise-Run"
	// HeaderAttempt is the number of the attempt, 0 for the first: a receiver that has seen a higher one for the same
	// Idempotency-Key may refuse a lower one, which comes from a manager that does not lead any more.
	HeaderAttempt = "Reprise-Attempt"

	// HeaderTraceparent is by which the called service joins the trace of the chain, if there are traces. A run that sets it
	// keeps its own.
	HeaderTraceparent = "Traceparent"

	headerContentType = "Content-Type"
)

// request returns the request with the content type as its only header, or a *executor.Rejected.
func (p *plan) request(ctx context.Context) (*http.Request, error) {
	target, err := p.target()
	if err != nil {
		return nil, err
	}
	content, contentType, err := p.content()
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if content != "" {
		body = strings.NewReader(content)
	}
	request, err := http.NewRequestWithContext(ctx, p.method(), target.String(), body)
	if err != nil {
		return nil, invalid("the request cannot be made: %s", plain(err))
	}
	if contentType != "" {
		request.Header.Set(headerContentType, contentType)
	}
	return request, nil
}

// target returns the address to call. Texts about it never quote it: its query may hold a token.
func (p *plan) target() (*url.URL, error) {
	target, err := url.Parse(p.work.URL)
	switch {
	case err != nil:
		return nil, invalid("work.http.url is not valid: %s", plain(err))
	case target.Scheme != "http" && target.Scheme != "https", target.Hostname() == "":
		return nil, invalid("work.http.url is not an absolute http or https address")
	case target.User != nil:
		return nil, invalid("work.http.url must hold no user name or password")
	}
	return target, nil
}

func (p *plan) method() string {
	switch {
	case p.work.Method != "":
		return p.work.Method
	case p.work.Body != nil || p.work.CloudEvent != nil:
		return http.MethodPost
	default:
		return http.MethodGet
	}
}

// content returns what is sent and its content type, both "" for nothing.
func (p *plan) content() (content, contentType string, err error) {
	switch {
	case p.work.CloudEvent != nil:
		return p.cloudEvent()
	case p.work.Body == nil || *p.work.Body == "":
		return "", "", nil
	case json.Valid([]byte(*p.work.Body)):
		return *p.work.Body, "application/json", nil
	default:
		return *p.work.Body, "text/plain; charset=utf-8", nil
	}
}

// white is cut off both ends of a header's value: it is no part of it, and a Secret made from a file often ends in it.
const white = " \t\r\n"

// header returns the headers of the call, or a *executor.Rejected, whose text holds no value. What the manager sets wins
// over what the run asks for; the content type of a plain body and the User-Agent are the run's to set.
func (p *plan) header(contentType string, secrets map[batchv1alpha1.SecretKeyRef]string) (http.Header, error) {
	header := http.Header{}
	for _, h := range p.work.Headers {
		value := ""
		switch {
		case h.Value != nil:
			value = *h.Value
		case h.SecretKeyRef != nil:
			value = secrets[*h.SecretKeyRef]
		}
		header.Add(h.Name, strings.Trim(value, white))
	}
	if contentType != "" && (p.work.CloudEvent != nil || header.Get(headerContentType) == "") {
		header.Set(headerContentType, contentType)
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", "reprise/"+version.String())
	}
	if p.traceparent != "" && header.Get(HeaderTraceparent) == "" {
		header.Set(HeaderTraceparent, p.traceparent)
	}
	header.Set(HeaderIdempotencyKey, p.chain.IdempotencyKey)
	header.Set(HeaderRun, p.key.String())
	header.Set(HeaderAttempt, strconv.Itoa(int(p.attempt)))
	return header, validate(header)
}

func validate(header http.Header) error {
	for name, values := range header {
		if !httpguts.ValidHeaderFieldName(name) {
			return invalid("%q is not a valid name of a header", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return invalid("the value of header %s holds characters that are not allowed in a header", name)
			}
		}
	}
	return nil
}

// sendOnce keeps the transport from repeating the request on its own when a kept connection breaks under it: the server may
// have begun the work. The transport repeats GET and HEAD, and whatever has an Idempotency-Key spelled just like that, but
// never a request whose body it cannot make anew. Names of headers are the same in any spelling to everybody else.
func sendOnce(request *http.Request) {
	for _, name := range []string{HeaderIdempotencyKey, "X-" + HeaderIdempotencyKey} {
		if values, ok := request.Header[name]; ok {
			delete(request.Header, name)
			request.Header[strings.ToLower(name)] = values
		}
	}
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		if request.Body == nil {
			request.Body = io.NopCloser(strings.NewReader(""))
		}
		request.GetBody = nil
	}
}

// invalid returns a *executor.Rejected for work that cannot be sent.
func invalid(format string, args ...any) error {
	return &executor.Rejected{Reason: batchv1alpha1.ReasonInvalidWork, Message: fmt.Sprintf(format, args...)}
}

// plain returns the text of an error without the URL that the HTTP client puts into it.
func plain(err error) string {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	text, _ := printable(err.Error(), maxErrorText)
	return text
}
