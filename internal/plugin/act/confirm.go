// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/text"
)

func confirmCommand(f *cli.Factory) *cobra.Command {
	sure := false
	cmd := &cobra.Command{
		Use:   "confirm-stopped RUN",
		Short: "Confirm that nothing of a run's work lives, when its node cannot",
		Long: `Confirm that nothing of the work of a run lives any more, when its node is lost and cannot confirm it. The run's slot becomes free
and its chain goes on. Make sure first, by turning the machine off for example: a wrong confirmation lets the work run twice at once.
Without --yes the command only shows which pods it is about.

Exit codes: 0 confirmed, or shown; 1 it could not be; 130 interrupted.`,
		Example: `  # Which pods, on which nodes?
  kubectl reprise confirm-stopped nightly-report-29384710

  # Those machines are off
  kubectl reprise confirm-stopped nightly-report-29384710 --yes`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: f.Complete(1, cli.Kind{List: &batchv1alpha1.JobRunList{}, Keep: func(o client.Object) bool {
			r, ok := o.(*batchv1alpha1.JobRun)
			return ok && r.Status.Slot == batchv1alpha1.SlotHeld
		}}),
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "you have made sure")
	output := cli.AddOutput(cmd, "is confirmed to have stopped")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		c, namespace, err := f.Connect()
		if err != nil {
			return err
		}
		r, err := held(ctx, c, namespace, args[0])
		if err != nil {
			return err
		}
		if !sure {
			return showPods(ctx, f, c, r)
		}
		confirmation := map[string]any{"annotations": map[string]any{batchv1alpha1.AnnotationConfirmStopped: string(r.UID)}}
		if err := change(ctx, c, r, confirmation, nil); err != nil {
			return err
		}
		return output.Object(f, r)
	}
	return cmd
}

// held reads a run that was given up and holds its slot still: there is nothing to confirm of another.
func held(ctx context.Context, c client.Client, namespace, arg string) (*batchv1alpha1.JobRun, error) {
	_, name, err := cli.ParseRef(arg, cli.JobRun)
	if err != nil {
		return nil, err
	}
	r := &batchv1alpha1.JobRun{}
	if err := cli.Get(ctx, c, namespace, name, r); err != nil {
		return nil, err
	}
	switch {
	case r.Status.Phase == batchv1alpha1.JobRunRunning || r.Status.Phase == batchv1alpha1.JobRunQueued:
		return nil, fmt.Errorf("%s is %s; only what was given up can be confirmed to have stopped: kubectl reprise cancel %s", r.Name, r.Status.Phase, r.Name)
	case r.Status.Slot != batchv1alpha1.SlotHeld:
		return nil, fmt.Errorf("the work of %s is known to have stopped: there is nothing to confirm", r.Name)
	}
	return r, nil
}

func showPods(ctx context.Context, f *cli.Factory, c client.Client, r *batchv1alpha1.JobRun) error {
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(r.Namespace), client.MatchingLabels{batchv1alpha1.LabelRunUID: string(r.UID)}); err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		f.Notef("%s has no pod any more; wait for the manager to see it\n", r.Name)
		return nil
	}
	t := &text.Table{}
	t.Header("POD", "NODE", "PHASE")
	for _, p := range pods.Items {
		t.Row(text.Plain(p.Name), text.Plain(p.Spec.NodeName), text.Plain(string(p.Status.Phase)))
	}
	f.Table(t)
	f.Notef("when nothing of them can be alive: kubectl reprise confirm-stopped %s --yes\n", r.Name)
	return nil
}
