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
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

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
}

// Send posts the event to the address, in structured mode. It returns nil if the receiver acknowledged it with a 2xx
// status. The error is for a person to read; of the address it shows the scheme and host alone, since paths and queries
// of webhooks are often secret.
func (s *Sender) Send(ctx context.Context, address string, e event.Event) error {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	bound, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	request, err := newRequest(bound, address, e)
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
		return fmt.Errorf("%s answered %d %s", target, response.StatusCode, http.StatusText(response.StatusCode))
	}
	return nil
}

func newRequest(ctx context.Context, address string, e event.Event) (*http.Request, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		// What a parser says of an address may quote any part of it.
		return nil, errors.New("the url of the receiver cannot be parsed")
	}
	request.Header.Set("Content-Type", event.ApplicationCloudEventsJSON)
	request.Header.Set("User-Agent", "reprise/"+version.String())
	// Receivers take an event more than once, so the transport may repeat it when a kept connection turns out to be closed.
	// A header present with no value tells it so and is not sent.
	request.Header["Idempotency-Key"] = nil
	return request, nil
}

// withoutAddress takes off the frame that net/http puts around its errors, which shows the whole address.
func withoutAddress(err error) error {
	if framed, ok := errors.AsType[*url.Error](err); ok {
		return framed.Err
	}
	return err
}
