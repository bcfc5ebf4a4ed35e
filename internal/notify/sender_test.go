// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
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
	e, err := Event(OfRun(retryRun()), EventFailed)
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
	g.Expect(loopbackSender(t).Send(t.Context(), server.URL+"/events?token=hidden", sent)).To(Succeed())

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
		http.StatusFound:               "answered 302 Found",
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
			err := loopbackSender(t).Send(t.Context(), server.URL, someEvent(t))
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
	g.Expect(sender.Send(t.Context(), server.URL, someEvent(t))).To(MatchError(server.URL + " did not answer within 50ms"))
}

func TestASenderThatIsStoppedStopsAtOnceAndDoesNotBlameTheReceiver(t *testing.T) {
	g := NewWithT(t)
	release, arrived := make(chan struct{}), make(chan struct{})
	server := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-release }))
	defer close(release)
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-arrived; stop() }()
	err := loopbackSender(t).Send(ctx, server.URL, someEvent(t))
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
	g.Expect(sender.Send(t.Context(), "http://receiver.test", someEvent(t))).To(Succeed())
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
	g.Expect(loopbackSender(t).Send(t.Context(), server.URL, someEvent(t))).To(Succeed())
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
		"a bad port":             {allowing, "http://receiver.test:hidden/", "cannot be parsed"},
		"a bad escape":           {allowing, "http://receiver.test/%hidden", "cannot be parsed"},
		"another scheme":         {allowing, "ftp://receiver.test/hidden", "unsupported protocol scheme"},
		"no host":                {allowing, "http:///hidden", "no Host"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := c.sender.Send(t.Context(), c.url, someEvent(t))
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("hidden"))
			g.Expect(strings.Count(err.Error(), "\n")).To(BeZero())
		})
	}
}
