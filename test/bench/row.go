// SPDX-License-Identifier: Apache-2.0

package main

import "context"

// Row is one question: sides that are measured in turn, and the figures that answer it.
type Row struct {
	// Name is one word, used in files and by -rows.
	Name string
	// About is the question, as a sentence.
	About string
	// Long leaves the row to -full.
	Long bool
	// Repeats is how often each side is measured at most, for a row that is not Long without -full; 0: as often as -repeats says.
	Repeats int
	// Plane is the control plane on which the row is measured; nil: one of its own, with nothing on it. Rows that stand one after
	// the other with the same one share it.
	Plane *Plane
	// Sides are measured in this order, and in the reverse order in every other repetition.
	Sides []Side
	// Figures are made of what the sides return, and printed in this order.
	Figures []Figure
}

// Plane is how a control plane is made ready.
type Plane struct {
	// Kubernetes starts it with kube-controller-manager's Job controller, garbage collector and the like.
	Kubernetes bool
	// Setup prepares what is shared on it, such as 100,000 runs; may be nil.
	Setup func(ctx context.Context, b *Bench) error
}

// repeats is how often each side is measured, of so often as was asked for.
func (r *Row) repeats(asked int, full bool) int {
	if r.Repeats == 0 || full && !r.Long {
		return asked
	}
	return min(asked, r.Repeats)
}

// Side is one of the things that are compared.
type Side struct {
	// Name is one word.
	Name string
	// Measure has one repetition, and returns what it measured by name.
	Measure func(ctx context.Context, b *Bench) (Sample, error)
}

// Sample is what one repetition of one side measured, by name.
type Sample map[string]float64

// Figure is a number that is printed: a ratio, or something measured.
type Figure struct {
	// Name tells it from the row's others; the range file knows it as "row/name".
	Name string
	// About is what it is, in a few words.
	About string
	// Unit is "ratio", "s", "ms", "B", "runs/s", "requests".
	Unit string
	// Of returns its value in one repetition, from the samples of the sides by name. Ratios are made of the two sides of the
	// same repetition, which had the same machine.
	Of func(sides map[string]Sample) float64
	// Goal is what the project aims at; nil: it is shown for what it is.
	Goal *Goal
}

// Goal is the better side of a bound.
type Goal struct {
	// Least is what the figure should reach, Most what it should not exceed; one of them is set.
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
}

// AtLeast is the goal to reach v.
func AtLeast(v float64) *Goal { return &Goal{Least: &v} }

// AtMost is the goal not to exceed v.
func AtMost(v float64) *Goal { return &Goal{Most: &v} }

// Met reports whether a value meets the goal.
func (g *Goal) Met(v float64) bool {
	return (g.Least == nil || v >= *g.Least) && (g.Most == nil || v <= *g.Most)
}

// Value is the figure of one measured name of a side.
func Value(side, name string) func(map[string]Sample) float64 {
	return func(sides map[string]Sample) float64 { return sides[side][name] }
}

// Ratio is how many times one side's measured name is the other's.
func Ratio(over, under, name string) func(map[string]Sample) float64 {
	return func(sides map[string]Sample) float64 { return sides[over][name] / sides[under][name] }
}

// Rows are all there are, in the order in which they are printed.
func Rows() []Row {
	return []Row{
		throughput(),
		turnaround(),
		jobPath(),
		cost(),
		recovery(),
		skew(),
		depth(),
		interactive(),
		restart(),
		skewWithBacklog(),
		recoveryOfTenThousand(),
		skewDefaults(),
		skewOfMany(),
		idle(),
		manyPods(),
	}
}
