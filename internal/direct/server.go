// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// maxPause is the longest time before what failed is tried again.
	maxPause = 30 * time.Second

	idleTimeout    = 60 * time.Second
	maxHeaderBytes = 64 << 10
	// pingTimeout finds a client of HTTP/2 that is gone without a word. (The kernel does it for HTTP/1.)
	pingTimeout = 15 * time.Second
	// streamBuffer and connectionBuffer are what HTTP/2 clients may send ahead. A waiting upload fills its stream's, and should
	// leave room for others of its connection.
	streamBuffer     = 64 << 10
	connectionBuffer = 3 << 20
)

// server is the listening side of a front.
type server struct {
	// limit is how many connections there may be at once. More wait to be accepted.
	limit int

	mu       sync.Mutex
	listener net.Listener // nil: there is none
	bound    net.Addr     // nil as long as none was taken
	http     *http.Server
}

// Listen takes the address, unless that was done before. Nothing is accepted before Start.
func (f *Front) Listen() error {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	if f.server.listener != nil {
		return nil
	}
	address := f.Address
	if f.server.bound != nil { // as before, should it be any that is free
		address = f.server.bound.String()
	}
	l, err := net.Listen("tcp", address) //nolint:noctx // it does not wait
	if err != nil {
		return fmt.Errorf("direct access cannot listen on %s: %w", address, err)
	}
	f.server.listener, f.server.bound = netutil.LimitListener(l, f.server.limit), l.Addr()
	return nil
}

// unlisten gives the address back.
func (f *Front) unlisten() {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	if f.server.listener != nil {
		_ = f.server.listener.Close()
		f.server.listener = nil
	}
}

// Bound returns the address that was taken, nil if none was.
func (f *Front) Bound() net.Addr {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	return f.server.bound
}

// Start serves until ctx ends, and then drains. It listens first: an address that is taken is an error at once, and so is a
// certificate that cannot be read. What goes wrong once it serves is tried again: the process has more to do.
func (f *Front) Start(ctx context.Context) error {
	if err := f.Listen(); err != nil {
		return err
	}
	defer f.unlisten()
	cert, err := f.certificate()
	if err != nil {
		return err
	}
	informer, err := f.Informers.GetInformer(ctx, &batchv1alpha1.DirectReservation{})
	if err != nil {
		return fmt.Errorf("watching reservations for direct access: %w", err)
	}
	registration, err := informer.AddEventHandler(f.inboxes.handler())
	if err != nil {
		return fmt.Errorf("watching reservations for direct access: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	if _, err := f.Informers.GetInformer(ctx, &batchv1alpha1.JobQueue{}); err != nil {
		return fmt.Errorf("watching queues for direct access: %w", err)
	}
	f.serveUntil(ctx, cert)
	return nil
}

// serveUntil serves until ctx ends, or Drain was called.
func (f *Front) serveUntil(ctx context.Context, cert certificate) {
	s := f.newServer(cert)
	f.server.mu.Lock()
	f.server.http = s
	f.server.mu.Unlock()
	f.Log.Info("serving direct access", "address", f.Bound().String())

	working, stop := context.WithCancel(ctx)
	defer stop()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		f.persist(working, "direct access cannot be served", func(context.Context) error { return f.accept(s) })
	}()
	if cert.watch != nil {
		go f.persist(working, "the certificate of direct access is not watched", cert.watch)
	}
	select {
	case <-ctx.Done():
	case <-drained:
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.DrainTimeout)
	defer cancel()
	f.Drain(limit)
}

// accept serves until the server is closed, or the listener fails; then the next call takes the address again.
func (f *Front) accept(s *http.Server) error {
	if err := f.Listen(); err != nil {
		return err
	}
	f.server.mu.Lock()
	l := f.server.listener
	f.server.mu.Unlock()
	err := s.ServeTLS(l, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	f.unlisten()
	return err
}

// persist does something until it ends without an error, or ctx does. Between failures it waits for longer and longer.
func (f *Front) persist(ctx context.Context, problem string, do func(context.Context) error) {
	for pause := f.timing.pause; ; pause = min(2*pause, maxPause) {
		begun := f.Clock.Now()
		err := do(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if f.Clock.Since(begun) > maxPause {
			pause = f.timing.pause
		}
		f.Log.Error(err, problem, "againAfter", pause.String())
		if !f.rest(ctx, pause) {
			return
		}
	}
}

func (f *Front) newServer(cert certificate) *http.Server {
	return &http.Server{
		Handler:           f.Handler(),
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get},
		ReadHeaderTimeout: f.timing.header,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(details{f.Log}, "", 0),
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: pingTimeout, PingTimeout: pingTimeout, WriteByteTimeout: f.timing.write,
			MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connectionBuffer,
		},
	}
}

// details makes what the server says of connections a detail: anybody could fill the log with bad handshakes.
type details struct{ log logr.Logger }

// Write implements io.Writer.
func (d details) Write(line []byte) (int, error) {
	d.log.V(1).Info("connection", "message", string(line))
	return len(line), nil
}

// Drain takes no more requests, turns away those that only wait, and gives those that have their slot until ctx ends. Then it cuts what is left and waits until all slots
// were given back, for some seconds at most. It may be called before the context of Start ends, and more than once.
func (f *Front) Drain(ctx context.Context) {
	f.gate.close()
	f.strangers.close()
	f.turnAway()
	f.server.mu.Lock()
	s := f.server.http
	f.server.mu.Unlock()
	own, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if s != nil {
			_ = s.Shutdown(own) // it waits for what is in flight
		}
	}()
	if !f.gate.empty(ctx) {
		f.finish(own)
	}
	answered, cancel := context.WithTimeout(own, f.timing.linger)
	defer cancel()
	select {
	case <-closed:
	case <-answered.Done(): // what is still open is idle, or as good as that
	}
	if s != nil {
		_ = s.Close()
	}
}

// finish cuts the requests in flight, and waits until all slots were given back.
func (f *Front) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.timing.cut)
	defer cancel()
	f.Log.Info("direct access is ending: cutting the requests in flight")
	f.cutAll()
	if !f.gate.empty(ctx) {
		f.Log.Info("direct access has ended before all reservations were released; those left expire")
	}
}
