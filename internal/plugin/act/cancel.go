// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/retry"
)

type cancelOptions struct {
	patience
	output *cli.Output
}

func cancelCommand(f *cli.Factory) *cobra.Command {
	o := &cancelOptions{}
	cmd := &cobra.Command{
		Use:   "cancel RUN|jg/GROUP...",
		Short: "Cancel runs and groups",
		Long: `Cancel runs and groups: what waits never begins, and work that is under way is stopped. It cannot be taken back, and nothing of it
is retried automatically. Of a chain any run may be named: the latest is cancelled.

Exit codes: 0 asked for, or cancelled before, and with --wait stopped; 1 something ended otherwise before, or does not exist;
124 --timeout was over; 130 interrupted.`,
		Example: `  # Stop a run, and stay until its work has stopped
  kubectl reprise cancel nightly-report-29384710 --wait

  # A group with all its members
  kubectl reprise cancel jg/month-end`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: f.Complete(0,
			cli.Kind{List: &batchv1alpha1.JobRunList{}, Keep: unfinished},
			cli.Kind{Prefix: "jg/", List: &batchv1alpha1.JobGroupList{}, Keep: unfinished}),
	}
	o.addTo(cmd, false)
	cmd.Flag("wait").Usage = "stay until the work has stopped"
	o.output = cli.AddOutput(cmd, "is to be cancelled")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), f, args) }
	return cmd
}

func (o *cancelOptions) run(ctx context.Context, f *cli.Factory, args []string) error {
	if err := o.check(o.output); err != nil {
		return err
	}
	if err := allOf(args, cli.JobRun, cli.JobGroup); err != nil {
		return err
	}
	c, namespace, err := f.Connect()
	if err != nil {
		return err
	}
	var asked []client.Object
	err = each(ctx, f, args, func(arg string) error {
		object, err := o.cancel(ctx, f, c, namespace, arg)
		if object != nil {
			asked = append(asked, object)
		}
		return err
	})
	if !o.wait {
		return err
	}
	for _, object := range asked {
		end, stayErr := o.stay(ctx, f, c, object)
		if stayErr == nil && end.phase != string(batchv1alpha1.JobRunCancelled) {
			stayErr = fmt.Errorf("%s ended before it could be cancelled: %w", end.name, failing(end))
		}
		if stayErr != nil {
			return stayErr
		}
		f.Notef("%s is %s\n", end.name, end.phase)
	}
	return err
}

func failing(end outcome) error {
	if err := end.err(); err != nil {
		return err
	}
	return fmt.Errorf("it is %s", end.phase)
}

// allOf refuses misspelt references before anything is done.
func allOf(args []string, kinds ...string) error {
	for _, arg := range args {
		if _, _, err := cli.ParseRef(arg, kinds...); err != nil {
			return err
		}
	}
	return nil
}

// cancel returns what it has asked to end, nil if that has ended already.
func (o *cancelOptions) cancel(ctx context.Context, f *cli.Factory, c client.WithWatch, namespace, arg string) (client.Object, error) {
	kind, name, err := cli.ParseRef(arg, cli.JobRun, cli.JobGroup)
	if err != nil {
		return nil, err
	}
	object, _ := cli.New(kind)
	if err := cli.Get(ctx, c, namespace, name, object); err != nil {
		return nil, err
	}
	if r, ok := object.(*batchv1alpha1.JobRun); ok {
		if object, err = latest(ctx, c, r); err != nil {
			return nil, err
		}
	}
	switch phase := phaseOf(object); {
	case phase == string(batchv1alpha1.JobRunCancelled):
		f.Notef("%s is Cancelled already\n", object.GetName())
		return nil, nil
	case !unfinished(object) && !goesOn(object):
		return nil, fmt.Errorf("%s is %s: there is nothing to cancel", object.GetName(), phase)
	}
	if err := change(ctx, c, object, nil, map[string]any{"cancel": true}); err != nil {
		return nil, err
	}
	return object, o.output.Object(f, object)
}

// goesOn says whether a run has failed and is to be retried by one that does not exist yet.
func goesOn(object client.Object) bool {
	r, ok := object.(*batchv1alpha1.JobRun)
	return ok && retry.Decide(r).Due
}

func phaseOf(object client.Object) string {
	switch o := object.(type) {
	case *batchv1alpha1.JobRun:
		return string(o.Status.Phase)
	case *batchv1alpha1.JobGroup:
		return string(o.Status.Phase)
	default:
		return ""
	}
}
