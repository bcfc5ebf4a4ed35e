// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// depthAdmissions is how many runs are admitted one after the other, in one repetition at one depth.
	depthAdmissions = 150
	// depthFires is how many ticks of one schedule are waited for, one a second.
	depthFires = 8
	// depthReservations is how many reservations are granted one after the other.
	depthReservations = 100
)

// depth asks whether a long queue makes anything slow or large. All depths are there at once, in namespaces of their own, so
// that the API server is the same for all of them.
func depth() Row {
	return Row{
		Name:    "depth",
		About:   "What do an admission, a fire, a reservation and a byte of memory cost when 1,000, 10,000 and 100,000 runs wait?",
		Repeats: 1, // the manager's memory takes its time to settle
		Plane:   stocked,
		Sides: []Side{
			{Name: depthSide(0), Measure: memoryOfNothing},
			{Name: depthSide(depths[0]), Measure: costAt(depths[0])},
			{Name: depthSide(depths[1]), Measure: costAt(depths[1])},
			{Name: depthSide(depths[2]), Measure: costAt(depths[2])},
		},
		Figures: slices.Concat(flat("admission"), flat("fire"), flat("reservation"), memoryFigures()),
	}
}

// depthSide is the name of the side with so many runs.
func depthSide(waiting int) string { return fmt.Sprintf("at-%d", waiting) }

// flat are the figures of one thing that is to cost the same at every depth. The depths are measured one after the other, minutes
// apart, so its time is counted in writes that one client made in between: whatever drifts on the machine drifts for both.
func flat(what string) []Figure {
	least, middle, most := depthSide(depths[0]), depthSide(depths[1]), depthSide(depths[2])
	return []Figure{
		{Name: what, About: "time of " + what + " at 100,000 waiting runs, against 1,000, counted in single writes made in between", Unit: "ratio", Of: Ratio(most, least, what+"-writes"), Goal: AtMost(1.2)},
		{Name: what + "-10k", About: "time of " + what + " at 10,000, likewise", Unit: "ratio", Of: Ratio(middle, least, what+"-writes"), Goal: AtMost(1.2)},
		{Name: what + "-requests", About: "API requests of " + what + " at 100,000, against 1,000", Unit: "ratio", Of: Ratio(most, least, what+"-requests"), Goal: AtMost(1.2)},
		{Name: what + "-cpu", About: "the manager's CPU for " + what + " at 100,000, against 1,000", Unit: "ratio", Of: Ratio(most, least, what+"-cpu")},
		{Name: what + "-ms", About: "time of " + what + " at 100,000, median", Unit: "ms", Of: Value(most, what+"-ms")},
		{Name: what + "-least-ms", About: "the same at 1,000", Unit: "ms", Of: Value(least, what+"-ms")},
	}
}

// deep is one repetition at one depth, with a manager that has seen the queue.
type deep struct {
	*Bench
	*stock
	turnstile *Turnstile
	manager   *Manager
	sample    Sample

	other  *batchv1alpha1.JobRun // of a namespace that no manager sees, for what is compared
	writes []float64             // how long those took, in milliseconds
}

// withManager has f measure at a depth, and ends its manager.
func withManager(ctx context.Context, b *Bench, waiting int, f func(ctx context.Context, d *deep) error) (sample Sample, err error) {
	s, turnstile, err := b.restored(ctx, waiting)
	if err != nil {
		return nil, err
	}
	d := &deep{Bench: b, stock: s, turnstile: turnstile, sample: Sample{}}
	if err := d.blank(ctx, b); err != nil {
		return nil, err
	}
	if d.manager, err = b.Manage(ctx, d.namespace); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.manager.Stop()) }()
	ctx, cancel := d.manager.while(ctx)
	defer cancel()
	if err := d.seen(ctx, b, d.manager); err != nil {
		return nil, err
	}
	d.sample["seen"] = time.Since(d.manager.Started()).Seconds()
	return d.sample, f(ctx, d)
}

func memoryOfNothing(ctx context.Context, b *Bench) (Sample, error) {
	return withManager(ctx, b, 0, func(ctx context.Context, d *deep) error { return d.memory(ctx) })
}

func costAt(waiting int) func(context.Context, *Bench) (Sample, error) {
	return func(ctx context.Context, b *Bench) (Sample, error) {
		ns, err := b.Namespace(ctx)
		if err != nil {
			return nil, err
		}
		other := b.HTTPRun(ns, 0)
		if err := b.Client.Create(ctx, other); err != nil {
			return nil, err
		}
		return withManager(ctx, b, waiting, func(ctx context.Context, d *deep) error {
			d.other = other
			if waiting == deepest {
				if err := d.memory(ctx); err != nil {
					return err
				}
			}
			for _, measure := range []func(context.Context) error{d.fires, d.occupy, d.admissions, d.reservations, d.worked} {
				if err := measure(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// compare makes a write between two of what is measured.
func (d *deep) compare(ctx context.Context) error {
	metav1.SetMetaDataLabel(&d.other.ObjectMeta, "writes", strconv.Itoa(len(d.writes)))
	start := time.Now()
	err := d.Client.Update(ctx, d.other, asManager)
	d.writes = append(d.writes, milliseconds(time.Since(start)))
	return err
}

// cost enters what n of something have cost: the median of the times, also counted in writes made in between, if any were, and the
// manager's requests and CPU for each.
func (d *deep) cost(ctx context.Context, what string, n int, f func() ([]float64, error)) ([]float64, error) {
	d.writes = nil
	before, err := d.manager.Usage(ctx)
	if err != nil {
		return nil, err
	}
	times, err := f()
	if err != nil {
		return nil, err
	}
	after, err := d.manager.Usage(ctx)
	if err != nil {
		return nil, err
	}
	d.sample[what+"-ms"] = quantile(times, 0.5)
	if len(d.writes) > 0 {
		d.sample[what+"-writes"] = quantile(times, 0.5) / quantile(d.writes, 0.5)
	}
	d.sample[what+"-requests"] = (after.Sum() - before.Sum()) / float64(n)
	d.sample[what+"-cpu"] = (after.CPU - before.CPU) / float64(n) * 1000
	return times, nil
}

// occupy has a run take the queue's only slot.
func (d *deep) occupy(ctx context.Context) error {
	if err := d.Resume(ctx, d.namespace); err != nil {
		return err
	}
	_, err := d.turnstile.Arrive(ctx)
	return err
}

// admissions measures how long that slot stays empty between two runs. The last one keeps it.
func (d *deep) admissions(ctx context.Context) error {
	_, err := d.cost(ctx, "admission", depthAdmissions, func() (gaps []float64, err error) {
		for range depthAdmissions {
			went, err := d.turnstile.Pass(ctx)
			if err != nil {
				return nil, err
			}
			came, err := d.turnstile.Arrive(ctx)
			if err != nil {
				return nil, err
			}
			gaps = append(gaps, milliseconds(came.Sub(went)))
			if err := d.compare(ctx); err != nil {
				return nil, err
			}
		}
		return gaps, nil
	})
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
