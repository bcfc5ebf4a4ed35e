// SPDX-License-Identifier: Apache-2.0

// Command realnode runs a Kubernetes cluster of one node on this machine, in namespaces of its own, without Docker.
//
//	realnode enter   runs a command in the namespaces of a new cluster, which it starts itself with internal/realnode
//	realnode up      runs a cluster until it is interrupted
//	realnode exec    runs a command in the namespaces of a cluster that runs, with kubectl and its KUBECONFIG
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/realnode"
)

const usage = `Usage:
  realnode enter [-name NAME] [-dir DIR] -- COMMAND [ARGS...]   make the namespaces of a cluster, run COMMAND in them
  realnode up    [-name NAME] [-dir DIR] IMAGE.tar...           run a cluster until Ctrl-C; the pause image is among the images
  realnode exec  [-name NAME] [-dir DIR] -- COMMAND [ARGS...]   run COMMAND inside a cluster that runs, with its KUBECONFIG
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		code = 2
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "realnode:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// options are what all verbs have.
type options struct {
	name, dir string
	args      []string
}

func parse(verb string, args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.StringVar(&o.name, "name", realnode.DefaultName, "tells clusters on one machine apart")
	flags.StringVar(&o.dir, "dir", "", "data and logs; empty means reprise-node-<name> in the directory of temporary files")
	err := flags.Parse(args)
	o.args = flags.Args()
	if o.dir == "" {
		o.dir = realnode.DirOf(o.name)
	}
	return o, err
}

func run(ctx context.Context, args []string, out io.Writer) (int, error) {
	if len(args) == 0 {
		_, _ = fmt.Fprint(os.Stderr, usage)
		return 0, flag.ErrHelp
	}
	if args[0] == realnode.InitVerb {
		return realnode.Init(ctx, args[1:]), nil
	}
	o, err := parse(args[0], args[1:])
	if err != nil {
		return 0, err
	}
	switch args[0] {
	case "enter":
		return realnode.Enter(ctx, realnode.EnterOptions{Name: o.name, Dir: o.dir, Command: o.args})
	case "exec":
		return 0, execute(ctx, o)
	case "up":
		return up(ctx, o, out)
	default:
		_, _ = fmt.Fprint(os.Stderr, usage)
		return 0, fmt.Errorf("unknown verb %q", args[0])
	}
}

// up runs a cluster. Outside of the namespaces it runs itself again inside.
func up(ctx context.Context, o options, out io.Writer) (int, error) {
	if realnode.Inside() {
		return 0, stay(ctx, o, out)
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	again := append([]string{self, "up", "-name", o.name, "-dir", o.dir}, o.args...)
	return realnode.Enter(ctx, realnode.EnterOptions{Name: o.name, Dir: o.dir, Command: again})
}

// stay runs a cluster until ctx ends, which is success, or one of its processes does, which is not.
func stay(ctx context.Context, o options, out io.Writer) error {
	node, err := realnode.Start(ctx, realnode.Options{Images: o.args})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, node.Kubeconfig()); err != nil {
		return errors.Join(err, node.Stop())
	}
	_, _ = fmt.Fprintf(os.Stderr, "The cluster is up, its logs are in %s. Ctrl-C ends it.\n"+
		"From another terminal: realnode exec -name %s -dir %s -- kubectl get nodes\n", node.Logs(), o.name, o.dir)
	select {
	case <-ctx.Done():
		return node.Stop()
	case <-node.Ended():
		return errors.Join(node.Err(), node.Stop())
	}
}

// execute becomes the command, inside a cluster that runs.
func execute(ctx context.Context, o options) error {
	if len(o.args) == 0 {
		return errors.New("no command to run in the cluster")
	}
	pid, err := realnode.PIDOf(o.dir)
	if err != nil {
		return err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	assets, err := controlplane.EnsureAssets(ctx, controlplane.AssetOptions{})
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	env := append(os.Environ(),
		"KUBECONFIG="+filepath.Join(o.dir, "kubeconfig"),
		"KUBECACHEDIR="+filepath.Join(o.dir, "kubectl-cache"),
		"PATH="+assets.Dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	args := append([]string{nsenter, "--target", strconv.Itoa(pid), "--net", "--mount", "--pid", "--wd=" + here, "--"}, o.args...)
	return syscall.Exec(nsenter, args, env)
}
