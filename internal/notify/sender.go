// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/utils/clock"

	"reprise.dev/reprise/internal/version"
)

const (
	// defaultTimeout bounds one delivery from the first packet to the last byte that is read.
	defaultTimeout = 10 * time.Second
	// maxResponse is how much of a response is read, in bytes, so that its connection can be used again. No more than the
	// status matters.
	maxResponse = 64 << 10
)

// Sender posts events to receivers. It is safe for concurrent use.
type Sender struct {
	// Client makes the calls. It must follow no redirect, use no proxy, and refuse forbidden addresses when it dials.
	Client *http.Client
	// Timeout bounds one delivery. Default: 10 s.
	Timeout time.Duration
	// Clock dates the signatures, and is what dates in answers are compared with. Default: the time of day.
	Clock clock.PassiveClock
}

// Letter is an event for one receiver.
type Letter struct {
	// Address is the url of the receiver.
	Address string
	// Event is what is sent.
	Event event.Event
	// Keys sign it. None: it is not signed.
	Keys []SigningKey
}

// Send posts the letter, its event in structured mode. It returns nil if the receiver acknowledged it with a 2xx status. The
// error is for a person to read, and a *Failure if the receiver has answered; of the address it shows the scheme and host
// alone, since paths and queries of webhooks are often secret.
func (s *Sender) Send(ctx context.Context, l Letter) error {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	bound, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	request, err := newRequest(bound, l, s.now())
	if err != nil {
		return err
	}
	target := request.URL.Scheme + "://" + request.URL.Host
	response, err := s.Client.Do(request)
	if err != nil {
		if ctx.Err() == nil && bound.Err() != nil {
			return fmt.Errorf("%s did not answer within %s", target, timeout)
		}
		return fmt.Errorf("%s: %w", target, withoutAddress(err))
	}
	defer func() { _ = response.Body.Close() }()
	// The status is the answer: whether the rest of the response arrives changes nothing.
	_, _ = io.CopyN(io.Discard, response.Body, maxResponse)

	if response.StatusCode < 200 || response.StatusCode > 299 {
		return s.refusal(target, response)
	}
	return nil
}

func (s *Sender) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock.Now()
}

// refusal tells what an answer that acknowledges nothing means.
func (s *Sender) refusal(target string, response *http.Response) *Failure {
	f := &Failure{Text: fmt.Sprintf("%s answered %d %s", target, response.StatusCode, http.StatusText(response.StatusCode))}
	switch status := response.StatusCode; {
	case status == http.StatusGone:
		f.Gone = true
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		f.After = retryAfter(response.Header.Get("Retry-After"), s.now())
	case status >= 300 && status <= 399 && status != http.StatusNotModified:
		f.Text += "; redirects are not followed: the receiver's url must be the final address"
	}
	return f
}

// retryAfter reads the header of that name, seconds or a date: how long to leave the server alone, 0 if it does not say. It
// is bounded, so that a server that errs is not left alone for good.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, longestDelay)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), longestDelay)
}

func newRequest(ctx context.Context, l Letter, now time.Time) (*http.Request, error) {
	body, err := json.Marshal(l.Event)
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.Address, bytes.NewReader(body))
	if err != nil {
		// What a parser says of an address may quote any part of it.
		return nil, errors.New("the url of the receiver cannot be parsed")
	}
	request.Header.Set("Content-Type", event.ApplicationCloudEventsJSON)
	request.Header.Set("User-Agent", "reprise/"+version.String())
	// Receivers take an event more than once, so the transport may repeat it when a kept connection turns out to be closed.
	// A header present with no value tells it so and is not sent.
	request.Header["Idempotency-Key"] = nil
	if err := sign(request, l.Event.ID(), body, l.Keys, now); err != nil {
		return nil, err
	}
	return request, nil
}

// withoutAddress takes off the frame that net/http puts around its errors, which shows the whole address.
func withoutAddress(err error) error {
	if framed, ok := errors.AsType[*url.Error](err); ok {
		return framed.Err
	}
	return err
}
