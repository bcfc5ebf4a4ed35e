// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/retry"
)

type retryOptions struct {
	patience
	name   string
	output *cli.Output
}

func retryCommand(f *cli.Factory) *cobra.Command {
	o := &retryOptions{}
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Try a failed run again, now",
		Long: `Try a failed run again, now, also when all its automatic retries are used up. The retry takes its place in the queue from now. Of
a chain any run may be named: the latest is retried. Where an automatic retry waits for its time, that one is brought forward.

Exit codes: 0 created or brought forward, and with --wait succeeded; 1 the run cannot be retried, or with --wait another end;
124 --timeout was over; 130 interrupted.`,
		Example: `  # What failed last night
  kubectl get jr --field-selector status.phase=Failed

  # Again, and stay until it has ended
  kubectl reprise retry nightly-report-29384710 --wait`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: f.Complete(1, cli.Kind{List: &batchv1alpha1.JobRunList{}, Keep: func(o client.Object) bool {
			return phaseOf(o) == string(batchv1alpha1.JobRunFailed)
		}}),
	}
	o.addTo(cmd, true)
	cmd.Flags().StringVar(&o.name, "name", "", "name of the retry (default: made from that of the run)")
	o.output = cli.AddOutput(cmd, "created")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), f, args[0]) }
	return cmd
}

func (o *retryOptions) run(ctx context.Context, f *cli.Factory, arg string) error {
	if err := o.check(o.output); err != nil {
		return err
	}
	_, name, err := cli.ParseRef(arg, cli.JobRun)
	if err != nil {
		return err
	}
	c, namespace, err := f.Connect()
	if err != nil {
		return err
	}
	target := &batchv1alpha1.JobRun{}
	if err := cli.Get(ctx, c, namespace, name, target); err != nil {
		return err
	}
	last, err := latest(ctx, c, target)
	if err != nil {
		return err
	}
	if waitsForItsTime(last, f.Now()) {
		return o.bringForward(ctx, f, c, last)
	}
	if last != target {
		f.Notef("the latest run of the chain of %s is %s\n", target.Name, last.Name)
	}
	return o.create(ctx, f, c, last)
}

// waitsForItsTime says whether a run is an automatic retry in back-off.
func waitsForItsTime(r *batchv1alpha1.JobRun, now time.Time) bool {
	return r.Spec.Chain != nil && r.Status.Phase == batchv1alpha1.JobRunQueued && r.Spec.NotBefore != nil && r.Spec.NotBefore.After(now)
}

func (o *retryOptions) bringForward(ctx context.Context, f *cli.Factory, c client.WithWatch, r *batchv1alpha1.JobRun) error {
	if o.name != "" {
		return cli.Usagef("the retry exists already, as %s, and waits until %s: leave out --name to bring it forward", r.Name, r.Spec.NotBefore.Local().Format(time.TimeOnly))
	}
	if err := change(ctx, c, r, nil, map[string]any{"notBefore": f.Now().UTC().Truncate(time.Second).Format(time.RFC3339)}); err != nil {
		return err
	}
	return tellAndStay(ctx, f, c, r, &o.patience, o.output.Did("brought forward"))
}

func (o *retryOptions) create(ctx context.Context, f *cli.Factory, c client.WithWatch, target *batchv1alpha1.JobRun) error {
	manual := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: target.Namespace, Name: o.name}}
	manual.Spec.RetryOf = target.Name
	if manual.Name == "" {
		manual.Name = named(target.Name, "-retry-")
	}
	// The manager judges it again when it sees it; what is refused here would be Skipped there.
	if _, message, refused := retry.ManualRefusal(target, nil, manual); refused {
		return errors.New(message)
	}
	return createAndStay(ctx, f, c, manual, &o.patience, o.output)
}
