// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func TestARefusedAddressIsNeverConnectedTo(t *testing.T) {
	server, untouched := listener(t)
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]", "localhost"} {
		_, err := get(t, client(t, newTransport(nil, nil)), "http://"+net.JoinHostPort(strings.Trim(host, "[]"), port(server.Addr())))
		var forbidden *Forbidden
		if !errors.As(err, &forbidden) {
			t.Fatalf("%s: %v", host, err)
		}
		if forbidden.Kind != "loopback" || forbidden.Host != strings.Trim(host, "[]") {
			t.Errorf("%s: %+v", host, forbidden)
		}
	}
	untouched()
}

func TestALinkLocalTargetIsRefusedByItsAddress(t *testing.T) {
	_, err := get(t, client(t, newTransport(nil, nil)), "http://169.254.169.254/latest/meta-data/")
	var forbidden *Forbidden
	if !errors.As(err, &forbidden) {
		t.Fatal(err)
	}
	want := "169.254.169.254 is a link-local address, which the manager does not call unless its flag --allow-outgoing-cidr allows it"
	if forbidden.Error() != want {
		t.Errorf("got %q\nwant %q", forbidden, want)
	}
}

func TestANameIsJudgedByWhatItResolvesToAtTheMoment(t *testing.T) {
	server, untouched := listener(t)
	names := nameServer(t, map[string][]string{"metadata.test.": {"169.254.169.254"}, "here.test.": {"127.0.0.1"}})
	client := client(t, newTransport(nil, names))
	for host, want := range map[string]string{
		"metadata.test": "metadata.test resolves to 169.254.169.254, which is a link-local address",
		"here.test":     "here.test resolves to 127.0.0.1, which is a loopback address",
	} {
		_, err := get(t, client, "http://"+net.JoinHostPort(host, port(server.Addr())))
		var forbidden *Forbidden
		if !errors.As(err, &forbidden) || !strings.HasPrefix(forbidden.Error(), want) {
			t.Errorf("%s: %v", host, err)
		}
	}
	untouched()
}

func TestANameWithOneRefusedAddressIsReachedAtItsOther(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	names := nameServer(t, map[string][]string{"both.test.": {"169.254.169.254", "127.0.0.1"}})
	got, err := get(t, client(t, newTransport(loopback, names)), "http://"+net.JoinHostPort("both.test", port(server.Listener.Addr())))
	if err != nil || got.code != http.StatusOK {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestARedirectIsReturnedAndNotFollowed(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, "http://169.254.169.254/", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	c := NewClient(loopback)
	defer c.CloseIdleConnections()
	got, err := get(t, c, server.URL)
	if err != nil || got.code != http.StatusTemporaryRedirect || calls.Load() != 1 {
		t.Errorf("%+v, %v after %d calls", got, err, calls.Load())
	}
}

func TestNoProxyIsUsedSinceTheRuleWouldSeeItsAddressOnly(t *testing.T) {
	if newTransport(nil, nil).Proxy != nil {
		t.Error("the transport may use a proxy")
	}
}

func TestAnEncryptedCallSpeaksHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	transport := newTransport(loopback, nil)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	got, err := get(t, client(t, transport), server.URL)
	if err != nil || got.body != "HTTP/2.0" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAResponseWithHugeHeadersIsCutOff(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", maxHeaderBytes))
	}))
	defer server.Close()
	_, err := get(t, client(t, newTransport(loopback, nil)), server.URL)
	var failure *url.Error
	if !errors.As(err, &failure) || !strings.Contains(err.Error(), "headers exceeded") {
		t.Errorf("%v", err)
	}
}

// response is what get got.
type response struct {
	code int
	body string
}

func get(t *testing.T, c *http.Client, target string) (response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Do(request)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	return response{code: r.StatusCode, body: string(body)}, err
}

func client(t *testing.T, transport *http.Transport) *http.Client {
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func port(a net.Addr) string {
	_, p, err := net.SplitHostPort(a.String())
	if err != nil {
		panic(err)
	}
	return p
}

// listener returns a listener and a check that nobody connected to it: a connection on loopback is in the listener's
// backlog before the client's call returns.
func listener(t *testing.T) (net.Listener, func()) {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, func() {
		t.Helper()
		if err := l.SetDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if c, err := l.Accept(); err == nil {
			_ = c.Close()
			t.Error("the refused address was connected to")
		}
	}
}

// nameServer starts a DNS server on loopback and returns a resolver that asks it alone.
func nameServer(t *testing.T, names map[string][]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply, err := answer(buf[:n], names); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

func answer(query []byte, names map[string][]string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	for _, q := range m.Questions {
		addresses, known := names[q.Name.String()]
		if !known {
			m.RCode = dnsmessage.RCodeNameError
		}
		if q.Type != dnsmessage.TypeA {
			continue
		}
		for _, a := range addresses {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
			})
		}
	}
	return m.Pack()
}
