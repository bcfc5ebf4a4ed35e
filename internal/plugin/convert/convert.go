// SPDX-License-Identifier: Apache-2.0

// Package convert makes a ScheduledJob of a CronJob.
package convert

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/text"
)

// Commands returns the commands of this package.
func Commands(f *cli.Factory) []*cobra.Command {
	var file, queue string
	cmd := &cobra.Command{
		Use:   "convert cronjob/NAME... | -f FILE",
		Short: "Print the ScheduledJob that does what a CronJob does",
		Long: `Print the ScheduledJob that does what a CronJob does, as YAML. What differs is said on the standard error. Nothing in the cluster is
changed: look at it, suspend the CronJob, and apply it.

Exit codes: 0 printed; 1 there is no such CronJob, or it cannot be converted; 130 interrupted.`,
		Example: `  kubectl reprise convert cronjob/nightly-report > nightly-report.yaml
  kubectl patch cronjob nightly-report --patch '{"spec": {"suspend": true}}'
  kubectl apply -f nightly-report.yaml

  # From a file, without a cluster
  kubectl reprise convert -f cronjob.yaml --queue reports`,
		ValidArgsFunction: f.Complete(0, cli.Kind{Prefix: "cronjob/", List: &batchv1.CronJobList{}}),
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with CronJobs, - for the standard input")
	cmd.Flags().StringVar(&queue, "queue", "", "queue of its runs (default: the queue called default, which runs one at a time)")
	output := cli.AddOutput(cmd, "")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) > 0) == (file != "") {
			return cli.Usagef("name CronJobs, or a file with -f; one of them")
		}
		crons, err := read(cmd.Context(), f, file, args)
		if err != nil {
			return err
		}
		if output.Human() {
			if err := output.Set("yaml"); err != nil {
				return err
			}
		}
		for _, cron := range crons {
			if err := show(f, output, cron, queue); err != nil {
				return err
			}
		}
		return nil
	}
	return []*cobra.Command{cmd}
}

func read(ctx context.Context, f *cli.Factory, file string, args []string) ([]*batchv1.CronJob, error) {
	if file == "" {
		return live(ctx, f, args)
	}
	objects, err := f.ReadFile(ctx, file)
	if err != nil {
		return nil, err
	}
	var crons []*batchv1.CronJob
	for _, object := range objects {
		if cron, ok := object.(*batchv1.CronJob); ok {
			crons = append(crons, cron)
		}
	}
	if len(crons) == 0 {
		return nil, fmt.Errorf("%s holds no CronJob", file)
	}
	return crons, nil
}

func live(ctx context.Context, f *cli.Factory, args []string) ([]*batchv1.CronJob, error) {
	var names []string
	for _, arg := range args {
		_, name, err := cli.ParseRef(arg, cli.CronJob)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	c, namespace, err := f.Connect()
	if err != nil {
		return nil, err
	}
	var crons []*batchv1.CronJob
	for _, name := range names {
		cron := &batchv1.CronJob{}
		if err := cli.Get(ctx, c, namespace, name, cron); err != nil {
			return nil, err
		}
		crons = append(crons, cron)
	}
	return crons, nil
}

func show(f *cli.Factory, output *cli.Output, cron *batchv1.CronJob, queue string) error {
	sj, notes := ScheduledJob(cron)
	sj.Spec.RunTemplate.Queue = queue
	if queue == "" {
		notes = append(notes, "its runs share the queue \"default\", which runs one at a time; --queue names another")
	}
	for _, note := range notes {
		f.Notef("%s: %s\n", cron.Name, text.Line(note))
	}
	object, err := bare(sj)
	if err != nil {
		return err
	}
	return output.Object(f, object)
}

// bare returns an object without what only the API server fills in.
func bare(object client.Object) (runtime.Object, error) {
	object.GetObjectKind().SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind(cli.ScheduledJob))
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	prune(fields)
	return &unstructured.Unstructured{Object: fields}, nil
}

// prune leaves out what is null, such as times of creation, and what holds nothing.
func prune(value any) {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(key string, inner any) bool {
			prune(inner)
			m, isMap := inner.(map[string]any)
			return inner == nil || isMap && len(m) == 0 && slices.Contains(hollow, key)
		})
	case []any:
		for _, inner := range v {
			prune(inner)
		}
	}
}

// hollow are fields that mean nothing while they hold nothing. An emptyDir: {} does mean something.
var hollow = []string{"metadata", "securityContext", "resources"}
