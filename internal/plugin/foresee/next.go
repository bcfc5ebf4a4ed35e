// SPDX-License-Identifier: Apache-2.0

package foresee

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/text"
)

const (
	// told is how many ticks are told unless --count says otherwise, and most is how many can be.
	told = 5
	most = 1000
)

func nextCommand(f *cli.Factory) *cobra.Command {
	count, file := told, ""
	cmd := &cobra.Command{
		Use:   "next SCHEDULEDJOB | -f FILE",
		Short: "Tell when a ScheduledJob fires next, also one that is not applied yet",
		Long: `Tell the coming ticks of a ScheduledJob in the zone of its schedule, by the manager's own rules, and what may keep them from
firing: a suspension, maxQueuedRuns, an overlap.

Times that a change of the clock touches are marked:
  moved     the time does not exist that day; it fires right after the gap
  doubled   the clock shows the time twice, and an interval schedule fires both times

With -f nothing is asked of a cluster. Exit codes: 0, also if nothing is to come; 1 if the schedule is not valid; 2 misuse.`,
		Example: `  # the next five times
  kubectl reprise next nightly

  # the next fifty of a schedule that is not applied yet
  kubectl reprise next -f nightly.yaml --count 50

  # for a script
  kubectl reprise next nightly -c 1 -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.Complete(1, cli.Kind{List: &batchv1alpha1.ScheduledJobList{}}),
	}
	cmd.Flags().IntVarP(&count, "count", "c", count, fmt.Sprintf("how many times to tell, at most %d", most))
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file of ScheduledJobs, - for the standard input")
	output := cli.AddOutput(cmd, "")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case (len(args) == 1) == (file != ""):
			return cli.Usagef("name one ScheduledJob, or a file with -f")
		case count < 1 || count > most:
			return cli.Usagef("--count is %d: it can be 1 to %d", count, most)
		}
		subjects, err := subjectsOf(cmd.Context(), f, args, file)
		if err != nil {
			return err
		}
		return tell(f, output, subjects, count)
	}
	return cmd
}

func subjectsOf(ctx context.Context, f *cli.Factory, args []string, file string) ([]subject, error) {
	if file != "" {
		return fromFile(ctx, f, file)
	}
	_, name, err := cli.ParseRef(args[0], cli.ScheduledJob)
	if err != nil {
		return nil, err
	}
	c, namespace, err := f.Connect()
	if err != nil {
		return nil, err
	}
	s, err := observe(ctx, c, namespace, name)
	return []subject{s}, err
}

// fromFile reads the ScheduledJobs of a file. Other objects in it have no schedule.
func fromFile(ctx context.Context, f *cli.Factory, file string) ([]subject, error) {
	objects, err := f.ReadFile(ctx, file)
	if err != nil {
		return nil, err
	}
	var subjects []subject
	for _, o := range objects {
		if sj, ok := o.(*batchv1alpha1.ScheduledJob); ok {
			sj.CreationTimestamp, sj.Status = metav1.NewTime(f.Now()), batchv1alpha1.ScheduledJobStatus{}
			fill(&sj.Spec)
			subjects = append(subjects, subject{sj: sj, unapplied: true})
		}
	}
	if len(subjects) == 0 {
		return nil, fmt.Errorf("%s holds no ScheduledJob", file)
	}
	return subjects, nil
}

// fill sets what the API server would: a file has no defaults.
func fill(spec *batchv1alpha1.ScheduledJobSpec) {
	if spec.MaxQueuedRuns == 0 {
		spec.MaxQueuedRuns = 100
	}
}

// tell writes the forecasts. With several, one whose schedule is not valid does not keep the others from being told.
func tell(f *cli.Factory, output *cli.Output, subjects []subject, count int) error {
	var all []Forecast
	var failed error
	for _, s := range subjects {
		forecast, err := forecast(s, count, f.Now())
		if err != nil {
			if failed != nil {
				f.Notef("error: %s\n", text.Line(failed.Error()))
			}
			failed = fmt.Errorf("ScheduledJob %s: %w", s.sj.Name, err)
			continue
		}
		all = append(all, forecast)
	}
	if !output.Human() {
		return write(f, output, all, len(subjects), failed)
	}
	for i, forecast := range all {
		if i > 0 {
			f.Printf("\n")
		}
		for _, line := range draw(forecast, f.Now(), f.Style()) {
			f.Printf("%s\n", line)
		}
	}
	return failed
}

// write gives a script one object for one ScheduledJob, and a list for several.
func write(f *cli.Factory, output *cli.Output, all []Forecast, asked int, failed error) error {
	var err error
	switch {
	case failed != nil && len(all) == 0:
	case asked == 1:
		err = output.Value(f, all[0])
	default:
		err = output.Value(f, all)
	}
	if err != nil {
		return err
	}
	return failed
}

// draw returns a forecast as lines.
func draw(forecast Forecast, now time.Time, s text.Style) []string {
	title := "sj/" + forecast.Name
	if forecast.Schedule != "" {
		title += "   " + forecast.Schedule + "   " + forecast.TimeZone
	}
	lines := []string{s.Paint(text.Bold, title)}
	if len(forecast.Fires) > 0 {
		table := &text.Table{Indent: 2}
		table.Header("TIME", "UTC", "WHEN", "NOTE")
		for _, fire := range forecast.Fires {
			table.Row(cells(fire, now)...)
		}
		lines = append(lines, table.Lines(s)...)
	}
	for _, note := range forecast.Notes {
		lines = append(lines, "  "+s.Paint(text.Yellow, note))
	}
	return lines
}

func cells(fire Fire, now time.Time) []text.Cell {
	in := fire.Time
	utc := in.UTC().Format(time.RFC3339)
	if _, offset := in.Zone(); offset == 0 {
		utc = "" // it would say the same
	}
	return []text.Cell{
		text.Plain(in.Format("Mon 2006-01-02 15:04:05 MST")), {Text: utc, Colour: text.Dim},
		text.Plain(text.Until(in, now)), {Text: fire.Note, Colour: text.Yellow},
	}
}
