// SPDX-License-Identifier: Apache-2.0

// Command localplane finds or builds the binaries of a Kubernetes control plane, and runs one on this machine.
//
//	localplane assets   makes sure that the binaries are there and prints their directory
//	localplane up       runs a control plane until it is interrupted
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"reprise.dev/reprise/internal/controlplane"
)

const usage = `Usage:
  localplane assets            find or build the binaries, print their directory
  localplane up [-dir DIR]     run a control plane until Ctrl-C; -dir keeps its data
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "localplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		_, _ = fmt.Fprint(os.Stderr, usage)
		return flag.ErrHelp
	}
	switch args[0] {
	case "assets":
		return printAssets(ctx, out)
	case "up":
		return up(ctx, args[1:], out)
	default:
		_, _ = fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("unknown verb %q", args[0])
	}
}

func printAssets(ctx context.Context, out io.Writer) error {
	assets, err := controlplane.EnsureAssets(ctx, controlplane.AssetOptions{ControllerManager: true})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, assets.Dir)
	return err
}

// up runs a control plane until ctx ends, which is success, or one of its processes does, which is not.
func up(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	dir := flags.String("dir", "", "keep data and logs in this directory; empty means a temporary one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	crds, err := ourCRDs()
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true,
		CRDDirs:           crds,
		Dir:               *dir,
		Fsync:             *dir != "",
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "export KUBECONFIG=%s\n", plane.Kubeconfig()); err != nil {
		return errors.Join(err, plane.Stop())
	}
	_, _ = fmt.Fprintf(os.Stderr, "The control plane is up at %s, its logs are in %s.\nkubectl is %s. Ctrl-C ends it.\n",
		plane.Config().Host, plane.Dir(), plane.Kubectl(ctx).Path)
	select {
	case <-ctx.Done():
		return plane.Stop()
	case <-plane.Ended():
		return errors.Join(plane.Err(), plane.Stop())
	}
}

// ourCRDs returns the directory of the generated CRDs, and nothing while they are not generated.
func ourCRDs() ([]string, error) {
	root, err := controlplane.Root()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "config", "crd", "bases")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	return []string{dir}, nil
}
