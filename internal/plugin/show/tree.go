// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
)

// shown is how many runs and groups of a ScheduledJob are shown unless --last says otherwise.
const shown = 10

func treeCommand(f *cli.Factory) *cobra.Command {
	last := shown
	cmd := &cobra.Command{
		Use:   "tree RUN|jg/NAME|sj/NAME",
		Short: "Show a run with its retries, a group with its members, or what a ScheduledJob has made",
		Long: `Show what hangs together, with phases, reasons and times: a run with all its retries, whichever of them is named; a group with
its members and their runs; or a ScheduledJob with the runs and groups it has made.

A retry that was deleted is shown as Deleted, and one that is about to be made as Due.

Exit codes: 0; 1 if there is no such object; 2 misuse.`,
		Example: `  # a run and its retries
  kubectl reprise tree nightly-1795417200

  # a group and its members
  kubectl reprise tree jg/release

  # the last 30 runs of a ScheduledJob
  kubectl reprise tree sj/nightly --last 30`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.Complete(1, cli.Kind{List: &batchv1alpha1.JobRunList{}}, cli.Kind{Prefix: "jg/", List: &batchv1alpha1.JobGroupList{}}, cli.Kind{Prefix: "sj/", List: &batchv1alpha1.ScheduledJobList{}}),
	}
	cmd.Flags().IntVar(&last, "last", last, "how many runs and groups of a ScheduledJob are shown, the latest; 0 shows all")
	output := cli.AddOutput(cmd, "")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, name, err := cli.ParseRef(args[0], kindJobRun, kindJobGroup, kindScheduledJob)
		if err != nil {
			return err
		}
		if last < 0 {
			return cli.Usagef("--last is %d: it cannot be negative", last)
		}
		c, namespace, err := f.Connect()
		if err != nil {
			return err
		}
		root, err := grow(cmd.Context(), f, reader{c, namespace}, kind, name, last)
		if err != nil {
			return err
		}
		if !output.Human() {
			return output.Value(f, root)
		}
		for _, line := range draw(root, style(f, output)) {
			f.Printf("%s\n", line)
		}
		return nil
	}
	return cmd
}

// grow reads the tree of an object.
func grow(ctx context.Context, f *cli.Factory, r reader, kind, name string, last int) (Node, error) {
	switch kind {
	case kindScheduledJob:
		sj := &batchv1alpha1.ScheduledJob{}
		if err := cli.Get(ctx, r.WithWatch, r.namespace, name, sj); err != nil {
			return Node{}, err
		}
		family, err := r.family(ctx, name, last)
		return scheduleNode(sj, family, f.Now()), err
	case kindJobGroup:
		g := &batchv1alpha1.JobGroup{}
		if err := cli.Get(ctx, r.WithWatch, r.namespace, name, g); err != nil {
			return Node{}, err
		}
		runs, err := r.members(ctx, name)
		return groupNode(g, runs, f.Now()), err
	default:
		return growChain(ctx, f, r, name)
	}
}

func growChain(ctx context.Context, f *cli.Factory, r reader, name string) (Node, error) {
	of := &batchv1alpha1.JobRun{}
	if err := cli.Get(ctx, r.WithWatch, r.namespace, name, of); err != nil {
		return Node{}, err
	}
	runs, err := r.chainOf(ctx, of)
	if err != nil {
		return Node{}, err
	}
	trees := chains(runs, f.Now())
	if len(trees) == 0 {
		return Node{}, errors.New("no run is left of the chain")
	}
	root := trees[0]
	from := ""
	if ref := of.Spec.ScheduledJobRef; ref != nil {
		from = "of sj/" + ref.Name
	}
	if ref := of.Spec.GroupRef; ref != nil {
		from = fmt.Sprintf("member %s of jg/%s", ref.Member, ref.Name)
	}
	root.Message = sentence(from, root.Message)
	return root, nil
}
