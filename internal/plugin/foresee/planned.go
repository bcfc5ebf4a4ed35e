// SPDX-License-Identifier: Apache-2.0

package foresee

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/survey"
)

func planCommand(f *cli.Factory) *cobra.Command {
	m := manager{}
	policy, everywhere := string(batchv1alpha1.RecoveryFail), false
	cmd := &cobra.Command{
		Use:   "plan [restart | resume sj/NAME | resume jq/NAME]",
		Short: "Tell what a restart of the manager or a resume would do, without doing it",
		Long: `Tell what would be failed, recorded, adopted, retried and fired in the namespace, by the manager's own rules. Nothing is written.

  restart   the manager ends now without a word, and another one takes over. One that is stopped in good order does less: it lets
            HTTP calls end first, for as long as its --drain-timeout says
  resume    a suspended ScheduledJob or JobQueue is resumed now

What the manager was started with cannot be seen from here: say so with --recovery-policy and --cleanup-stale-on-startup if it is
not the default.

Exit codes: 0, whatever the plan; 1 if it cannot be made; 2 misuse.`,
		Example: `  # before an upgrade of the manager
  kubectl reprise plan
  kubectl reprise plan --all-namespaces

  # what a resume would fire, or start
  kubectl reprise plan resume sj/nightly
  kubectl reprise plan resume jq/gpu`,
		Args: cobra.MaximumNArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				return []string{"restart", "resume"}, cobra.ShellCompDirectiveNoFileComp
			case len(args) == 1 && args[0] == "resume":
				return f.Complete(0, cli.Kind{Prefix: "sj/", List: &batchv1alpha1.ScheduledJobList{}, Keep: cli.Suspended},
					cli.Kind{Prefix: "jq/", List: &batchv1alpha1.JobQueueList{}, Keep: cli.Suspended})(cmd, args, begun)
			default:
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
		},
	}
	cmd.Flags().StringVar(&policy, "recovery-policy", policy, "the manager's --recovery-policy: Fail or Adopt")
	cmd.Flags().BoolVar(&m.cleanup, "cleanup-stale-on-startup", true, "the manager's --cleanup-stale-on-startup")
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "plan a restart for all namespaces that have anything to plan for")
	output := cli.AddOutput(cmd, "")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m.recovery = batchv1alpha1.RecoveryPolicy(policy)
		if m.recovery != batchv1alpha1.RecoveryFail && m.recovery != batchv1alpha1.RecoveryAdopt {
			return cli.Usagef("--recovery-policy is %q: it can be Fail or Adopt", policy)
		}
		if everywhere {
			if len(args) > 0 && args[0] != "restart" {
				return cli.Usagef("--all-namespaces goes with a restart: a resume is of one object")
			}
			return planEverywhere(cmd.Context(), f, m, output)
		}
		p, err := planOf(cmd.Context(), f, m, args)
		switch {
		case err != nil:
			return err
		case !output.Human():
			return output.Value(f, p)
		}
		writePlan(f, p, output)
		return nil
	}
	return cmd
}

// writePlan writes a plan for a person. Wide output is not cut off at the edge of the terminal.
func writePlan(f *cli.Factory, p Plan, output *cli.Output) {
	style := f.Style()
	if output.Wide() {
		style.Width = 0
	}
	for _, line := range p.lines(f.Now(), style) {
		f.Printf("%s\n", line)
	}
}

func planEverywhere(ctx context.Context, f *cli.Factory, m manager, output *cli.Output) error {
	c, err := f.Client()
	if err != nil {
		return err
	}
	s, err := survey.All(ctx, c, "")
	if err != nil {
		return err
	}
	apart := survey.ByNamespace(s)
	plans := []Plan{}
	for _, namespace := range slices.Sorted(maps.Keys(apart)) {
		plans = append(plans, restart(apart[namespace], m, f.Now()))
	}
	if !output.Human() {
		return output.Value(f, plans)
	}
	for i, p := range plans {
		if i > 0 {
			f.Printf("\n")
		}
		writePlan(f, p, output)
	}
	if len(plans) == 0 {
		f.Notef("no namespace has anything that a restart could touch\n")
	}
	return nil
}

func planOf(ctx context.Context, f *cli.Factory, m manager, args []string) (Plan, error) {
	switch {
	case len(args) == 0, len(args) == 1 && args[0] == "restart":
		return planRestart(ctx, f, m)
	case len(args) == 2 && args[0] == "resume":
		return planResume(ctx, f, args[1])
	default:
		return Plan{}, cli.Usagef("write plan, plan restart, or plan resume and sj/NAME or jq/NAME")
	}
}

func planResume(ctx context.Context, f *cli.Factory, ref string) (Plan, error) {
	kind, name, err := cli.ParseRef(ref, cli.ScheduledJob, cli.JobQueue)
	if err != nil {
		return Plan{}, err
	}
	c, namespace, err := f.Connect()
	if err != nil {
		return Plan{}, err
	}
	if kind == cli.ScheduledJob {
		s, err := observe(ctx, c, namespace, name)
		return resumeSchedule(explain.Snapshot{Namespace: namespace, Runs: s.runs, Groups: s.groups}, s.sj, f.Now()), err
	}
	if err := cli.Get(ctx, c, namespace, name, &batchv1alpha1.JobQueue{}); err != nil {
		return Plan{}, err
	}
	s, err := survey.All(ctx, c, namespace)
	return resumeQueue(s, name, f.Now()), err
}

func planRestart(ctx context.Context, f *cli.Factory, m manager) (Plan, error) {
	c, namespace, err := f.Connect()
	if err != nil {
		return Plan{}, err
	}
	s, err := survey.All(ctx, c, namespace)
	return restart(s, m, f.Now()), err
}
