// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	ceclient "github.com/cloudevents/sdk-go/v2/client"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"reprise.dev/reprise/internal/egress"
)

// loopbackSender sends through the manager's own kind of client, which here may call this machine.
func loopbackSender(t *testing.T) *Sender {
	t.Helper()
	client := egress.NewClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	t.Cleanup(client.CloseIdleConnections)
	return &Sender{Client: client}
}

func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func someEvent(t *testing.T) event.Event {
	t.Helper()
	e, err := Event(OfRun(retryRun()), eventFailed)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return e
}

func TestTheReceiverOfTheCloudEventsSDKGetsTheEventThatWasSent(t *testing.T) {
	g := NewWithT(t)
	protocol, err := cehttp.New()
	g.Expect(err).NotTo(HaveOccurred())
	received := make(chan event.Event, 1)
	receiver, err := ceclient.NewHTTPReceiveHandler(t.Context(), protocol, func(e event.Event) { received <- e })
	g.Expect(err).NotTo(HaveOccurred())
	requests := make(chan *http.Request, 1)
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		receiver.ServeHTTP(w, request)
		requests <- request
	}))

	sent := someEvent(t)
	g.Expect(loopbackSender(t).Send(t.Context(), Letter{Address: server.URL + "/events?token=hidden", Event: sent})).To(Succeed())

	got := <-received
	g.Expect(got.Validate()).To(Succeed())
	g.Expect(got.Context).To(Equal(sent.Context))
	g.Expect(got.Data()).To(MatchJSON(sent.Data()))
	request := <-requests
	g.Expect(request.Method).To(Equal(http.MethodPost))
	g.Expect(request.URL.RequestURI()).To(Equal("/events?token=hidden"))
	g.Expect(request.Header.Get("Content-Type")).To(Equal("application/cloudevents+json"))
	g.Expect(request.UserAgent()).To(HavePrefix("reprise/"))
	g.Expect(request.Header).NotTo(HaveKey("Idempotency-Key"))
}

func TestOnlyA2xxStatusAcknowledges(t *testing.T) {
	cases := map[int]string{
		http.StatusOK:                  "",
		http.StatusAccepted:            "",
		http.StatusNoContent:           "",
		http.StatusFound:               "answered 302 Found; redirects are not followed: the receiver's url must be the final address",
		http.StatusNotModified:         "answered 304 Not Modified",
		http.StatusBadRequest:          "answered 400 Bad Request",
		http.StatusGone:                "answered 410 Gone",
		http.StatusServiceUnavailable:  "answered 503 Service Unavailable",
		http.StatusTooManyRequests:     "answered 429 Too Many Requests",
		http.StatusInternalServerError: "answered 500 Internal Server Error",
	}
	for status, want := range cases {
		t.Run(http.StatusText(status), func(t *testing.T) {
			g := NewWithT(t)
			calls := 0
			server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls++
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
			}))
			err := loopbackSender(t).Send(t.Context(), Letter{Address: server.URL, Event: someEvent(t)})
			if want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(server.URL + " " + want))
			}
			g.Expect(calls).To(Equal(1))
		})
	}
}

func TestAReceiverThatDoesNotAnswerIsGivenUpAtTheTimeout(t *testing.T) {
	g := NewWithT(t)
	release := make(chan struct{})
	server := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer close(release)
	sender := loopbackSender(t)
	sender.Timeout = 50 * time.Millisecond
	g.Expect(sender.Send(t.Context(), Letter{Address: server.URL, Event: someEvent(t)})).To(MatchError(server.URL + " did not answer within 50ms"))
}

func TestASenderThatIsStoppedStopsAtOnceAndDoesNotBlameTheReceiver(t *testing.T) {
	g := NewWithT(t)
	release, arrived := make(chan struct{}), make(chan struct{})
	server := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-release }))
	defer close(release)
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-arrived; stop() }()
	err := loopbackSender(t).Send(ctx, Letter{Address: server.URL, Event: someEvent(t)})
	g.Expect(err).To(MatchError(context.Canceled))
}

// endless is a response body that ends only with the request.
type endless struct{ ctx context.Context }

func (e endless) Read([]byte) (int, error) { <-e.ctx.Done(); return 0, e.ctx.Err() }
func (e endless) Close() error             { return nil }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAnAnswerCountsThoughItsBodyNeverEnds(t *testing.T) {
	g := NewWithT(t)
	sender := &Sender{Timeout: time.Millisecond, Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: endless{r.Context()}, Request: r}, nil
	})}}
	g.Expect(sender.Send(t.Context(), Letter{Address: "http://receiver.test", Event: someEvent(t)})).To(Succeed())
}

