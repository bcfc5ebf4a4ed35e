// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"cmp"
	"fmt"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// Settlement says how a chain stands.
type Settlement struct {
	// Over says that nothing goes on without a person.
	Over bool
	// Failed says that the chain is over and has failed for good.
	Failed bool
	// Reason is one CamelCase word for conditions.
	Reason string
	// Message is for a person.
	Message string
}

// Settle says how a chain stands, from its latest run: the one after which no retry exists. A failed run whose recorded retry
// was deleted is the latest of its chain, and ends it.
func Settle(latest *batchv1alpha1.JobRun) Settlement { return settle(latest, run.Attempt(latest)) }

// settle is Settle for a run that may not know its number in the chain.
func settle(latest *batchv1alpha1.JobRun, number int32) Settlement {
	phase := latest.Status.Phase
	switch {
	case phase == batchv1alpha1.JobRunFailed:
		return settleFailed(latest)
	case phase.Terminal():
		return Settlement{Over: true, Reason: cmp.Or(latest.Status.Reason, string(phase)), Message: latest.Status.Message}
	case number > 0:
		return Settlement{
			Reason:  batchv1alpha1.ReasonRetrying,
			Message: fmt.Sprintf("retry %d, %s, is %s", number, latest.Name, phase),
		}
	default:
		return Settlement{Reason: string(phase), Message: fmt.Sprintf("the run is %s", phase)}
	}
}

func settleFailed(latest *batchv1alpha1.JobRun) Settlement {
	d := Decide(latest)
	s := Settlement{Over: true, Failed: true, Reason: cmp.Or(latest.Status.Reason, batchv1alpha1.ReasonWorkFailed), Message: latest.Status.Message}
	switch {
	case d.Due:
		return Settlement{
			Reason:  batchv1alpha1.ReasonRetrying,
			Message: fmt.Sprintf("retry %d follows at %s", run.Attempt(latest)+1, d.NotBefore.UTC().Format(time.RFC3339)),
		}
	case d.Reason == Exhausted:
		s.Reason = batchv1alpha1.ReasonRetriesExhausted
		s.Message = fmt.Sprintf("all %d automatic retries are used up; the last failure: %s", PolicyOf(latest).MaxRetries, latest.Status.Message)
	case d.Reason == Recorded:
		s.Message = fmt.Sprintf("its retry %s was deleted; the failure: %s", latest.Status.Retry.Name, latest.Status.Message)
	}
	return s
}
