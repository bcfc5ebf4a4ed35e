// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// retryPause is how long a call waits before it looks again for what was missing for it to be made.
const retryPause = time.Second

// plan is one call, copied from its run.
type plan struct {
	key       types.NamespacedName
	uid       types.UID
	work      batchv1alpha1.HTTPWork
	chain     batchv1alpha1.Chain
	attempt   int32
	deadline  time.Time
	eventTime time.Time
	// traceparent by which the called service joins the run's trace, "" for none.
	traceparent string
	// heard notes that a byte of the response has come.
	heard func()
}

// perform makes the call and judges its end. It returns as soon as ctx ends.
func (e *Executor) perform(ctx context.Context, p *plan) *executor.Outcome {
	request, err := p.request(ctx)
	if err != nil {
		return rejection(err)
	}
	bound, release, outcome := e.ready(ctx, p, request)
	if outcome != nil {
		return outcome
	}
	defer release()
	response, err := e.options.Client.Do(request.WithContext(p.listening(bound)))
	if err != nil {
		return p.failure(ctx, bound, err)
	}
	p.heard()
	defer func() { _ = response.Body.Close() }()
	response.Body = listened{response.Body, p.heard}
	return p.judge(ctx, bound, response)
}

// ready does what must be done right before the call: it reads the headers that come from Secrets, and makes sure of the
// lease. Neither an API server that does not answer nor a lease whose renewal is late fails the run, since nothing was
// sent: the call waits until its deadline. (A manager that has lost its lease ends, and its waiting calls with it.)
func (e *Executor) ready(ctx context.Context, p *plan, request *http.Request) (context.Context, context.CancelFunc, *executor.Outcome) {
	contentType := request.Header.Get(headerContentType)
	var problem error
	for ctx.Err() == nil {
		if problem = e.header(ctx, p, request, contentType); problem == nil {
			bound, release, err := e.options.Leader.Bound(ctx)
			if err == nil {
				return bound, release, nil
			}
			problem = err
		}
		if rejected := (*executor.Rejected)(nil); errors.As(problem, &rejected) {
			return nil, nil, rejection(problem)
		}
		e.options.Log.V(1).Info("call waits", "run", p.key.String(), "because", problem.Error())
		e.pause(ctx)
	}
	outcome := aborted(context.Cause(ctx), "no call was made")
	if problem != nil {
		outcome.Message = fmt.Sprintf("%s (%s)", outcome.Message, plain(problem))
	}
	return nil, nil, outcome
}

// header gives the request its headers, with those from Secrets.
func (e *Executor) header(ctx context.Context, p *plan, request *http.Request, contentType string) error {
	secrets, err := e.secrets(ctx, p)
	if err != nil {
		return err
	}
	request.Header, err = p.header(contentType, secrets)
	if err != nil {
		return err
	}
	sendOnce(request)
	return nil
}

func (e *Executor) pause(ctx context.Context) {
	timer := e.options.Clock.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
