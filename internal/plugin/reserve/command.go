// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/reserve/guard"
)

const about = `Reserve the next free slot of a queue, run a command while it is held, and give it back when the command has ended.

The reservation is served before the runs that wait and interrupts none. The slot is renewed as long as the command works. The command
has the terminal and gets signals; its environment has REPRISE_RESERVATION, the namespace and name of the reservation.

If the slot is lost, or cannot be renewed in time since the API server does not answer, the command and all it has started are ended
before somebody else can have the slot. If this program is killed, they are ended too, and the slot is given back. What runs as another
user, as with sudo, cannot be ended; on Windows and macOS neither can what has left the command's job or process group. Ctrl-Z has no
effect: whoever stands still keeps the slot from everybody.

Exit codes: that of the command, or 128 and the number of the signal that ended it; 75 the slot was lost, and the command was ended;
124 no slot was free within --timeout; 125 the command was not started, or its guard, the second process of this program, was killed;
126 it cannot be run; 127 it was not found; 130 interrupted while waiting.`

const examples = `  # Talk to the model while no job does
  kubectl reprise reserve --queue agents -- ollama run llama3

  # One of type story, with one ollama, and no longer wait than a minute
  kubectl reprise reserve --queue agents --type story --claims ollama=1 --timeout 1m -- ./story.sh

  # A shell that has the slot until it is left
  kubectl reprise reserve --queue agents -- bash`

// Commands returns the commands of this package.
func Commands(f *cli.Factory) []*cobra.Command {
	w := &wish{}
	cmd := &cobra.Command{
		Use:     "reserve [flags] -- COMMAND [ARGUMENT...]",
		Short:   "Run a command while it holds a slot of a queue",
		Long:    about,
		Example: examples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return errors.New("name the command to run, after --")
			}
			return w.check()
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if guard.Active() {
				serve(f, args)
				return nil
			}
			return failure(reserve(cmd.Context(), f, w, args))
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // the flags after the command are its own
	flags.StringVar(&w.queue, "queue", batchv1alpha1.DefaultQueue, "queue whose slot is reserved")
	flags.StringVar(&w.typeName, "type", "", "type of the slot, as that of a run")
	flags.StringSliceVar(&w.claims, "claims", nil, "resources of the queue to be reserved with it, as in ollama=1,remote=2")
	flags.DurationVar(&w.timeout, "timeout", 10*time.Minute, "how long to wait for the slot, at most 24h")
	flags.DurationVar(&w.lease, "lease", time.Minute, "how long the slot outlasts the last sign of life, 10s to 10m: outages of the API server that are shorter do no harm")
	flags.StringVar(&w.name, "name", "", "name of the reservation (default: a random one)")
	flags.StringVar(&w.holder, "holder", whoami(), "who holds the slot, as others see it")
	flags.BoolVarP(&w.quiet, "quiet", "q", false, "say nothing while all goes well")
	_ = cmd.RegisterFlagCompletionFunc("queue", f.Complete(0, cli.Kind{List: &batchv1alpha1.JobQueueList{}}))
	return []*cobra.Command{cmd}
}

// connect returns a client that knows the time in the cluster, and the namespace.
func connect(f *cli.Factory) (*slot, *session, error) {
	t := &times{clock: f.Clock}
	wrapped := f.Flags.WrapConfigFn
	f.Flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		if wrapped != nil {
			config = wrapped(config)
		}
		config.Wrap(t.through)
		return config
	}
	api, namespace, err := f.Connect()
	if err != nil {
		return nil, nil, err
	}
	s := &slot{api: api, clock: f.Clock, times: t, plan: guard.Plan{Namespace: namespace}}
	return s, &session{f: f, api: api, slot: s, versions: make(chan version), watching: make(chan finished, 1), looked: make(chan string)}, nil
}

func reserve(ctx context.Context, f *cli.Factory, w *wish, argv []string) error {
	s, x, err := connect(f)
	if err != nil {
		return err
	}
	if err := w.possible(ctx, s.api, s.plan.Namespace); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the guard of the command cannot be started: %w", err)
	}
	g, err := guard.Start(self, os.Args[1:], argv)
	if err != nil {
		return err
	}
	s.lease, s.plan = w.lease, w.planned(s.plan.Namespace)
	x.wish, x.guard, x.signals = w, g, signals(f)
	return x.run(ctx)
}

// serve is the guard's side: it gives the slot back if the holder cannot.
func serve(f *cli.Factory, argv []string) {
	f.TakeSignals()
	guard.Serve(argv, func(ctx context.Context, p guard.Plan) error {
		api, err := f.Client()
		if err != nil {
			return err
		}
		return giveBack(ctx, api, f.Clock, p)
	})
}

func isMissing(err error) bool {
	_, missing := errors.AsType[*cli.Missing](err)
	return missing
}
