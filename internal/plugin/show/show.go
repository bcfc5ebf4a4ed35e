// SPDX-License-Identifier: Apache-2.0

// Package show holds the commands of kubectl reprise that tell how things stand: queue, why and tree. They read and never write.
package show

import (
	"github.com/spf13/cobra"

	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/text"
)

// Kinds of the nodes of a tree.
const (
	kindJobRun       = cli.JobRun
	kindJobGroup     = cli.JobGroup
	kindScheduledJob = cli.ScheduledJob
	kindMember       = "Member"
)

// Commands returns the commands of this package.
func Commands(f *cli.Factory) []*cobra.Command {
	return []*cobra.Command{queueCommand(f), whyCommand(f), treeCommand(f)}
}

// style is that of the terminal, but that wide output is not cut off at its edge.
func style(f *cli.Factory, output *cli.Output) text.Style {
	s := f.Style()
	if output.Wide() {
		s.Width = 0
	}
	return s
}
