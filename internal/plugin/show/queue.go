// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/survey"
	"reprise.dev/reprise/internal/plugin/text"
)

// inLine is how many of those that wait are shown unless --limit says otherwise.
const inLine = 20

// asked is what a person wants to see of queues.
type asked struct {
	// queue alone; "" for all of the namespace.
	queue string
	// limit is how many of those that wait are shown, 0 for all.
	limit int
	wide  bool
}

func queueCommand(f *cli.Factory) *cobra.Command {
	want := asked{limit: inLine}
	watch := false
	cmd := &cobra.Command{
		Use:     "queue [QUEUE]",
		Aliases: []string{"queues"},
		Short:   "Show what runs and what waits in a queue, in order, and why",
		Long: `Show what holds the slots of a queue, and what waits for one: in the order of service, each with what it waits for and about when
it may start by how long recent runs took. Without a name all queues of the namespace are shown.

With --watch a terminal shows it live; elsewhere each change is written as a line. Ctrl-C ends it.

Exit codes: 0; 1 if there is no such queue and nothing names it; 2 misuse; 130 if Ctrl-C has ended it.`,
		Example: `  # all queues of the namespace
  kubectl reprise queue

  # one queue, live
  kubectl reprise queue gpu --watch

  # who waits, and for what
  kubectl reprise queue gpu -o json | jq -r '.waiting[] | [.name, .reason] | @tsv'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.Complete(1, cli.Kind{List: &batchv1alpha1.JobQueueList{}}),
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing it as it changes")
	cmd.Flags().IntVar(&want.limit, "limit", want.limit, "how many of those that wait are shown; 0 shows all")
	output := cli.AddOutput(cmd, "")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if want.limit < 0 {
			return cli.Usagef("--limit is %d: it cannot be negative", want.limit)
		}
		if len(args) == 1 {
			var err error
			if _, want.queue, err = cli.ParseRef(args[0], cli.JobQueue); err != nil {
				return err
			}
		}
		want.wide = output.Wide()
		if watch {
			return watchQueues(cmd.Context(), f, want, output)
		}
		return showQueues(cmd.Context(), f, want, output)
	}
	return cmd
}

func showQueues(ctx context.Context, f *cli.Factory, want asked, output *cli.Output) error {
	c, namespace, err := f.Connect()
	if err != nil {
		return err
	}
	snapshot, err := survey.Most(ctx, c, namespace)
	if err != nil {
		return err
	}
	views, ok := viewsOf(explain.New(snapshot, f.Now()), want)
	if !ok { // and nothing names it
		return cli.Get(ctx, c, namespace, want.queue, &batchv1alpha1.JobQueue{})
	}
	if !output.Human() {
		return output.Value(f, document(views, want))
	}
	if len(views) == 0 {
		f.Notef("there is no queue in namespace %q, and nothing that waits for one\n", namespace)
	}
	for _, line := range drawQueues(views, snapshot.Unread, want, f.Now(), style(f, output)) {
		f.Printf("%s\n", line)
	}
	return nil
}

// viewsOf returns what is to be shown, and false if the queue that was asked for does not exist and nothing names it.
func viewsOf(v *explain.View, want asked) ([]explain.QueueView, bool) {
	names := []string{want.queue}
	if want.queue == "" {
		names = v.Queues()
	}
	most := want.limit
	if most == 0 {
		most = int(^uint(0) >> 1)
	}
	views := []explain.QueueView{}
	for _, name := range names {
		view, ok := v.Queue(name, most)
		if !ok {
			return nil, false
		}
		views = append(views, view)
	}
	return views, true
}

// document is what a script gets: one queue if one was asked for, else a list.
func document(views []explain.QueueView, want asked) any {
	if want.queue != "" && len(views) == 1 {
		return views[0]
	}
	return views
}

func drawQueues(views []explain.QueueView, unread []string, want asked, now time.Time, s text.Style) []string {
	var lines []string
	for i, view := range views {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, drawQueue(view, want, now, s)...)
	}
	if len(unread) > 0 {
		lines = append(lines, single(s, 0, text.Cell{Text: "you may not read " + strings.Join(unread, ", ") + ": less can be told", Colour: text.Yellow})...)
	}
	return lines
}

func drawQueue(v explain.QueueView, want asked, now time.Time, s text.Style) []string {
	lines := single(s, 0, title(v)...)
	if v.Message != "" && v.Total > 0 {
		lines = append(lines, single(s, 2, text.Cell{Text: v.Reason + ": " + v.Message, Colour: text.Yellow})...)
	}
	if len(v.Slots) > 0 {
		table := &text.Table{Indent: 2}
		table.Header("RUNNING", "TYPE", "PHASE", "FOR", "DONE", "NOTE")
		for _, a := range v.Slots {
			table.Row(text.Plain(nameOf(a)), text.Plain(a.Type), text.Cell{Text: a.Phase, Colour: text.Phase(a.Phase)},
				text.Plain(span(a.Since, now)), text.Plain(estimate(a.End, now)), text.Plain(note(a, want.wide)))
		}
		lines = append(lines, table.Lines(s)...)
	}
	if len(v.Waiting) > 0 {
		table := &text.Table{Indent: 2}
		table.Header("WAITING", "#", "TYPE", "FOR", "STARTS", "REASON", "WHY")
		for _, a := range v.Waiting {
			table.Row(text.Plain(nameOf(a)), text.Plain(number(a)), text.Plain(a.Type), text.Plain(span(a.Since, now)),
				text.Plain(estimate(a.Start, now)), text.Cell{Text: a.Reason, Colour: colourOf(a)}, text.Plain(why(a, want.wide)))
		}
		lines = append(lines, table.Lines(s)...)
	}
	if rest := v.Total - len(v.Waiting); rest > 0 {
		lines = append(lines, single(s, 2, text.Cell{Text: fmt.Sprintf("and %d more that wait", rest), Colour: text.Dim})...)
	}
	return lines
}

// title tells the queue in one line: "jq/gpu   2 of 3 slots in use, 7 waiting".
func title(v explain.QueueView) []text.Cell {
	name := text.Cell{Text: "jq/" + v.Name, Colour: text.Bold}
	slots := fmt.Sprintf("%d slots in use, no limit", len(v.Slots))
	if v.Limit != nil {
		slots = fmt.Sprintf("%d of %d slots in use", len(v.Slots), *v.Limit)
	}
	waiting := fmt.Sprintf("%d waiting", v.Total)
	switch {
	case !v.Exists:
		return []text.Cell{name, {Text: "does not exist", Colour: text.Red}, text.Plain(waiting)}
	case v.Suspended:
		return []text.Cell{name, text.Plain(slots + ", " + waiting), {Text: "suspended", Colour: text.Red}}
	default:
		return []text.Cell{name, text.Plain(slots + ", " + waiting)}
	}
}

// single returns one line, cut off where the others are.
func single(s text.Style, indent int, cells ...text.Cell) []string {
	table := &text.Table{Indent: indent}
	table.Row(cells...)
	return table.Lines(s)
}

// note tells what is worth knowing of something that holds a slot.
func note(a explain.Answer, wide bool) string {
	if a.Reason == a.Phase && !wide {
		return ""
	}
	return why(a, wide)
}

func why(a explain.Answer, wide bool) string {
	if wide {
		return sentence(append([]string{a.Message}, a.Details...)...)
	}
	return a.Message
}

func number(a explain.Answer) string {
	if a.Place == nil {
		return "-"
	}
	return strconv.Itoa(a.Place.Number)
}

// span tells how long it has been since a time, nothing if that is not known.
func span(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return text.For(now.Sub(since))
}

// estimate tells about when something happens, nothing if that is not known.
func estimate(t, now time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case !t.After(now):
		return "soon"
	default:
		return "~" + text.For(t.Sub(now))
	}
}
