// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
)

// reviews asks the API server about users: each question once at a time, however many requests wait for the answer, and not too
// many questions at once. Positive answers are remembered for a while.
type reviews[V any] struct {
	known   *memory[V]
	flights singleflight.Group
	room    chan struct{}
	timeout time.Duration
}

func newReviews[V any](c clock.PassiveClock, t timing) *reviews[V] {
	return asking(&memory[V]{clock: c, last: t.remember, limit: maxRemembered}, t)
}

// asking makes reviews that remember there.
func asking[V any](known *memory[V], t timing) *reviews[V] {
	return &reviews[V]{known: known, room: make(chan struct{}, maxReviews), timeout: t.call}
}

// errBusy: there were too many questions for this one to be asked in time.
var errBusy = errors.New("too many reviews at once")

// answer returns what is remembered under the key, or else asks. An error of the question, and the end of ctx, are returned as
// they are.
func (r *reviews[V]) answer(ctx context.Context, k digest, ask func(context.Context) (V, error)) (V, error) {
	if v, ok := r.known.get(k); ok {
		return v, nil
	}
	// The question is everybody's who waits for it: it goes on when the one who asked first goes away.
	flight := r.flights.DoChan(string(k[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeout)
		defer cancel()
		select {
		case r.room <- struct{}{}:
			defer func() { <-r.room }()
		case <-ctx.Done():
			return *new(V), errBusy
		}
		v, err := ask(ctx)
		if err == nil {
			r.known.put(k, v)
		}
		return v, err
	})
	select {
	case result := <-flight:
		v, ok := result.Val.(V)
		if !ok {
			return *new(V), errors.Join(errors.New("no answer"), result.Err)
		}
		return v, result.Err
	case <-ctx.Done():
		return *new(V), context.Cause(ctx)
	}
}
