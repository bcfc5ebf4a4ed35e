// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/text"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// printer prints the logs of runs.
type printer struct {
	f         *cli.Factory
	api       client.WithWatch
	namespace string
	options   *options
	open      opener
	lines     *lines
	// many says that several runs are printed.
	many bool
}

// chain prints the chain of a run, or the attempts of it that were asked for.
func (p *printer) chain(ctx context.Context, r *batchv1alpha1.JobRun) error {
	attempts, err := p.attempts(ctx, r)
	if err != nil {
		return err
	}
	if attempts, err = p.options.chosen(attempts); err != nil {
		return err
	}
	p.many = p.many || len(attempts) > 1 || p.options.follow && p.options.attempt < 0
	if !p.options.follow || p.options.attempt >= 0 {
		return p.each(ctx, attempts)
	}
	last := len(attempts) - 1
	if err := p.past(ctx, attempts[:last]); err != nil {
		return err
	}
	return p.from(ctx, attempts[last])
}

// chosen are the attempts that were asked for.
func (o *options) chosen(attempts []*batchv1alpha1.JobRun) ([]*batchv1alpha1.JobRun, error) {
	latest := run.Attempt(attempts[len(attempts)-1])
	if o.previous {
		if len(attempts) < 2 {
			return nil, fmt.Errorf("run %s has no attempt before it", attempts[0].Name)
		}
		return attempts[len(attempts)-2 : len(attempts)-1], nil
	}
	if o.attempt < 0 {
		return attempts, nil
	}
	i := slices.IndexFunc(attempts, func(r *batchv1alpha1.JobRun) bool { return run.Attempt(r) == o.attempt })
	if i < 0 {
		return nil, fmt.Errorf("the chain of run %s has no attempt %d any more, or not yet: the latest is %d", attempts[0].Name, o.attempt, latest)
	}
	return attempts[i : i+1], nil
}

// each prints runs one after the other. What cannot be printed keeps none of the others from it.
func (p *printer) each(ctx context.Context, runs []*batchv1alpha1.JobRun) error {
	var failed error
	for _, r := range runs {
		if err := p.attempt(ctx, r, p.options.follow); err != nil {
			if ctx.Err() != nil {
				return err
			}
			p.f.Notef("run %s: %s\n", r.Name, text.Line(p.f.Explain(err)))
			failed = errIncomplete
		}
	}
	return failed
}

// past prints runs that have ended, and does not follow them.
func (p *printer) past(ctx context.Context, runs []*batchv1alpha1.JobRun) error {
	still := *p
	o := *p.options
	o.follow, still.options = false, &o
	return still.each(ctx, runs)
}

// from prints a run as it goes on, and the retries that follow it.
func (p *printer) from(ctx context.Context, r *batchv1alpha1.JobRun) error {
	for {
		if err := p.attempt(ctx, r, true); err != nil {
			return err
		}
		ended, err := p.end(ctx, r)
		if err != nil {
			return err
		}
		next, err := p.successor(ctx, ended)
		if err != nil || next == nil {
			return err
		}
		p.many = true
		r = next
	}
}

// end waits until a run has ended and its retry, if it is to have one, is on record.
func (p *printer) end(ctx context.Context, r *batchv1alpha1.JobRun) (*batchv1alpha1.JobRun, error) {
	ended := r.DeepCopy()
	err := cli.Until(ctx, p.f, p.api, r.DeepCopy(), &batchv1alpha1.JobRunList{}, 0, func(now *batchv1alpha1.JobRun) (bool, error) {
		ended = now
		return now.Status.Phase.Terminal() && !retry.Decide(now).Due, nil
	})
	return ended, err
}

// attempts reads the chain of a run, from its first run on, as far as it is still there.
func (p *printer) attempts(ctx context.Context, r *batchv1alpha1.JobRun) ([]*batchv1alpha1.JobRun, error) {
	chain := run.Chain(r)
	first := r
	if chain.RootUID != r.UID {
		root := &batchv1alpha1.JobRun{}
		err := p.api.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: chain.RootName}, root)
		switch {
		case err == nil && root.UID == chain.RootUID:
			first = root
		case client.IgnoreNotFound(err) != nil:
			return nil, err
		}
	}
	attempts := []*batchv1alpha1.JobRun{first}
	for {
		next, err := p.successor(ctx, attempts[len(attempts)-1])
		if err != nil {
			return nil, err
		}
		if next == nil {
			break
		}
		attempts = append(attempts, next)
	}
	// One whose predecessors were removed, or that its predecessor does not record yet, is printed all the same.
	if !slices.ContainsFunc(attempts, func(a *batchv1alpha1.JobRun) bool { return a.UID == r.UID }) {
		attempts = append(attempts, r)
	}
	return attempts, nil
}

// successor reads the retry that a run records, nil if there is none.
func (p *printer) successor(ctx context.Context, r *batchv1alpha1.JobRun) (*batchv1alpha1.JobRun, error) {
	if r.Status.Retry == nil {
		return nil, nil
	}
	next := &batchv1alpha1.JobRun{}
	err := p.api.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Status.Retry.Name}, next)
	if apierrors.IsNotFound(err) || err == nil && next.UID != r.Status.Retry.UID {
		return nil, nil
	}
	return next, err
}

// group prints all members of a group: one after the other, or at once as they come.
func (p *printer) group(ctx context.Context, name string) error {
	g := &batchv1alpha1.JobGroup{}
	if err := cli.Get(ctx, p.api, p.namespace, name, g); err != nil {
		return err
	}
	p.many = true
	if p.options.follow {
		return p.members(ctx, g)
	}
	var failed error
	for _, m := range g.Status.Members {
		r, err := p.member(ctx, m)
		if r == nil {
			if err != nil {
				return err
			}
			continue
		}
		if err := p.chain(ctx, r); err != nil {
			failed = err
			p.f.Notef("member %s: %s\n", m.Name, text.Line(p.f.Explain(err)))
		}
	}
	return failed
}

// member reads the first run of a member, nil if it has none.
func (p *printer) member(ctx context.Context, m batchv1alpha1.GroupMemberStatus) (*batchv1alpha1.JobRun, error) {
	if m.RunName == "" {
		return nil, nil
	}
	r := &batchv1alpha1.JobRun{}
	err := p.api.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: m.RunName}, r)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return r, err
}

// members follows every member as soon as it has a run, until the group is over.
func (p *printer) members(ctx context.Context, g *batchv1alpha1.JobGroup) error {
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed error
	begun := map[string]bool{}
	err := cli.Until(ctx, p.f, p.api, g, &batchv1alpha1.JobGroupList{}, 0, func(now *batchv1alpha1.JobGroup) (bool, error) {
		for _, m := range now.Status.Members {
			if begun[m.Name] {
				continue
			}
			r, err := p.member(ctx, m)
			if err != nil || r == nil {
				continue // it is looked at again when the group changes
			}
			begun[m.Name] = true
			running.Go(func() {
				if err := p.chain(ctx, r); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed = err
				}
			})
		}
		return now.Status.Phase.Terminal(), nil
	})
	running.Wait()
	if err == nil {
		err = failed
	}
	return err
}
