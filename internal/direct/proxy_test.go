// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

// through starts a server that passes each request on to the address.
func through(t *testing.T, address string, passed chan<- error) *httptest.Server {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := newBody(r, http.NewResponseController(w), 1<<20, newBudget(0), newBench(t).clock, func(error) {})
		defer b.stop(0)
		c := &call{to: to, reservation: "shell", added: http.Header{"Host": {"inner.test"}}, body: b, egress: transport}
		passed <- c.pass(r.Context(), w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		transport.CloseIdleConnections()
	})
	return s
}

func send(t *testing.T, method, address string, header http.Header) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	return http.DefaultClient.Do(r)
}

// TestARequestIsSentOnceThoughItsConnectionBreaks lets a kept connection break under a request that the transport would repeat.
func TestARequestIsSentOnceThoughItsConnectionBreaks(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		t.Run(method, func(t *testing.T) {
			g := NewWithT(t)
			l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
			g.Expect(err).NotTo(HaveOccurred())
			var requests atomic.Int32
			done := make(chan struct{})
			t.Cleanup(func() { _ = l.Close(); <-done })
			go func() {
				defer close(done)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					from := bufio.NewReader(conn)
					for range 2 { // the second request of a connection gets no answer
						if _, err := http.ReadRequest(from); err != nil {
							break
						}
						if requests.Add(1)%2 == 1 {
							_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
						}
					}
					_ = conn.Close()
				}
			}()
			passed := make(chan error, 2)
			s := through(t, "http://"+l.Addr().String(), passed)
			header := http.Header{HeaderIdempotencyKey: {"once"}, "X-Idempotency-Key": {"once"}}
			for range 2 {
				if response, err := send(t, method, s.URL, header); err == nil {
					_ = response.Body.Close()
				}
			}
			g.Expect(await(t, "the first", passed)).To(Succeed())
			g.Expect(await(t, "the second", passed)).To(HaveOccurred())
			g.Expect(requests.Load()).To(Equal(int32(2)))
		})
	}
}

func TestARequestWithoutABodyHasNone(t *testing.T) {
	g := NewWithT(t)
	type seen struct {
		length int64
		coding []string
		host   string
		key    string
	}
	got := make(chan seen, 1)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- seen{r.ContentLength, r.TransferEncoding, r.Host, r.Header.Get(HeaderIdempotencyKey)}
	}))
	defer up.Close()
	passed := make(chan error, 1)
	s := through(t, up.URL, passed)
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		response, err := send(t, method, s.URL, http.Header{HeaderIdempotencyKey: {"once"}})
		g.Expect(err).NotTo(HaveOccurred())
		_ = response.Body.Close()
		g.Expect(<-passed).To(Succeed())
		g.Expect(<-got).To(Equal(seen{host: "inner.test", key: "once"}))
	}
}

func TestAnAnswerThatBreaksOffNeverLooksWhole(t *testing.T) {
	g := NewWithT(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer up.Close()
	passed := make(chan error, 1)
	s := through(t, up.URL, passed)
	response, err := send(t, http.MethodGet, s.URL, nil)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	g.Expect(await(t, "the end", passed)).To(MatchError(errBroken))
}

func TestAnUpstreamCannotSwitchProtocolsUnasked(t *testing.T) {
	g := NewWithT(t)
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	g.Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}()
	defer func() { _ = l.Close(); <-done }()
	passed := make(chan error, 1)
	s := through(t, "http://"+l.Addr().String(), passed)
	response, err := send(t, http.MethodGet, s.URL, nil)
	g.Expect(err).NotTo(HaveOccurred())
	_ = response.Body.Close()
	g.Expect((<-passed).Error()).To(ContainSubstring("switches protocols"))
}

func TestWhatIsOursStaysWithUs(t *testing.T) {
	g := NewWithT(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			w.Header().Add("Seen", name)
		}
		w.Header().Set("Reprise-Forged", "x")
		w.Header().Set("Set-Cookie", "a=b")
	}))
	defer up.Close()
	passed := make(chan error, 1)
	s := through(t, up.URL, passed)
	response, err := send(t, http.MethodGet, s.URL, http.Header{
		"Authorization": {"Bearer one"}, "Cookie": {"a=b"}, "Reprise-Type": {"x"}, "Proxy-Authorization": {"x"}, "X-Own": {"x"},
		"Connection": {"X-Hop"}, "X-Hop": {"x"}, "Forwarded": {"for=x"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	_ = response.Body.Close()
	g.Expect(response.Header).NotTo(Or(HaveKey("Reprise-Forged"), HaveKey("Set-Cookie")))
	g.Expect(response.Header.Get(HeaderReservation)).To(Equal("shell"))
	seen := strings.Join(response.Header.Values("Seen"), " ")
	for _, name := range []string{"Authorization", "Cookie", "Reprise-Type", "X-Hop"} {
		g.Expect(response.Header.Values("Seen")).NotTo(ContainElement(name), seen)
	}
	g.Expect(response.Header.Values("Seen")).To(ContainElements("X-Own", HeaderReservation, "X-Forwarded-For"))
}
