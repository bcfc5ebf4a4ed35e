// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// interactiveFigures hold what a person waits for, once the slot is there, against single writes of one client. They belong to
// the row "depth", whose 100,000 waiting runs they need.
func interactiveFigures() []Figure {
	most := depthSide(depths[len(depths)-1])
	write := func(sides map[string]Sample) float64 { return sides["raw"]["ms"] / 2 }
	return []Figure{
		{
			Name: "interactive", About: "a reservation's wait from the end of the work before it, 99 of 100, at 100,000 waiting runs, against one write", Unit: "ratio",
			Of: func(sides map[string]Sample) float64 { return sides[most]["reservation-p99"] / write(sides) }, Goal: AtMost(5),
		},
		{Name: "interactive-p99", About: "that wait, 99 of 100", Unit: "ms", Of: Value(most, "reservation-p99")},
		{Name: "write", About: "one write of one client, median", Unit: "ms", Of: write},
	}
}

// reservations measures how long the next in line waits for its slot once the work before it has ended. Between two of them a run
// has the slot, which is part of what is counted as a reservation's requests and CPU.
func (d *deep) reservations(ctx context.Context) error {
	changes, err := d.from(ctx, &batchv1alpha1.DirectReservationList{})
	if err != nil {
		return err
	}
	defer changes.Stop()
	waits, err := d.cost(ctx, "reservation", depthReservations, func() (waits []float64, err error) {
		for i := range depthReservations {
			wait, err := d.reserve(ctx, changes, fmt.Sprintf("direct-%03d", i))
			if err != nil {
				return nil, err
			}
			waits = append(waits, milliseconds(wait))
		}
		return waits, nil
	})
	if err != nil {
		return err
	}
	d.sample["reservation-p99"] = quantile(waits, 0.99)
	return nil
}

// reserve has one reservation come while a run has the slot, get the slot after it, and give it to the next run.
func (d *deep) reserve(ctx context.Context, changes watch.Interface, name string) (time.Duration, error) {
	dr := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name}}
	if err := d.Client.Create(ctx, dr); err != nil {
		return 0, err
	}
	if _, err := reached(ctx, changes, name, batchv1alpha1.ReservationActive); err != nil {
		return 0, err
	}
	ended, err := d.turnstile.Pass(ctx)
	if err != nil {
		return 0, err
	}
	granted, err := reached(ctx, changes, name, batchv1alpha1.ReservationGranted)
	if err != nil {
		return 0, err
	}
	if err := d.Client.Patch(ctx, dr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"release":true}}`))); err != nil {
		return 0, err
	}
	_, err = d.turnstile.Arrive(ctx)
	return granted.Sub(ended), err
}

// reached waits until a reservation is seen in a phase, and returns when.
func reached(ctx context.Context, changes watch.Interface, name string, phase batchv1alpha1.DirectReservationPhase) (time.Time, error) {
	for {
		select {
		case e, open := <-changes.ResultChan():
			if !open {
				return time.Time{}, errWatchEnded
			}
			if dr, ok := e.Object.(*batchv1alpha1.DirectReservation); ok && dr.Name == name && dr.Status.Phase == phase {
				return time.Now(), nil
			}
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}
