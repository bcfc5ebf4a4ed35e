// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/logs"
	"reprise.dev/reprise/internal/plugin/text"
	"reprise.dev/reprise/internal/retry"
)

// patience says how long a command stays with what it has started.
type patience struct {
	wait, follow bool
	timeout      time.Duration
}

func (p *patience) addTo(cmd *cobra.Command, logs bool) {
	cmd.Flags().BoolVar(&p.wait, "wait", false, "stay until it has ended, retries included; exit with 1 unless it succeeds")
	if logs {
		cmd.Flags().BoolVar(&p.follow, "follow", false, "print the logs of its work meanwhile; implies --wait")
	}
	cmd.Flags().DurationVar(&p.timeout, "timeout", 0, "with --wait: exit with 124 if it has not ended by then, such as 30m; it goes on (default: no limit)")
}

// check refuses flags that contradict each other.
func (p *patience) check(output *cli.Output) error {
	p.wait = p.wait || p.follow
	switch {
	case p.follow && !output.Human():
		return cli.Usagef("--follow prints logs where -o prints the object: use one of them")
	case p.timeout < 0:
		return cli.Usagef("--timeout must not be negative")
	case p.timeout > 0 && !p.wait:
		return cli.Usagef("--timeout needs --wait or --follow")
	default:
		return nil
	}
}

// within bounds a context by the timeout.
func (p *patience) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, p.timeout, cli.Timeoutf("it has not ended within %s, and goes on", p.timeout))
}

// outcome is how a chain or a group has ended.
type outcome struct {
	object                       client.Object
	phase, reason, message, name string
}

// err says whether it is what a person wanted.
func (o outcome) err() error {
	good := o.phase == string(batchv1alpha1.JobRunCompleted) || o.phase == string(batchv1alpha1.JobRunSkipped) && o.reason == batchv1alpha1.ReasonNothingToDo
	if good {
		return nil
	}
	return fmt.Errorf("%s is %s (%s): %s", o.name, o.phase, cmp.Or(o.reason, "no reason"), cmp.Or(o.message, "it says nothing more"))
}

// stay waits for the end of a run's chain, or of a group, and tells on the way what happens.
func (p *patience) stay(ctx context.Context, f *cli.Factory, c client.WithWatch, object client.Object) (outcome, error) {
	ctx, cancel := p.within(ctx)
	defer cancel()
	name := object.GetName()
	end, err := p.end(ctx, f, c, object)
	if caught, ok := errors.AsType[*cli.Interrupted](context.Cause(ctx)); ok && err != nil {
		f.Notef("%s goes on; kubectl reprise cancel %s ends it\n", name, reference(object))
		return end, caught
	}
	if err != nil && ctx.Err() != nil {
		return end, context.Cause(ctx)
	}
	return end, err
}

func (p *patience) end(ctx context.Context, f *cli.Factory, c client.WithWatch, object client.Object) (outcome, error) {
	switch o := object.(type) {
	case *batchv1alpha1.JobGroup:
		return groupEnd(ctx, f, c, o)
	case *batchv1alpha1.JobRun:
		if p.follow {
			if err := logs.Follow(ctx, f, c, o.DeepCopy()); err != nil {
				return outcome{}, err
			}
		}
		return chainEnd(ctx, f, c, o)
	default:
		return outcome{}, fmt.Errorf("a %T has no end", object)
	}
}

func reference(object client.Object) string {
	if _, ok := object.(*batchv1alpha1.JobGroup); ok {
		return cli.Short(cli.JobGroup) + "/" + object.GetName()
	}
	return object.GetName()
}

// chainEnd waits through the retries of a run.
func chainEnd(ctx context.Context, f *cli.Factory, c client.WithWatch, r *batchv1alpha1.JobRun) (outcome, error) {
	for {
		ended, err := runEnd(ctx, f, c, r)
		if err != nil {
			return outcome{}, err
		}
		next, err := successor(ctx, c, ended)
		if err != nil {
			return outcome{}, err
		}
		if next == nil {
			s := ended.Status
			return outcome{ended, string(s.Phase), s.Reason, s.Message, ended.Name}, nil
		}
		f.Notef("%s is %s: %s; it is retried by %s\n", ended.Name, ended.Status.Phase, text.Line(ended.Status.Message), next.Name)
		r = next
	}
}

// runEnd waits until a run has ended, and its retry, if it is to have one, is on record.
func runEnd(ctx context.Context, f *cli.Factory, c client.WithWatch, r *batchv1alpha1.JobRun) (*batchv1alpha1.JobRun, error) {
	var ended *batchv1alpha1.JobRun
	phase := batchv1alpha1.JobRunPhase("")
	err := cli.Until(ctx, f, c, r, &batchv1alpha1.JobRunList{}, 0, func(now *batchv1alpha1.JobRun) (bool, error) {
		if now.Status.Phase != phase && !now.Status.Phase.Terminal() {
			phase = now.Status.Phase
			f.Notef("%s is %s\n", now.Name, phase)
		}
		ended = now
		return now.Status.Phase.Terminal() && !retry.Decide(now).Due, nil
	})
	return ended, err
}

func groupEnd(ctx context.Context, f *cli.Factory, c client.WithWatch, g *batchv1alpha1.JobGroup) (outcome, error) {
	var end outcome
	phases := map[string]batchv1alpha1.GroupMemberPhase{}
	err := cli.Until(ctx, f, c, g, &batchv1alpha1.JobGroupList{}, 0, func(now *batchv1alpha1.JobGroup) (bool, error) {
		for _, m := range now.Status.Members {
			if phases[m.Name] != m.Phase {
				phases[m.Name] = m.Phase
				f.Notef("%s: %s is %s\n", now.Name, m.Name, m.Phase)
			}
		}
		s := now.Status
		end = outcome{now, string(s.Phase), s.Reason, s.Message, now.Name}
		return s.Phase.Terminal(), nil
	})
	return end, err
}
