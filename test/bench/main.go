// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are the flags.
type options struct {
	rows    *regexp.Regexp
	repeats int
	long    bool
	check   bool
	out     string
	publish string
}

func main() {
	ctrl.SetLogger(logr.Discard()) // the libraries complain otherwise
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := benchmark(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	rows := flags.String("rows", "", "Measure only the rows whose names this regular expression matches.")
	flags.IntVar(&o.repeats, "repeats", 5, "How often each side is measured.")
	flags.BoolVar(&o.long, "full", false, "Measure the long rows, too.")
	flags.BoolVar(&o.check, "check", false, "Fail if a figure is worse than its range.")
	flags.StringVar(&o.out, "json", "", "File for the figures as JSON.")
	flags.StringVar(&o.publish, "markdown", "", "Measure nothing, but enter the figures of these JSON files, separated by commas, in "+figuresPage+".")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.repeats < 1 {
		return o, fmt.Errorf("-repeats is %d; use 1 or more", o.repeats)
	}
	var err error
	o.rows, err = regexp.Compile("^(" + *rows + ")$")
	if *rows == "" {
		o.rows = regexp.MustCompile("")
	}
	return o, err
}

// benchmark measures what the arguments ask for, and prints the table to out.
func benchmark(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.publish != "" {
		return publish(strings.Split(o.publish, ","), figuresPage)
	}
	ranges, err := readRanges(rangesFile, Rows())
	if err != nil {
		return err
	}
	rows := slices.DeleteFunc(Rows(), func(r Row) bool { return !o.rows.MatchString(r.Name) || r.Long && !o.long })
	if len(rows) == 0 {
		return fmt.Errorf("-rows is %q: there is no such row", o.rows)
	}
	begun := time.Now()
	manager, remove, err := buildManager(ctx)
	if err != nil {
		return err
	}
	defer remove()
	report := newReport(begun)
	var failed error
	for len(rows) > 0 && ctx.Err() == nil {
		n := sharing(rows)
		failed = errors.Join(failed, o.session(ctx, rows[:n], manager, progress, report))
		rows = rows[n:]
	}
	report.Total = time.Since(begun).Seconds()
	return errors.Join(failed, report.tell(o, ranges, out))
}

// sharing is how many of the first rows share a control plane.
func sharing(rows []Row) int {
	alone := func(row Row) bool { return row.Plane == nil || row.Plane != rows[0].Plane }
	if others := slices.IndexFunc(rows[1:], alone); others >= 0 {
		return 1 + others
	}
	return len(rows)
}

// session measures rows on one control plane, and enters them in the report. A row that fails leaves the others be.
func (o options) session(ctx context.Context, rows []Row, manager string, progress io.Writer, report *Report) (err error) {
	begun := time.Now()
	var plane Plane
	if shared := rows[0].Plane; shared != nil {
		plane = *shared
	}
	b, err := open(ctx, plane, manager, progress)
	if err != nil {
		return fmt.Errorf("%s: %w", rows[0].Name, err)
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, row := range rows {
		_, _ = fmt.Fprintf(progress, "== %s: %s\n", row.Name, row.About)
		samples, failed := alternate(ctx, b, row.Sides, row.repeats(o.repeats, o.long))
		if failed == nil {
			failed = report.add(row, samples)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", row.Name, failed))
		}
		report.Seconds[row.Name] = time.Since(begun).Seconds()
		begun = time.Now()
	}
	return err
}

// tell prints the table, keeps the figures and checks them.
func (r *Report) tell(o options, ranges map[string]*Goal, out io.Writer) error {
	if err := r.table(out); err != nil {
		return err
	}
	if o.out != "" {
		file, err := os.Create(o.out)
		if err != nil {
			return err
		}
		if err := errors.Join(r.write(file), file.Close()); err != nil {
			return err
		}
	}
	if !o.check {
		return nil
	}
	var worse error
	for _, w := range r.check(ranges) {
		worse = errors.Join(worse, errors.New(w))
	}
	return worse
}

// alternate measures each side so often, in turn.
func alternate(ctx context.Context, b *Bench, sides []Side, repeats int) (map[string][]Sample, error) {
	samples := map[string][]Sample{}
	for i := range repeats {
		turn := slices.Clone(sides)
		if i%2 == 1 {
			slices.Reverse(turn) // whatever drifts, drifts for all
		}
		for _, side := range turn {
			sample, err := side.Measure(ctx, b)
			if err != nil {
				return nil, fmt.Errorf("%s, repetition %d: %w", side.Name, i+1, err)
			}
			b.Logf("%s %d: %v", side.Name, i+1, sample)
			samples[side.Name] = append(samples[side.Name], sample)
		}
	}
	return samples, nil
}
