// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/metrics"
	"reprise.dev/reprise/internal/run"
	"reprise.dev/reprise/internal/stale"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get

// alive watches over work that goes on: ev is what is known of it, from a live look or from the cache. It comes back when the
// work would be silent for too long, and when the executor asks.
func (s *scope) alive(ctx context.Context, ex executor.Executor, ev executor.Evidence) (ctrl.Result, error) {
	v, err := s.takePulse(ctx, ev)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !v.news(s.run) {
		return s.later(ev.RecheckAfter, v), nil
	}
	// What is written now must not contradict what the work has come to in the meantime.
	ev, err = ex.Look(ctx, s.run)
	if err != nil {
		return ctrl.Result{}, err
	}
	if ev.Life != executor.Alive {
		return ctrl.Result{}, s.over(ctx, ev)
	}
	v.Verdict = stale.Decide(s.run, v.threshold, stale.Signs{Heartbeat: v.heartbeat, Response: ev.LastSign}, s.now)
	if !v.news(s.run) {
		return s.later(ev.RecheckAfter, v), nil
	}
	return s.later(ev.RecheckAfter, v), s.judge(ctx, v)
}

// pulse is what is known of the signs of life of a run, and what follows.
type pulse struct {
	stale.Verdict
	threshold time.Duration
	policy    batchv1alpha1.StalePolicy
	heartbeat time.Time
}

// takePulse judges the signs of life of a run. Its Lease is read, live, only once no other sign is new enough: nothing is watched.
func (s *scope) takePulse(ctx context.Context, ev executor.Evidence) (pulse, error) {
	queue, err := s.queue(ctx)
	if err != nil {
		return pulse{}, err
	}
	p := pulse{threshold: stale.Threshold(s.run, queue), policy: stale.Policy(queue)}
	p.Verdict = stale.Decide(s.run, p.threshold, stale.Signs{Response: ev.LastSign}, s.now)
	if p.Stale {
		if p.heartbeat, err = s.heartbeat(ctx); err != nil {
			return pulse{}, err
		}
		p.Verdict = stale.Decide(s.run, p.threshold, stale.Signs{Heartbeat: p.heartbeat, Response: ev.LastSign}, s.now)
	}
	return p, nil
}

// heartbeat returns when the Lease that is named after the run was renewed last, zero if there is none.
func (s *scope) heartbeat(ctx context.Context) (time.Time, error) {
	lease := &coordinationv1.Lease{}
	if err := s.Live.Get(ctx, s.key(s.run.Name), lease); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	switch {
	case lease.Spec.RenewTime != nil:
		return lease.Spec.RenewTime.Time, nil
	case lease.Spec.AcquireTime != nil:
		return lease.Spec.AcquireTime.Time, nil
	default:
		return time.Time{}, nil
	}
}

// news reports whether something follows from the verdict that the run does not say already.
func (p pulse) news(r *batchv1alpha1.JobRun) bool {
	said := meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStale)
	switch {
	case p.threshold == 0:
		return said != nil
	case p.Stale:
		return p.policy == batchv1alpha1.StaleFail || said == nil || said.Status != metav1.ConditionTrue
	default:
		return said != nil && said.Status == metav1.ConditionTrue
	}
}

// later returns when the run is looked at again: as the executor asks, or when the verdict may change.
func (s *scope) later(recheck time.Duration, p pulse) ctrl.Result {
	result := ctrl.Result{RequeueAfter: recheck, Priority: new(0)}
	if p.Look.IsZero() {
		return result
	}
	if look := p.Look.Sub(s.now); recheck == 0 || look < recheck {
		result.RequeueAfter = look
	}
	return result
}

// judge writes what follows from news.
func (s *scope) judge(ctx context.Context, p pulse) error {
	fell := !meta.IsStatusConditionTrue(s.run.Status.Conditions, batchv1alpha1.ConditionStale)
	switch {
	case p.threshold == 0:
		return s.write(ctx, func(r *batchv1alpha1.JobRun) {
			meta.RemoveStatusCondition(&r.Status.Conditions, batchv1alpha1.ConditionStale)
		})
	case !p.Stale:
		if err := s.sayStale(ctx, metav1.ConditionFalse, batchv1alpha1.ReasonSignOfLife, p.Message); err != nil {
			return err
		}
		s.log.Info("run gives signs of life again", "message", p.Message)
		s.event(corev1.EventTypeNormal, batchv1alpha1.ReasonSignOfLife, "Watch", p.Message)
		return nil
	case p.policy == batchv1alpha1.StaleFail:
		if err := s.finish(ctx, end{phase: batchv1alpha1.JobRunFailed, reason: batchv1alpha1.ReasonStale, message: p.Message}); err != nil {
			return err
		}
		s.silent(p, fell) // that it failed is told, and why
		return nil
	default:
		if err := s.sayStale(ctx, metav1.ConditionTrue, batchv1alpha1.ReasonNoSignOfLife, p.Message); err != nil {
			return err
		}
		s.silent(p, fell)
		s.event(corev1.EventTypeWarning, batchv1alpha1.ReasonNoSignOfLife, "Warn", fmt.Sprintf("%s (onStale: %s)", p.Message, p.policy))
		return nil
	}
}

func (s *scope) sayStale(ctx context.Context, status metav1.ConditionStatus, reason, message string) error {
	return s.write(ctx, func(r *batchv1alpha1.JobRun) {
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
			Type: batchv1alpha1.ConditionStale, Status: status, Reason: reason, Message: bounded(message),
			ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(s.now),
		})
	})
}

// silent tells those who watch that the run is stale. It counts each time it falls silent once, whatever becomes of it then.
func (s *scope) silent(p pulse, fell bool) {
	if fell {
		metrics.StaleRuns.Record(1, s.run.Namespace, run.Queue(s.run))
	}
	s.log.Info("run is stale", "type", run.Type(s.run), "onStale", p.policy, "since", p.Since, "thresholdSeconds", int64(p.threshold/time.Second))
}
