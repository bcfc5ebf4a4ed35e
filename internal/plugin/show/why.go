// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/survey"
	"reprise.dev/reprise/internal/plugin/text"
)

func whyCommand(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why RUN|dr/NAME",
		Short: "Tell why a run or a reservation does not run, or what it does",
		Long: `Tell why a run or a reservation does not run: its place in the queue, what it waits for and who holds that, when it may start by how
long recent runs took, and what you can do. Of one that is at work it tells since when and where, of one that has ended how and
what follows.

Exit codes: 0, whatever the answer; 1 if there is no such run; 2 misuse. For scripts use -o json: the field reason is one word.`,
		Example: `  kubectl reprise why nightly-1795417200

  # a reservation
  kubectl reprise why dr/maria

  # the reason alone
  kubectl reprise why nightly-1795417200 -o json | jq -r .reason`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: f.Complete(1, cli.Kind{List: &batchv1alpha1.JobRunList{}},
			cli.Kind{Prefix: "dr/", List: &batchv1alpha1.DirectReservationList{}}),
	}
	output := cli.AddOutput(cmd, "")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, name, err := cli.ParseRef(args[0], cli.JobRun, cli.DirectReservation)
		if err != nil {
			return err
		}
		c, namespace, err := f.Connect()
		if err != nil {
			return err
		}
		object, _ := cli.New(kind)
		if err := cli.Get(cmd.Context(), c, namespace, name, object); err != nil {
			return err
		}
		snapshot, err := survey.Most(cmd.Context(), c, namespace)
		if err != nil {
			return err
		}
		view, ask := explain.New(snapshot, f.Now()), (*explain.View).Run
		if kind == cli.DirectReservation {
			ask = (*explain.View).Reservation
		}
		answer, ok := ask(view, name)
		if !ok {
			return fmt.Errorf("%s was deleted a moment ago", args[0])
		}
		if !output.Human() {
			return output.Value(f, answer)
		}
		for _, line := range drawAnswer(answer, f.Now(), f.Style()) {
			f.Printf("%s\n", line)
		}
		return nil
	}
	return cmd
}

// drawAnswer returns an answer as lines. They are not cut off: every word may count.
func drawAnswer(a explain.Answer, now time.Time, s text.Style) []string {
	title := s.Paint(text.Bold, nameOf(a)) + "   " + s.Paint(text.Phase(a.Phase), a.Phase)
	if a.Reason != a.Phase && a.Reason != "" {
		title += "   " + s.Paint(colourOf(a), a.Reason)
	}
	if !a.Since.IsZero() {
		title += "   " + s.Paint(text.Dim, text.Until(a.Since, now))
	}
	lines := []string{title}
	if a.Message != "" {
		lines = append(lines, "  "+text.Line(a.Message))
	}
	for _, detail := range a.Details {
		lines = append(lines, "  - "+text.Line(detail))
	}
	if where := standing(a, now); where != "" {
		lines = append(lines, "  "+where)
	}
	for i, hint := range a.Hints {
		if i == 0 {
			lines = append(lines, "  "+s.Paint(text.Bold, "What you can do:"))
		}
		lines = append(lines, "  - "+text.Line(hint))
	}
	return lines
}

// standing tells the place in the queue, and the estimates.
func standing(a explain.Answer, now time.Time) string {
	var said []string
	switch {
	case a.Place != nil:
		said = append(said, fmt.Sprintf("place %d of %d in jq/%s", a.Place.Number, a.Place.Of, a.Queue))
	case a.Waits && a.Queue != "":
		said = append(said, fmt.Sprintf("in jq/%s, out of line until then", a.Queue))
	}
	switch {
	case !a.Start.IsZero():
		said = append(said, "may start "+about(a.Start, now))
	case !a.End.IsZero():
		said = append(said, "may be done "+about(a.End, now))
	}
	return strings.Join(said, "; ")
}

// about tells an estimate.
func about(t, now time.Time) string {
	if !t.After(now) {
		return "any moment"
	}
	return fmt.Sprintf("in about %s, by how long recent runs took", text.For(t.Sub(now)))
}

// nameOf is how an object is named: runs by their names alone.
func nameOf(a explain.Answer) string {
	if a.Kind == admission.DirectReservation {
		return "dr/" + a.Name
	}
	return a.Name
}

// colourOf is that of the reason: of one that waits for a person red, of one that waits for others yellow.
func colourOf(a explain.Answer) text.Colour {
	switch {
	case a.Waits && a.Place == nil && a.Reason != admission.CodeBackOff && len(a.Hints) > 0:
		return text.Red
	case a.Waits:
		return text.Yellow
	default:
		return text.Phase(a.Phase)
	}
}
