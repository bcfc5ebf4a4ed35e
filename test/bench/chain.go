// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/reservation"
)

// chains measure the three writes that lie between the end of a run's work and the grant of its slot to a reservation: the run's
// end, the entry in the ledger, the grant. One client makes them as a manager does, each once the one before is answered, without
// the rules and the fence. Their tail is that of the control plane alone.
type chains struct {
	*Bench
	book  *batchv1alpha1.QueueLedger
	times []float64 // in milliseconds
}

// chains makes ready for n of them, in a namespace that no manager sees.
func (b *Bench) chains(ctx context.Context, n int) (*chains, error) {
	ns, err := b.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.Submit(ctx, ns, n, clients); err != nil {
		return nil, err
	}
	book := &batchv1alpha1.QueueLedger{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: batchv1alpha1.DefaultQueue}}
	book.Spec.Epoch = epoch.New(time.Now(), 0).String()
	return &chains{Bench: b, book: book}, b.Client.Create(ctx, book, asManager)
}

// next puts one more run to work and a reservation next in line, and measures one chain.
func (c *chains) next(ctx context.Context) error {
	i := len(c.times)
	r := c.HTTPRun(c.book.Namespace, i)
	if err := c.Get(ctx, r); err != nil {
		return err
	}
	if err := c.Claim(ctx, r); err != nil {
		return err
	}
	dr := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: c.book.Namespace, Name: reservationName(i)}}
	if err := c.Client.Create(ctx, dr); err != nil {
		return err
	}
	reservation.Activate(dr, c.book.Spec.Epoch, time.Now())
	if err := c.Client.Status().Update(ctx, dr, asManager); err != nil {
		return err
	}
	start := time.Now()
	if err := c.Finish(ctx, r); err != nil {
		return err
	}
	if err := c.enter(ctx, dr); err != nil {
		return err
	}
	reservation.Grant(dr, c.book.Spec.Epoch, time.Now())
	if err := c.Client.Status().Update(ctx, dr, asManager); err != nil {
		return err
	}
	c.times = append(c.times, milliseconds(time.Since(start)))
	return nil
}

// enter makes the write with which a manager enters a batch of one in the ledger.
func (c *chains) enter(ctx context.Context, dr *batchv1alpha1.DirectReservation) error {
	c.book.Spec.Replaces = c.book.ResourceVersion
	c.book.Spec.Intents = []batchv1alpha1.Intent{{Kind: string(admission.DirectReservation), Name: dr.Name, UID: dr.UID, ResourceVersion: dr.ResourceVersion}}
	c.book.Spec.DirectInRow = 1 // as after a run
	return c.Client.Update(ctx, c.book, asManager)
}
