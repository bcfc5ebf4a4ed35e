// SPDX-License-Identifier: Apache-2.0

// Package logs is the command `kubectl reprise logs`: what the work of a run has said, attempt after attempt, from the pods of its
// Job, or for an HTTP call from the result that its status keeps.
package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
)

const about = `Print what the work of a run has written, over all attempts of its chain from the first on. Where more than one run, pod or
container is printed each line begins with its name; --prefix=false leaves that out.

Of a group all members are printed, of a ScheduledJob its latest run. Of HTTP work the answer is printed that the run's status keeps: its
first 1,024 bytes. With --follow lines are printed as they come, through all retries, until the chain is over.

Exit codes: 0 printed, whatever became of the run; 1 something could not be printed; 130 interrupted: the run goes on.`

const examples = `  # All attempts so far
  kubectl reprise logs nightly-1763600000

  # As it works, through its retries
  kubectl reprise logs nightly-1763600000 --follow

  # Why did it fail the last time?
  kubectl reprise logs nightly-1763600000 --previous

  # The latest run of a schedule, all members of a group
  kubectl reprise logs sj/nightly
  kubectl reprise logs jg/release --tail 20`

// options are the flags of the command.
type options struct {
	follow, previous, timestamps bool
	prefix                       *bool // nil: where it is needed
	attempt                      int32 // negative: all
	tail                         int64 // negative: all
	since                        time.Duration
	container                    string
}

// Commands returns the commands of this package.
func Commands(f *cli.Factory) []*cobra.Command {
	o := &options{}
	prefix := false
	cmd := &cobra.Command{
		Use:     "logs RUN | jg/GROUP | sj/SCHEDULEDJOB",
		Short:   "Print the logs of a run, over all its attempts",
		Long:    about,
		Example: examples,
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: f.Complete(1, cli.Kind{List: &batchv1alpha1.JobRunList{}},
			cli.Kind{Prefix: "jg/", List: &batchv1alpha1.JobGroupList{}}, cli.Kind{Prefix: "sj/", List: &batchv1alpha1.ScheduledJobList{}}),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.follow, "follow", "f", false, "print lines as they come, through all retries")
	flags.BoolVarP(&o.previous, "previous", "p", false, "only the attempt before the latest")
	flags.Int32Var(&o.attempt, "attempt", -1, "only that attempt: 0 is the first run, 1 its first retry (default: all)")
	flags.Int64Var(&o.tail, "tail", -1, "only so many of the last lines of each container (default: all)")
	flags.DurationVar(&o.since, "since", 0, "only what is newer, such as 10m (default: all)")
	flags.BoolVar(&o.timestamps, "timestamps", false, "begin each line with its time")
	flags.StringVarP(&o.container, "container", "c", "", "only the container of that name (default: all)")
	flags.BoolVar(&prefix, "prefix", false, "begin each line with the name of the run (default: if there is more than one source)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("prefix") {
			o.prefix = &prefix
		}
		return o.run(cmd.Context(), f, args[0])
	}
	return []*cobra.Command{cmd}
}

func (o *options) check() error {
	switch {
	case o.previous && o.attempt >= 0:
		return cli.Usagef("name the attempt by --attempt or --previous, not both")
	case o.follow && o.previous:
		return cli.Usagef("--previous has ended: there is nothing to follow")
	case o.since < 0:
		return cli.Usagef("--since must not be negative")
	default:
		return nil
	}
}

func (o *options) run(ctx context.Context, f *cli.Factory, arg string) error {
	if err := o.check(); err != nil {
		return err
	}
	kind, name, err := cli.ParseRef(arg, cli.JobRun, cli.JobGroup, cli.ScheduledJob)
	if err != nil {
		return err
	}
	p, err := newPrinter(f, o)
	if err != nil {
		return err
	}
	switch kind {
	case cli.JobGroup:
		return p.group(ctx, name)
	case cli.ScheduledJob:
		return p.latestOf(ctx, name)
	default:
		r := &batchv1alpha1.JobRun{}
		if err := cli.Get(ctx, p.api, p.namespace, name, r); err != nil {
			return err
		}
		return p.chain(ctx, r)
	}
}

// Follow prints the logs of a run as they come, and of its retries, until its chain is over.
func Follow(ctx context.Context, f *cli.Factory, c client.WithWatch, run *batchv1alpha1.JobRun) error {
	p, err := newPrinter(f, &options{follow: true, attempt: -1, tail: -1})
	if err != nil {
		return err
	}
	p.api, p.namespace = c, run.Namespace
	return p.from(ctx, run)
}

// newPrinter connects to the cluster.
func newPrinter(f *cli.Factory, o *options) (*printer, error) {
	api, namespace, err := f.Connect()
	if err != nil {
		return nil, err
	}
	pods, err := f.Clientset()
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context, pod, container string, follow bool) (stream, error) {
		return pods.CoreV1().Pods(namespace).GetLogs(pod, o.of(container, follow)).Stream(ctx)
	}
	return &printer{f: f, api: api, namespace: namespace, options: o, open: open, lines: &lines{f: f}}, nil
}

// of returns what is asked of a container's log.
func (o *options) of(container string, follow bool) *corev1.PodLogOptions {
	l := &corev1.PodLogOptions{Container: container, Follow: follow, Timestamps: o.timestamps}
	if o.tail >= 0 {
		l.TailLines = &o.tail
	}
	if o.since > 0 {
		l.SinceSeconds = ptr.To(max(1, int64(o.since/time.Second)))
	}
	return l
}

// latestOf prints the latest run of a ScheduledJob, or the members of its latest group.
func (p *printer) latestOf(ctx context.Context, name string) error {
	sj := &batchv1alpha1.ScheduledJob{}
	if err := cli.Get(ctx, p.api, p.namespace, name, sj); err != nil {
		return err
	}
	made := client.MatchingFields{"spec.scheduledJobRef.name": name}
	if sj.Spec.GroupTemplate != nil {
		groups := &batchv1alpha1.JobGroupList{}
		if err := p.api.List(ctx, groups, client.InNamespace(p.namespace), made); err != nil {
			return err
		}
		last := newest(groups.Items, func(g *batchv1alpha1.JobGroup) metav1.Time { return g.CreationTimestamp })
		if last == nil {
			return notFired(name)
		}
		return p.group(ctx, last.Name)
	}
	runs := &batchv1alpha1.JobRunList{}
	if err := p.api.List(ctx, runs, client.InNamespace(p.namespace), made); err != nil {
		return err
	}
	last := newest(runs.Items, func(r *batchv1alpha1.JobRun) metav1.Time { return r.CreationTimestamp })
	if last == nil {
		return notFired(name)
	}
	return p.chain(ctx, last)
}

func notFired(name string) error {
	return fmt.Errorf("ScheduledJob %s has no run\nit was not fired yet, or its runs were removed; see: kubectl reprise next %s", name, name)
}

// newest returns the item that was created last, nil if there is none.
func newest[T any](items []T, created func(*T) metav1.Time) *T {
	var last *T
	for i := range items {
		if item := &items[i]; last == nil || created(last).Time.Before(created(item).Time) {
			last = item
		}
	}
	return last
}

var errIncomplete = errors.New("some logs could not be printed; see above")
