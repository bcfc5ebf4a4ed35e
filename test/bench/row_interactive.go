// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// interactiveReservations is how many one repetition grants: of these, three are slower than 99 of 100. Two make it 600.
const interactiveReservations = 300

// interactive asks what a person waits for once the slot is there, behind a long queue, against single writes of one client. The
// slowest are those during which the API server collects its garbage of so many runs, or etcd waits for its disk. Nobody who makes
// three writes is spared that: so each wait is followed by a chain of as many raw writes, and both tails are compared.
func interactive() Row {
	return Row{
		Name:    "interactive",
		About:   "100,000 runs wait, and a person reserves the only slot: how long after the work before it has ended is it granted, against one write of one client?",
		Repeats: 2, // a manager that reads 100,000 runs takes its time
		Plane:   stocked,
		Sides:   []Side{{Name: "reprise", Measure: interactiveOfReprise}, {Name: "raw", Measure: twoWrites}},
		Figures: []Figure{
			{Name: "ratio", About: "99 of 100 reservations, against the median of single writes", Unit: "ratio", Of: interactiveIn("reservation-p99", "write"), Goal: AtMost(5)},
			{Name: "median-ratio", About: "the median of both", Unit: "ratio", Of: interactiveIn("reservation-ms", "write")},
			{Name: "p99-ratio", About: "99 of 100 of both", Unit: "ratio", Of: interactiveIn("reservation-p99", "write-p99")},
			{Name: "chain-ratio", About: "99 of 100 reservations, against 99 of 100 chains of three raw writes made in between", Unit: "ratio", Of: interactiveTails},
			{Name: "chain-floor", About: "99 of 100 of these chains, against the median of single writes", Unit: "ratio", Of: interactiveIn("chain-p99", "write")},
			{Name: "median", About: "a reservation's wait, median", Unit: "ms", Of: Value("reprise", "reservation-ms")},
			{Name: "p99", About: "the same, 99 of 100", Unit: "ms", Of: Value("reprise", "reservation-p99")},
			{Name: "chain", About: "a chain of three raw writes, median", Unit: "ms", Of: Value("reprise", "chain-ms")},
			{Name: "chain-p99", About: "the same, 99 of 100", Unit: "ms", Of: Value("reprise", "chain-p99")},
			{Name: "write", About: "one write of one client, median", Unit: "ms", Of: Value("raw", "write")},
			{Name: "write-p99", About: "the same, 99 of 100", Unit: "ms", Of: Value("raw", "write-p99")},
		},
	}
}

// interactiveIn is a reservation's wait in writes.
func interactiveIn(wait, write string) func(map[string]Sample) float64 {
	return func(sides map[string]Sample) float64 { return sides["reprise"][wait] / sides["raw"][write] }
}

// interactiveTails is the tail of the waits against that of the chains of the same repetition.
func interactiveTails(sides map[string]Sample) float64 {
	return sides["reprise"]["reservation-p99"] / sides["reprise"]["chain-p99"]
}

func interactiveOfReprise(ctx context.Context, b *Bench) (Sample, error) {
	c, err := b.chains(ctx, interactiveReservations)
	if err != nil {
		return nil, err
	}
	return withManager(ctx, b, deepest, func(ctx context.Context, d *deep) error {
		if err := d.occupy(ctx); err != nil {
			return err
		}
		if err := d.reserved(ctx, interactiveReservations, c.next); err != nil {
			return err
		}
		d.sample["chain-ms"], d.sample["chain-p99"] = quantile(c.times, 0.5), quantile(c.times, 0.99)
		return nil
	})
}

// reservations measures what a reservation costs at a depth.
func (d *deep) reservations(ctx context.Context) error {
	return d.reserved(ctx, depthReservations, d.compare)
}

// reserved measures how long the next in line waits for its slot once the work before it has ended, n times. Between two of them a
// run has the slot, which is part of what is counted as a reservation's requests and CPU, and between is called.
func (d *deep) reserved(ctx context.Context, n int, between func(context.Context) error) error {
	changes, err := d.Tail(ctx, &batchv1alpha1.DirectReservationList{}, d.namespace)
	if err != nil {
		return err
	}
	defer changes.Stop()
	waits, err := d.cost(ctx, "reservation", n, func() (waits []float64, err error) {
		for i := range n {
			wait, err := d.reserve(ctx, changes, reservationName(i))
			if err != nil {
				return nil, err
			}
			waits = append(waits, milliseconds(wait))
			if err := between(ctx); err != nil {
				return nil, err
			}
		}
		return waits, nil
	})
	if err != nil {
		return err
	}
	d.sample["reservation-p99"] = quantile(waits, 0.99)
	return nil
}

// reservationName is that of the i-th reservation in its namespace.
func reservationName(i int) string { return fmt.Sprintf("direct-%03d", i) }

// reserve has one reservation come while a run has the slot, get the slot after it, and give it to the next run.
func (d *deep) reserve(ctx context.Context, changes *Tail, name string) (time.Duration, error) {
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
func reached(ctx context.Context, changes *Tail, name string, phase batchv1alpha1.DirectReservationPhase) (time.Time, error) {
	for {
		e, err := changes.Next(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if dr, ok := e.Object.(*batchv1alpha1.DirectReservation); ok && dr.Name == name && dr.Status.Phase == phase {
			return time.Now(), nil
		}
	}
}
