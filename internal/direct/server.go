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

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	headerTimeout  = 10 * time.Second
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
	mu       sync.Mutex
	listener net.Listener
	http     *http.Server
}

// Listen takes the address, unless that was done before. Nothing is accepted before Start.
func (f *Front) Listen() error {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	if f.server.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", f.Address) //nolint:noctx // it does not wait
	if err != nil {
		return fmt.Errorf("direct access cannot listen on %s: %w", f.Address, err)
	}
	f.server.listener = l
	return nil
}

// Bound returns the address that was taken, nil if none was.
func (f *Front) Bound() net.Addr {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	if f.server.listener == nil {
		return nil
	}
	return f.server.listener.Addr()
}

// Start serves until ctx ends, and then drains. It listens first: an address that is taken is an error at once.
func (f *Front) Start(ctx context.Context) error {
	if err := f.Listen(); err != nil {
		return err
	}
	defer func() { _ = f.server.listener.Close() }()
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
	return f.serveUntil(ctx, cert)
}

// serveUntil serves until ctx ends or the listener fails.
func (f *Front) serveUntil(ctx context.Context, cert certificate) error {
	s := f.newServer(cert)
	f.server.mu.Lock()
	f.server.http = s
	f.server.mu.Unlock()
	f.Log.Info("serving direct access", "address", f.Bound().String())

	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- s.ServeTLS(f.server.listener, "", "") }()
	if cert.watch != nil {
		go func() { ended <- cert.watch(working) }()
	}
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-ended:
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.DrainTimeout)
	defer cancel()
	f.Drain(limit)
	if failure != nil && !errors.Is(failure, http.ErrServerClosed) {
		return fmt.Errorf("serving direct access: %w", failure)
	}
	return nil
}

func (f *Front) newServer(cert certificate) *http.Server {
	return &http.Server{
		Handler:           f.Handler(),
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get},
		ReadHeaderTimeout: headerTimeout,
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

// Drain takes no more requests and gives those in flight until ctx ends. Then it cuts what is left and waits until all slots
// were given back, for some seconds at most. It may be called before the context of Start ends, and more than once.
func (f *Front) Drain(ctx context.Context) {
	f.gate.close()
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
