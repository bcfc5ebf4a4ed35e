// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typed "k8s.io/client-go/kubernetes/typed/events/v1"
)

const (
	// Pause is how long after an Event the next one is written: at most 40 a second, one at a time, beside thousands of writes of
	// the runs themselves.
	Pause = time.Second / 40
	// retryPause is how long after a write without an answer the next one is made.
	retryPause = time.Second
	// grace bounds a write, and all that is written at the end.
	grace = 5 * time.Second
)

// Writer is a Recorder that writes in the background: slowly, warnings first, and no more than may wait.
type Writer struct {
	api      typed.EventsV1Interface
	scheme   *runtime.Scheme
	instance string
	log      logr.Logger
	dropped  func()
	waiting  *backlog
	// ended is closed when Run has returned.
	ended chan struct{}
}

func newWriter(api typed.EventsV1Interface, scheme *runtime.Scheme, instance string, log logr.Logger, dropped func()) *Writer {
	return &Writer{api: api, scheme: scheme, instance: instance, log: log, dropped: dropped, waiting: newBacklog(), ended: make(chan struct{})}
}

// Run writes until ctx ends. It is called once.
func (w *Writer) Run(ctx context.Context) {
	defer close(w.ended)
	for ctx.Err() == nil {
		e := w.waiting.next()
		if e == nil {
			select {
			case <-ctx.Done():
			case <-w.waiting.more:
			}
			continue
		}
		pause := Pause
		if !w.write(context.WithoutCancel(ctx), e) {
			w.waiting.putBack(e)
			pause = retryPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Flush writes what waits after the end of Run: at once, since nothing else is written any more, for a few seconds, and only as long as
// the API server answers.
func (w *Writer) Flush() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-w.ended:
	}
	for e := w.waiting.next(); e != nil; e = w.waiting.next() {
		if !w.write(ctx, e) {
			w.log.Info("ending with Events not written", "events", w.waiting.len()+1)
			return
		}
	}
}

// write writes an Event, and returns false if there was no answer. A refusal is one, too: it would be refused again.
func (w *Writer) write(ctx context.Context, e *eventsv1.Event) (answered bool) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	_, err := w.api.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	switch _, lost := errors.AsType[*url.Error](err); {
	case err == nil || apierrors.IsAlreadyExists(err):
	case lost || ctx.Err() != nil:
		return false
	default:
		w.log.Info("an Event was refused", "namespace", e.Namespace, "about", e.Regarding.Name, "reason", e.Reason, "error", err.Error())
		w.dropped()
	}
	return true
}
