// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/egress"
	"reprise.dev/reprise/internal/executor"
)

// MaxResponseBytes is the longest body of a response that can prove success: 32 MiB. It is read and counted, not kept.
const MaxResponseBytes = 32 << 20

// judge reads the response and says what it means. Success needs the whole body; for everything else the status is
// enough, and no more of the body is read than is kept.
func (p *plan) judge(ctx, bound context.Context, response *http.Response) *executor.Outcome {
	code := response.StatusCode
	skip := slices.Contains(p.work.SkipStatusCodes, int32(code))
	success := !skip && p.success(code)
	limit := int64(maxKept)
	if success {
		limit = MaxResponseBytes
	}
	kept := &head{}
	n, err := io.Copy(kept, io.LimitReader(response.Body, limit+1))

	var outcome *executor.Outcome
	switch {
	case skip:
		outcome = &executor.Outcome{Phase: batchv1alpha1.JobRunSkipped, Reason: batchv1alpha1.ReasonNothingToDo, Message: answered(code)}
	case !success:
		outcome = failed(batchv1alpha1.ReasonWorkFailed, answered(code))
	case n > limit:
		outcome = failed(batchv1alpha1.ReasonResponseTooLarge, fmt.Sprintf("%s, but the response is longer than %d bytes", answered(code), limit))
	case err != nil:
		outcome = p.failure(ctx, bound, err)
		outcome.Message = fmt.Sprintf("%s, but its response did not come whole: %s", answered(code), outcome.Message)
	default:
		outcome = &executor.Outcome{Phase: batchv1alpha1.JobRunCompleted, Reason: batchv1alpha1.ReasonSucceeded, Message: answered(code)}
	}
	outcome.Result = kept.result(code, n, err)
	return outcome
}

func (p *plan) success(code int) bool {
	if len(p.work.SuccessStatusCodes) == 0 {
		return code >= 200 && code <= 299
	}
	return slices.Contains(p.work.SuccessStatusCodes, int32(code))
}

// answered names the standard text of the code, not whatever the server wrote beside it.
func answered(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("server answered %d %s", code, text)
	}
	return fmt.Sprintf("server answered %d", code)
}

// failure says why a call did not come to its end. What this process did to it explains it better than the error, which
// then tells only of a cancelled context.
func (p *plan) failure(ctx, bound context.Context, err error) *executor.Outcome {
	forbidden := (*egress.Forbidden)(nil)
	switch {
	case ctx.Err() != nil:
		return aborted(context.Cause(ctx), "the call was aborted")
	case bound.Err() != nil:
		return failed(batchv1alpha1.ReasonManagerShutdown, "the call was aborted, since the manager could not be sure to lead any more")
	case errors.As(err, &forbidden):
		return failed(batchv1alpha1.ReasonAddressForbidden, forbidden.Error())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return failed(batchv1alpha1.ReasonConnectionFailed, fmt.Sprintf("call to %s failed: the server closed the connection too early", p.host()))
	default:
		return failed(batchv1alpha1.ReasonConnectionFailed, fmt.Sprintf("call to %s failed: %s", p.host(), plain(err)))
	}
}

// aborted is the outcome of a call that this process aborted, or did not make because it was to be aborted.
func aborted(cause error, message string) *executor.Outcome {
	reason := batchv1alpha1.ReasonCancelled
	switch {
	case errors.Is(cause, errTimeout):
		reason = batchv1alpha1.ReasonTimeout
	case errors.Is(cause, errShutdown):
		reason = batchv1alpha1.ReasonManagerShutdown
	}
	return failed(reason, fmt.Sprintf("%s: %v", message, cause))
}

// rejection is the outcome of work that cannot be sent as it stands.
func rejection(err error) *executor.Outcome {
	rejected := (*executor.Rejected)(nil)
	if errors.As(err, &rejected) {
		return failed(rejected.Reason, rejected.Message)
	}
	return failed(batchv1alpha1.ReasonInvalidWork, plain(err))
}

func failed(reason, message string) *executor.Outcome {
	return &executor.Outcome{Phase: batchv1alpha1.JobRunFailed, Reason: reason, Message: message}
}

// host returns the host and port that are called: all of the URL that texts may quote.
func (p *plan) host() string {
	target, err := url.Parse(p.work.URL)
	if err != nil {
		return "the server"
	}
	return target.Host
}
