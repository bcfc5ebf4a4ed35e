// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	// idleTimeout is short on purpose. A kept connection is for the next of many calls made at once. One that idles until
	// its server closes it makes the next call fail for no reason of its own; common servers close after 2 s and more.
	idleTimeout = time.Second
	// idlePerHost suits hundreds of calls at once to one service.
	idlePerHost = 512
	idleTotal   = 2048
	// maxHeaderBytes of a response. The default, 10 MiB for each of hundreds of calls, would be too much memory.
	maxHeaderBytes = 256 << 10
	// pingTimeout finds an HTTP/2 connection whose other end is gone before more calls are put on it.
	pingTimeout = 15 * time.Second
)

// NewClient returns a client that calls no refused address but those in allowed, uses no proxy (the rule would see the
// proxy's address instead of the target's) and follows no redirect: the redirecting response is what the call returns.
// It has no timeout beyond those for connecting: bound each request by its context.
//
// An error because of the address has a *Forbidden in its chain. The text of the client's errors may hold the whole URL.
func NewClient(allowed []netip.Prefix) *http.Client {
	return &http.Client{
		Transport:     newTransport(allowed, nil),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// newTransport makes the transport; a nil resolver is the system's.
func newTransport(allowed []netip.Prefix, resolver *net.Resolver) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            guarded(rule{allowed: allowed}, resolver),
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout},
		TLSHandshakeTimeout:    handshakeTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           idleTotal,
		MaxIdleConnsPerHost:    idlePerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
		// What the server sent is what is counted and kept: a small answer must not unpack into a huge one.
		DisableCompression: true,
	}
}

// guarded returns a dial function that asks the rule between the resolution of a name and the connection, for each
// address that the name has.
func guarded(r rule, resolver *net.Resolver) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		d := net.Dialer{
			Timeout:  dialTimeout,
			Resolver: resolver,
			Control: func(_, resolved string, _ syscall.RawConn) error {
				target, err := netip.ParseAddrPort(resolved)
				if err != nil {
					return err
				}
				if kind := r.kind(target.Addr()); kind != "" {
					return &Forbidden{Host: host, Addr: target.Addr(), Kind: kind}
				}
				return nil
			},
		}
		return d.DialContext(ctx, network, address)
	}
}
