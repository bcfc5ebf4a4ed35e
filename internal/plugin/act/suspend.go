// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
)

func suspendCommand(f *cli.Factory) *cobra.Command {
	cmd := switchCommand(f, true)
	cmd.Use = "suspend SCHEDULEDJOB|jq/QUEUE..."
	cmd.Short = "Suspend ScheduledJobs and queues"
	cmd.Long = `Suspend ScheduledJobs and queues. A suspended ScheduledJob fires no more; ticks that pass meanwhile are never fired. A suspended
queue starts nothing; what waits keeps its place. What runs goes on.

Exit codes: 0 suspended, or it was before; 1 it could not be; 130 interrupted.`
	cmd.Example = `  # No more reports until further notice
  kubectl reprise suspend nightly-report

  # Start nothing of the queue gpu
  kubectl reprise suspend jq/gpu`
	return cmd
}

func resumeCommand(f *cli.Factory) *cobra.Command {
	cmd := switchCommand(f, false)
	cmd.Use = "resume SCHEDULEDJOB|jq/QUEUE..."
	cmd.Short = "Resume what was suspended"
	cmd.Long = `Resume ScheduledJobs and queues that were suspended. Ticks that have passed meanwhile are not fired. To see what a queue would do
first: kubectl reprise plan.

Exit codes: 0 resumed, or it was not suspended; 1 it could not be; 130 interrupted.`
	cmd.Example = `  kubectl reprise resume nightly-report jq/gpu`
	return cmd
}

// switchCommand sets spec.suspend.
func switchCommand(f *cli.Factory, suspend bool) *cobra.Command {
	done, already := "resumed", "is not suspended"
	if suspend {
		done, already = "suspended", "is suspended already"
	}
	keep := func(o client.Object) bool { return cli.Suspended(o) != suspend }
	cmd := &cobra.Command{
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: f.Complete(0,
			cli.Kind{List: &batchv1alpha1.ScheduledJobList{}, Keep: keep},
			cli.Kind{Prefix: "jq/", List: &batchv1alpha1.JobQueueList{}, Keep: keep}),
	}
	output := cli.AddOutput(cmd, done)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := allOf(args, cli.ScheduledJob, cli.JobQueue); err != nil {
			return err
		}
		c, namespace, err := f.Connect()
		if err != nil {
			return err
		}
		return each(cmd.Context(), f, args, func(arg string) error {
			object, err := switched(cmd.Context(), c, namespace, arg)
			if err != nil {
				return err
			}
			if cli.Suspended(object) == suspend {
				f.Notef("%s %s\n", object.GetName(), already)
				return nil
			}
			if err := change(cmd.Context(), c, object, nil, map[string]any{"suspend": suspend}); err != nil {
				return err
			}
			return output.Object(f, object)
		})
	}
	return cmd
}

// switched reads what is to be suspended or resumed.
func switched(ctx context.Context, c client.Client, namespace, arg string) (client.Object, error) {
	kind, name, err := cli.ParseRef(arg, cli.ScheduledJob, cli.JobQueue)
	if err != nil {
		return nil, err
	}
	object, _ := cli.New(kind)
	return object, cli.Get(ctx, c, namespace, name, object)
}
