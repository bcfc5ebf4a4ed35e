// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// The bench is the executor of everything.

func (b *bench) For(r *batchv1alpha1.JobRun) executor.Executor {
	if t := run.Template(r); t == nil || t.Work == nil {
		return nil
	}
	return b
}

func (b *bench) Expect(uid types.UID) { b.note("expect " + string(uid)) }
func (b *bench) Forget(uid types.UID) { b.note("forget " + string(uid)) }

func (b *bench) Start(_ context.Context, r *batchv1alpha1.JobRun) error {
	b.note("start " + r.Name)
	return b.starting
}

func (b *bench) Look(_ context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	b.note("look " + r.Name)
	return b.evidence, nil
}

func (b *bench) Seal(context.Context, *batchv1alpha1.JobRun) (executor.Evidence, error) {
	return b.evidence, nil
}

func (b *bench) Stop(_ context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	b.note("stop " + r.Name)
	return b.evidence, nil
}

func (b *bench) note(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.did = append(b.did, what)
}

// times counts how often something was done.
func (b *bench) times(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, d := range b.did {
		if d == what {
			n++
		}
	}
	return n
}

// What follows stands between the manager and the API server.

func (b *bench) cached(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	shown, stale := b.stale[key.Name]
	if !stale {
		return c.Get(ctx, key, o, opts...)
	}
	switch to := o.(type) {
	case *batchv1alpha1.JobRun:
		if from, ok := shown.(*batchv1alpha1.JobRun); ok {
			from.DeepCopyInto(to)
			return nil
		}
	case *batchv1alpha1.JobQueue:
		if from, ok := shown.(*batchv1alpha1.JobQueue); ok {
			from.DeepCopyInto(to)
			return nil
		}
	}
	key.Name = "not in the cache"
	return c.Get(ctx, key, o, opts...)
}

func (b *bench) status(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return b.write("status "+o.GetName(), func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
}

func (b *bench) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	return b.write("create "+kindOf(o), func() error { return c.Create(ctx, o, opts...) })
}

func (b *bench) update(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
	return b.write("update "+kindOf(o), func() error { return c.Update(ctx, o, opts...) })
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *batchv1alpha1.QueueLedger:
		return "ledger"
	case *batchv1alpha1.JobQueue:
		return "queue"
	default:
		return fmt.Sprintf("%T", o)
	}
}

func (b *bench) write(what string, send func() error) error {
	b.note(what)
	b.mu.Lock()
	fail := b.failing[what]
	b.mu.Unlock()
	if fail != nil {
		return fail(send)
	}
	return send()
}

// always puts f between the manager and the API server for writes of that kind.
func (b *bench) always(what string, f func(send func() error) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing[what] = f
}

// once does so for the next one.
func (b *bench) once(what string, f func(send func() error) error) {
	b.always(what, func(send func() error) error {
		b.always(what, nil)
		return f(send)
	})
}

var errLost = errors.New("the answer was lost")

// lose loses the answer to the next write of that kind, which was carried out or not.
func (b *bench) lose(what string, carriedOut bool) {
	b.once(what, func(send func() error) error {
		if carriedOut {
			if err := send(); err != nil {
				return err
			}
		}
		return errLost
	})
}