func TestNoMoreOfAResponseIsReadThanTheBound(t *testing.T) {
	g := NewWithT(t)
	written := make(chan int, 1)
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		total := 0
		for {
			n, err := w.Write(make([]byte, 1<<20))
			total += n
			if err != nil {
				written <- total
				return
			}
		}
	}))
	g.Expect(loopbackSender(t).Send(t.Context(), Letter{Address: server.URL, Event: someEvent(t)})).To(Succeed())
	// The buffers of two sockets take their part too.
	g.Expect(<-written).To(BeNumerically("<", 64<<20))
}

func TestWhatWentWrongShowsNoMoreOfTheAddressThanItsHost(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	broken := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, _ := http.NewResponseController(w).Hijack()
		_ = connection.Close()
	}))

	allowing := loopbackSender(t)
	refusing := &Sender{Client: egress.NewClient(nil)}
	cases := map[string]struct {
		sender *Sender
		url    string
		want   string
	}{
		"a closed port":          {allowing, "http://u:hidden@" + closed.Listener.Addr().String() + "/hidden?token=hidden", "connection refused"},
		"a connection cut short": {allowing, broken.URL + "/hidden?token=hidden", "EOF"},
		"a forbidden address":    {refusing, broken.URL + "/hidden?token=hidden", "--allow-outgoing-cidr"},
		"a forbidden name":       {refusing, strings.Replace(broken.URL, "127.0.0.1", "localhost", 1) + "/hidden?token=hidden", "which is a loopback address"},
		"a link-local address":   {allowing, "http://169.254.169.254/hidden", "169.254.169.254 is a link-local address"},
		"a bad port":             {allowing, "http://receiver.test:hidden/", "cannot be parsed"},
		"a bad escape":           {allowing, "http://receiver.test/%hidden", "cannot be parsed"},
		"another scheme":         {allowing, "ftp://receiver.test/hidden", "unsupported protocol scheme"},
		"no host":                {allowing, "http:///hidden", "no Host"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := c.sender.Send(t.Context(), Letter{Address: c.url, Event: someEvent(t)})
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("hidden"))
			g.Expect(strings.Count(err.Error(), "\n")).To(BeZero())
		})
	}
}

func TestWhatAnAnswerAsksForIsHeard(t *testing.T) {
	now := time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)
	cases := map[string]struct {
		status     int
		retryAfter string
		gone       bool
		after      time.Duration
	}{
		"wants no more":                      {http.StatusGone, "60", true, 0},
		"too many, in seconds":               {http.StatusTooManyRequests, "60", false, time.Minute},
		"unavailable, until a date":          {http.StatusServiceUnavailable, "Mon, 02 Nov 2026 03:06:05 GMT", false, 2 * time.Minute},
		"until a date that is past":          {http.StatusServiceUnavailable, "Mon, 02 Nov 2026 03:00:00 GMT", false, 0},
		"until a date far away":              {http.StatusServiceUnavailable, "Mon, 02 Nov 2099 03:00:00 GMT", false, time.Hour},
		"for far too long":                   {http.StatusTooManyRequests, "4000000000", false, time.Hour},
		"for longer than can be written":     {http.StatusTooManyRequests, "99999999999999999999", false, 0},
		"for less than nothing":              {http.StatusTooManyRequests, "-5", false, 0},
		"in a way that nobody understands":   {http.StatusTooManyRequests, "soon", false, 0},
		"too many, and not for how long":     {http.StatusTooManyRequests, "", false, 0},
		"an error that is no question of it": {http.StatusInternalServerError, "60", false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(c.status)
			}))
			sender := loopbackSender(t)
			sender.Clock = clocktesting.NewFakePassiveClock(now)
			err := sender.Send(t.Context(), Letter{Address: server.URL, Event: someEvent(t)})
			var failure *Failure
			g.Expect(errors.As(err, &failure)).To(BeTrue())
			g.Expect(failure.Gone).To(Equal(c.gone))
			g.Expect(failure.After).To(Equal(c.after))
			g.Expect(failure.Unsigned).To(BeFalse())
		})
	}
}

func TestARedirectToAnAddressThatMustNotBeCalledIsNotFollowed(t *testing.T) {
	g := NewWithT(t)
	server := serve(t, http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusTemporaryRedirect))
	err := loopbackSender(t).Send(t.Context(), Letter{Address: server.URL, Event: someEvent(t)})
	g.Expect(err).To(MatchError(ContainSubstring("answered 307 Temporary Redirect; redirects are not followed")))
	g.Expect(err.Error()).NotTo(ContainSubstring("169.254"))
}
