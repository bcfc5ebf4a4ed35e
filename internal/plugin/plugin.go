// SPDX-License-Identifier: Apache-2.0

// Package plugin is kubectl reprise as a whole.
package plugin

import (
	"github.com/spf13/cobra"

	"reprise.dev/reprise/internal/plugin/act"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/convert"
	"reprise.dev/reprise/internal/plugin/foresee"
	"reprise.dev/reprise/internal/plugin/logs"
	"reprise.dev/reprise/internal/plugin/reserve"
	"reprise.dev/reprise/internal/plugin/show"
	"reprise.dev/reprise/internal/version"
)

const about = `Drive Reprise: scheduled, queued and interactive jobs.

Every command exits with 0 when it did what it was asked to, 1 when it could not, 2 when it was called wrongly, 124 when
what it waited for did not come in time, and 130 when it was interrupted.`

// Root returns the command that all others are part of.
func Root(f *cli.Factory) *cobra.Command {
	root := &cobra.Command{
		Use:         "kubectl-reprise",
		Short:       "Drive Reprise: scheduled, queued and interactive jobs",
		Long:        about,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl reprise"},
	}
	f.AddFlags(root)
	for _, part := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"see", "See:", append(show.Commands(f), append(logs.Commands(f), foresee.Commands(f)...)...)},
		{"drive", "Drive:", append(act.Commands(f), reserve.Commands(f)...)},
		{"move", "Move:", convert.Commands(f)},
	} {
		root.AddGroup(&cobra.Group{ID: part.id, Title: part.title})
		for _, command := range part.commands {
			command.GroupID = part.id
			root.AddCommand(command)
		}
	}
	root.AddCommand(versionCommand(f))
	return root
}

func versionCommand(f *cli.Factory) *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version of the plugin",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			f.Printf("kubectl-reprise %s\n", version.String())
			return nil
		},
	}
}
