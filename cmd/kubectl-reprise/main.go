// SPDX-License-Identifier: Apache-2.0

// Command kubectl-reprise is the kubectl plugin: `kubectl reprise`. Called kubectl_complete-reprise it completes its arguments for
// kubectl.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"reprise.dev/reprise/internal/plugin"
	"reprise.dev/reprise/internal/plugin/cli"
)

func main() {
	f := cli.NewFactory(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	os.Exit(f.Execute(context.Background(), plugin.Root(f), arguments(os.Args)))
}

// arguments returns those of the process; kubectl asks for completions by a name of the program.
func arguments(args []string) []string {
	called := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if called == "kubectl_complete-reprise" {
		return append([]string{cobra.ShellCompRequestCmd}, args[1:]...)
	}
	return args[1:]
}
