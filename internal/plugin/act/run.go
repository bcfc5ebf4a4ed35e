// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
)

type runOptions struct {
	patience
	file, name string
	priority   int32
	output     *cli.Output
}

func runCommand(f *cli.Factory) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run SCHEDULEDJOB | -f FILE",
		Short: "Run a ScheduledJob now, or what a file says",
		Long: `Run a ScheduledJob now, whatever its schedule says and also while it is suspended. The run takes its place in the queue like
every other. With -f FILE the JobRun or JobGroup of the file is created; of a ScheduledJob in the file, which need not be applied, the
template is run.

Exit codes: 0 created, and with --wait Completed, or Skipped since there was nothing to do; 1 not created, or with --wait another end;
124 --timeout was over; 130 interrupted: what was created goes on.`,
		Example: `  # Now, and stay until it has ended
  kubectl reprise run nightly-report --wait

  # Before all others of its queue, with the logs of its work
  kubectl reprise run nightly-report --priority 100 --follow

  # In a script: the name alone
  run=$(kubectl reprise run nightly-report -o name)

  # Try a ScheduledJob that is not applied yet
  kubectl reprise run -f nightly-report.yaml --follow`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.Complete(1, cli.Kind{List: &batchv1alpha1.ScheduledJobList{}}),
	}
	o.addTo(cmd, true)
	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "file to run, - for the standard input")
	cmd.Flags().StringVar(&o.name, "name", "", "name of what is created (default: made from that of the ScheduledJob)")
	cmd.Flags().Int32Var(&o.priority, "priority", 0, "priority in the queue, higher first (default: that of the template)")
	o.output = cli.AddOutput(cmd, "created")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.run(cmd, f, args) }
	return cmd
}

func (o *runOptions) run(cmd *cobra.Command, f *cli.Factory, args []string) error {
	if (len(args) == 1) == (o.file != "") {
		return cli.Usagef("name a ScheduledJob, or a file with -f; one of them")
	}
	if err := o.check(o.output); err != nil {
		return err
	}
	c, namespace, err := f.Connect()
	if err != nil {
		return err
	}
	object, err := o.wanted(cmd.Context(), f, c, namespace, args)
	if err != nil {
		return err
	}
	if o.follow && !isRun(object) {
		return cli.Usagef("a group is no single run: leave out --follow and use --wait; then kubectl reprise logs jg/%s", object.GetName())
	}
	if cmd.Flags().Changed("priority") {
		prioritise(object, o.priority)
	}
	return createAndStay(cmd.Context(), f, c, object, &o.patience, o.output)
}

func isRun(object client.Object) bool {
	_, ok := object.(*batchv1alpha1.JobRun)
	return ok
}

// wanted returns what is to be created.
func (o *runOptions) wanted(ctx context.Context, f *cli.Factory, c client.Client, namespace string, args []string) (client.Object, error) {
	var object client.Object
	var err error
	if o.file != "" {
		object, err = o.ofFile(ctx, f)
	} else {
		object, err = ofScheduledJob(ctx, c, namespace, args[0])
	}
	if err == nil && o.name != "" {
		object.SetName(o.name)
	}
	return object, err
}

func ofScheduledJob(ctx context.Context, c client.Client, namespace, arg string) (client.Object, error) {
	_, name, err := cli.ParseRef(arg, cli.ScheduledJob)
	if err != nil {
		return nil, err
	}
	sj := &batchv1alpha1.ScheduledJob{}
	if err := cli.Get(ctx, c, namespace, name, sj); err != nil {
		return nil, err
	}
	from := &batchv1alpha1.ObjectName{Name: sj.Name}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: manualName(sj.Name)}
	if t := sj.Spec.GroupTemplate; t != nil {
		return &batchv1alpha1.JobGroup{ObjectMeta: meta, Spec: batchv1alpha1.JobGroupSpec{JobGroupTemplateSpec: *t.DeepCopy(), ScheduledJobRef: from}}, nil
	}
	return &batchv1alpha1.JobRun{ObjectMeta: meta, Spec: batchv1alpha1.JobRunSpec{ScheduledJobRef: from}}, nil
}

