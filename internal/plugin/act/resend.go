// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
)

type resendOptions struct {
	all    bool
	output *cli.Output
}

func resendCommand(f *cli.Factory) *cobra.Command {
	o := &resendOptions{}
	cmd := &cobra.Command{
		Use:   "resend RUN|jg/GROUP... | --all",
		Short: "Send announcements again that were given up",
		Long: `Send announcements again that were given up: after a day without an answer, because the receiver wanted no more, or because it was
owed too many. What was delivered is not sent again. How far each has come is in the status of its run or group.

Exit codes: 0 asked for, or there was nothing to send; 1 it could not be asked for; 130 interrupted: what was asked for stays so.`,
		Example: `  # One run
  kubectl reprise resend nightly-report-29384710

  # Everything of this namespace that was given up, after the receiver was down for long
  kubectl reprise resend --all`,
		ValidArgsFunction: f.Complete(0,
			cli.Kind{List: &batchv1alpha1.JobRunList{}, Keep: owes},
			cli.Kind{Prefix: "jg/", List: &batchv1alpha1.JobGroupList{}, Keep: owes}),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "all runs and groups of the namespace")
	o.output = cli.AddOutput(cmd, "is announced again")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), f, args) }
	return cmd
}

func (o *resendOptions) run(ctx context.Context, f *cli.Factory, args []string) error {
	if (len(args) > 0) == o.all {
		return cli.Usagef("name runs or groups, or say --all; one of them")
	}
	if err := allOf(args, cli.JobRun, cli.JobGroup); err != nil {
		return err
	}
	c, namespace, err := f.Connect()
	if err != nil {
		return err
	}
	if o.all {
		return o.everything(ctx, f, c, namespace)
	}
	return each(ctx, f, args, func(arg string) error {
		kind, name, err := cli.ParseRef(arg, cli.JobRun, cli.JobGroup)
		if err != nil {
			return err
		}
		object, _ := cli.New(kind)
		if err := cli.Get(ctx, c, namespace, name, object); err != nil {
			return err
		}
		if !owes(object) {
			f.Notef("no announcement of %s was given up\n", object.GetName())
			return nil
		}
		return o.resend(ctx, f, c, object)
	})
}

// page is how many objects are read at once: a namespace may hold very many.
const page = 500

func (o *resendOptions) everything(ctx context.Context, f *cli.Factory, c client.Client, namespace string) error {
	found := 0
	for _, list := range []client.ObjectList{&batchv1alpha1.JobRunList{}, &batchv1alpha1.JobGroupList{}} {
		for more := true; more; more = list.GetContinue() != "" {
			if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(page), client.Continue(list.GetContinue())); err != nil {
				return err
			}
			err := meta.EachListItem(list, func(item runtime.Object) error {
				object, ok := item.(client.Object)
				if !ok || !owes(object) {
					return nil
				}
				found++
				return o.resend(ctx, f, c, object)
			})
			if err != nil {
				return err
			}
		}
	}
	if found == 0 {
		f.Notef("no announcement in namespace %s was given up\n", namespace)
	}
	return nil
}

func (o *resendOptions) resend(ctx context.Context, f *cli.Factory, c client.Client, object client.Object) error {
	asked := map[string]any{"annotations": map[string]any{batchv1alpha1.AnnotationResend: f.Now().UTC().Format(time.RFC3339Nano)}}
	if err := change(ctx, c, object, asked, nil); err != nil {
		return err
	}
	return o.output.Object(f, object)
}

// owes says whether an announcement of a run or a group was given up.
func owes(object client.Object) bool {
	var all []batchv1alpha1.Announcement
	switch o := object.(type) {
	case *batchv1alpha1.JobRun:
		all = o.Status.Announcements
	case *batchv1alpha1.JobGroup:
		all = o.Status.Announcements
	}
	for _, a := range all {
		if a.State == batchv1alpha1.AnnouncementAbandoned {
			return true
		}
	}
	return false
}
