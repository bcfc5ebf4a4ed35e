// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Interrupted is why the context of a command ended: a signal.
type Interrupted struct{ Signal os.Signal }

// Error implements error.
func (i *Interrupted) Error() string {
	if i.Signal == os.Interrupt {
		return "interrupted"
	}
	return "ended by a signal: " + i.Signal.String()
}

func (i *Interrupted) code() int {
	if number, ok := i.Signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return ExitInterrupted
}

// signals ends a context when the process is asked to end.
type signals struct {
	mu     sync.Mutex
	caught chan os.Signal
	done   chan struct{}
}

// watch returns a context that ends with the first signal. The second ends the process at once, whatever it does.
func (s *signals) watch(ctx context.Context, exit func(code int)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caught, s.done = make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(s.caught, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func(caught <-chan os.Signal, done <-chan struct{}) {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case got := <-caught:
				if n > 0 {
					exit((&Interrupted{got}).code())
				}
				cancel(&Interrupted{got})
			}
		}
	}(s.caught, s.done)
	return ctx, func() {
		s.release()
		cancel(nil)
	}
}

func (s *signals) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.caught != nil {
		signal.Stop(s.caught)
		close(s.done)
		s.caught = nil
	}
}

// TakeSignals gives the command the signals that would end it: SIGINT, SIGTERM and SIGHUP. From then on its context ends by none of
// them, nor does the process.
func (f *Factory) TakeSignals() <-chan os.Signal {
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	f.signals.release()
	return caught
}

// ended returns the signal behind an error: requests that a signal broke off fail in many ways.
func ended(ctx context.Context, err error) error {
	if caught, ok := errors.AsType[*Interrupted](context.Cause(ctx)); ok && err != nil {
		if _, exits := errors.AsType[*ExitError](err); !exits {
			return caught
		}
	}
	return err
}
