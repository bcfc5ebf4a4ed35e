// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"time"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// What applies where a retryPolicy is silent.
const (
	defaultMaxRetries       = 3
	defaultBaseDelaySeconds = 10
	defaultMaxDelaySeconds  = 3600
)

// Policy is a retryPolicy in which nothing is unset.
type Policy struct {
	// MaxRetries is the number of automatic retries of a chain. 0: none.
	MaxRetries int32
	// BaseDelay is the delay before the first retry. Every further one doubles it.
	BaseDelay time.Duration
	// MaxDelay bounds the delay.
	MaxDelay time.Duration
}

// Effective returns a retryPolicy with its defaults: 3 retries after 10 s, 20 s, 40 s, a delay of at most an hour. Nil is all
// defaults.
func Effective(p *batchv1alpha1.RetryPolicy) Policy {
	if p == nil {
		p = &batchv1alpha1.RetryPolicy{}
	}
	return Policy{
		MaxRetries: ptr.Deref(p.MaxRetries, defaultMaxRetries),
		BaseDelay:  seconds(ptr.Deref(p.BaseDelaySeconds, defaultBaseDelaySeconds)),
		MaxDelay:   seconds(ptr.Deref(p.MaxDelaySeconds, defaultMaxDelaySeconds)),
	}
}

// PolicyOf returns the policy of a run; all defaults for one that is yet to be resolved.
func PolicyOf(r *batchv1alpha1.JobRun) Policy {
	if t := run.Template(r); t != nil {
		return Effective(t.RetryPolicy)
	}
	return Effective(nil)
}

// Delay returns how long after the end of an attempt the next one may begin: BaseDelay × 2^attempt, at most MaxDelay.
func (p Policy) Delay(attempt int32) time.Duration {
	delay := p.BaseDelay
	for range attempt {
		if delay >= p.MaxDelay-delay { // doubled it reaches the bound; said so that nothing overflows
			return p.MaxDelay
		}
		delay *= 2
	}
	return min(delay, p.MaxDelay)
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
