// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"errors"
	"reflect"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/ledger"
)

// enter puts the decision by the rules that were seen into the ledger, and reads the rules live beside that; nothing is claimed
// before both are answered. If others are in force, it is decided again, by these, and that is put into the ledger instead. So no
// rule that a claim goes by is older than this call. It returns the decision that stands, and what may be claimed by it.
func (p *pass) enter(ctx context.Context, seen admission.Limits, d admission.Decision) (admission.Decision, []ticket, error) {
	tickets, err := p.tickets(ctx, d.Admit)
	if err != nil {
		return d, nil, err
	}
	live := &batchv1alpha1.JobQueue{}
	var both errgroup.Group
	both.Go(func() error { return p.Live.Get(ctx, p.queue.key, live) })
	both.Go(func() error { return p.swap(ctx, tickets, d.Book) })
	if err := both.Wait(); err != nil {
		return d, nil, err
	}
	if rules := p.limits(live); !reflect.DeepEqual(rules, seen) {
		d = p.decide(rules)
		if tickets, err = p.tickets(ctx, d.Admit); err != nil {
			return d, nil, err
		}
		if err := p.swap(ctx, tickets, d.Book); err != nil {
			return d, nil, err
		}
	}
	if len(tickets) > 0 {
		p.queue.remember(d.Book)
	}
	return d, tickets, nil
}

// swap records a batch, if there is one. A ledger that was deleted has the queue taken over once more.
func (p *pass) swap(ctx context.Context, tickets []ticket, book admission.Book) error {
	if len(tickets) == 0 {
		return nil
	}
	// A process that ends admits nothing more.
	if err := p.Gate.Wait(ctx); err != nil {
		return err
	}
	intents := make([]batchv1alpha1.Intent, len(tickets))
	for i, t := range tickets {
		intents[i] = t.intent()
	}
	err := p.queue.ledger.Swap(ctx, intents, memory(book))
	if errors.Is(err, ledger.ErrLost) {
		p.queue.ledger = nil
	}
	return err
}

// tickets finds the versions that were decided upon. What the cache shows in another version is left out:
// the event of that version brings the queue back.
func (p *pass) tickets(ctx context.Context, entries []admission.Entry) ([]ticket, error) {
	var tickets []ticket
	for _, e := range entries {
		var object client.Object
		if e.Kind == admission.DirectReservation {
			dr, err := p.reservation(ctx, e)
			if err != nil {
				return nil, err
			}
			if dr == nil {
				continue
			}
			object = dr
		} else {
			r, err := p.run(ctx, e)
			if err != nil {
				return nil, err
			}
			if r == nil {
				continue
			}
			object = r
		}
		tickets = append(tickets, ticket{entry: e, object: object})
	}
	return tickets, nil
}
