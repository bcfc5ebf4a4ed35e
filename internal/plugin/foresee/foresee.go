// SPDX-License-Identifier: Apache-2.0

// Package foresee holds the commands of kubectl reprise that tell what will happen: next, the coming ticks of a schedule, and
// plan, what a restart of the manager or a resume would do. They decide by the manager's own rules, and never write.
package foresee

import (
	"github.com/spf13/cobra"

	"reprise.dev/reprise/internal/plugin/cli"
)

// Commands returns the commands of this package.
func Commands(f *cli.Factory) []*cobra.Command {
	return []*cobra.Command{nextCommand(f), planCommand(f)}
}
