// SPDX-License-Identifier: Apache-2.0

// Command demo shows the main job of Reprise on this machine: it builds the manager, starts a local control plane and a
// small server that the work calls, runs the manager as a process of its own, applies config/samples, kills the manager in the
// middle of a run, starts it again and shows what becomes of that run. Whatever it claims it has checked, in the API and in
// the server's log. It ends with exit code 0 only if every claim held.
//
// KEEP=1 leaves everything up until Ctrl-C. CLUSTER=existing CONTEXT=<name> uses a context of your kubeconfig in place of a
// control plane of its own, in a namespace that it makes and removes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// prepareTimeout bounds building: the first time on a machine that includes a whole control plane.
	prepareTimeout = 20 * time.Minute
	// storyTimeout bounds everything after that.
	storyTimeout = 110 * time.Second
)

func main() {
	log.SetLogger(logr.Discard()) // what the libraries tell is not part of the story
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, &narrator{out: os.Stdout}, os.Getenv("KEEP") == "1")
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err != nil && interrupted:
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "\ndemo: FAILED:", err)
		os.Exit(1)
	}
}

// run is the whole demo. Whatever it has started has ended when it returns.
func run(ctx context.Context, say *narrator, keep bool) (err error) {
	start := time.Now()
	s := &stage{say: say}
	defer func() {
		if err != nil && ctx.Err() == nil {
			s.explain()
		}
		err = errors.Join(err, s.strike(err == nil || ctx.Err() != nil))
	}()

	say.line("Reprise: a schedule, a queue, work, a crash, and what becomes of it. It takes about a minute.")
	if err := bounded(ctx, prepareTimeout, s.prepare); err != nil {
		return err
	}
	built := time.Now()
	err = bounded(ctx, storyTimeout, func(ctx context.Context) error {
		if err := s.raise(ctx); err != nil {
			return err
		}
		return (&story{stage: s}).tell(ctx)
	})
	if err != nil {
		return err
	}
	if keep {
		return s.stay(ctx)
	}
	if err := s.strike(true); err != nil {
		return err
	}
	say.line("")
	say.line("PASS: every claim was checked (%s, of which building took %s). Nothing is left running.",
		time.Since(start).Round(time.Second), built.Sub(start).Round(time.Second))
	say.line("KEEP=1 make demo leaves it all up to play with.")
	return nil
}

func bounded(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it took longer than %s: %w", limit, err)
	}
	return err
}
