// SPDX-License-Identifier: Apache-2.0

// Command manager runs the controllers of Reprise.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"reprise.dev/reprise/internal/operator"
	"reprise.dev/reprise/internal/tracing"
	"reprise.dev/reprise/internal/version"
)

func main() {
	if err := run(flag.CommandLine, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(flags *flag.FlagSet, args []string) error {
	options := operator.DefaultOptions()
	bind(flags, &options)
	logs := zap.Options{} // JSON, at info
	logs.BindFlags(flags)
	showVersion := flags.Bool("version", false, "Print the version and exit.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *showVersion {
		fmt.Println(version.String())
		return nil
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; every setting is a flag, see --help", flags.Arg(0))
	}
	options.Log = zap.New(zap.UseFlagOptions(&logs))
	return manage(options)
}

func manage(options operator.Options) error {
	setLogger(options.Log)
	if err := options.Validate(); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server (use --kubeconfig outside a cluster): %w", err)
	}
	options.Log.Info("starting", "version", version.String(), "id", options.ID)
	ctx := ctrl.SetupSignalHandler()
	options.Tracer, err = tracing.FromEnv(ctx, os.Getenv, options.ID, options.Log.WithName("tracing"))
	if err != nil {
		return err
	}
	defer options.Tracer.Shutdown(ctx)
	op, err := operator.New(ctx, config, options)
	if err != nil {
		return err
	}
	if err := op.Run(ctx); err != nil {
		return fmt.Errorf("ended: %w", err)
	}
	options.Log.Info("ended")
	return nil
}

func setLogger(log logr.Logger) {
	ctrl.SetLogger(log)
	klog.SetLogger(log)
}

// errNotPrefix says how an allow-list is written.
var errNotPrefix = errors.New("use a comma-separated list of address ranges such as 127.0.0.0/8,fd00::/8")