// ofFile returns what the one object of a file asks for.
func (o *runOptions) ofFile(ctx context.Context, f *cli.Factory) (client.Object, error) {
	objects, err := f.ReadFile(ctx, o.file)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("%s holds %d objects; run takes one", o.file, len(objects))
	}
	if err := f.Place(objects[0]); err != nil {
		return nil, err
	}
	switch object := objects[0].(type) {
	case *batchv1alpha1.JobRun, *batchv1alpha1.JobGroup:
		if object.GetName() == "" && object.GetGenerateName() != "" {
			object.SetName(object.GetGenerateName() + rand.String(5))
		}
		return object, nil
	case *batchv1alpha1.ScheduledJob:
		return ofTemplate(object)
	default:
		return nil, fmt.Errorf("%s holds a %T; run takes a JobRun, a JobGroup or a ScheduledJob", o.file, objects[0])
	}
}

// ofTemplate returns what the template of a ScheduledJob that need not exist asks for.
func ofTemplate(sj *batchv1alpha1.ScheduledJob) (client.Object, error) {
	meta := metav1.ObjectMeta{Namespace: sj.Namespace, Name: manualName(sj.Name)}
	switch {
	case sj.Spec.RunTemplate != nil:
		return &batchv1alpha1.JobRun{ObjectMeta: meta, Spec: batchv1alpha1.JobRunSpec{JobRunTemplateSpec: *sj.Spec.RunTemplate}}, nil
	case sj.Spec.GroupTemplate != nil:
		return &batchv1alpha1.JobGroup{ObjectMeta: meta, Spec: batchv1alpha1.JobGroupSpec{JobGroupTemplateSpec: *sj.Spec.GroupTemplate}}, nil
	default:
		return nil, fmt.Errorf("ScheduledJob %q has neither runTemplate nor groupTemplate", sj.Name)
	}
}

const (
	// longest is how long the name of a run may be.
	longest = 57
	// digits make a name unique.
	digits = 5
)

// manualName returns a new name. It is chosen here and not by the API server, so that it is known when no answer comes.
func manualName(from string) string { return named(from, "-run-") }

func named(from, mark string) string {
	room := longest - len(mark) - digits
	return strings.TrimRight(from[:min(len(from), room)], "-.") + mark + rand.String(digits)
}

func prioritise(object client.Object, priority int32) {
	switch o := object.(type) {
	case *batchv1alpha1.JobRun:
		o.Spec.Priority = &priority
	case *batchv1alpha1.JobGroup:
		for i := range o.Spec.Members {
			o.Spec.Members[i].RunTemplate.Priority = &priority
		}
	}
}

// createAndStay creates what was asked for, tells it, and stays if it is to.
func createAndStay(ctx context.Context, f *cli.Factory, c client.WithWatch, object client.Object, p *patience, output *cli.Output) error {
	if err := c.Create(ctx, object, owner); err != nil {
		return uncertain(f, object, err)
	}
	return tellAndStay(ctx, f, c, object, p, output)
}

// tellAndStay prints what was created: at once for a person, at its end for a program that wants to know that too.
func tellAndStay(ctx context.Context, f *cli.Factory, c client.WithWatch, object client.Object, p *patience, output *cli.Output) error {
	if !p.wait || output.Human() {
		if err := output.Object(f, object); err != nil {
			return err
		}
	}
	if !p.wait {
		return nil
	}
	end, err := p.stay(ctx, f, c, object)
	if err != nil {
		return err
	}
	if !output.Human() {
		if err := output.Object(f, end.object); err != nil {
			return err
		}
	} else if end.err() == nil {
		f.Printf("%s is %s\n", end.name, end.phase)
	}
	return end.err()
}

// uncertain adds to an error that came without an answer of the API server that the object may exist.
func uncertain(f *cli.Factory, object client.Object, err error) error {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	if answered && !apierrors.IsTimeout(status) && !apierrors.IsServerTimeout(status) && !apierrors.IsInternalError(status) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		f.Notef("whether %s was created is not known; see: kubectl reprise why %s\n", object.GetName(), reference(object))
	}
	return err
}
