// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"reprise.dev/reprise/internal/plugin"
	"reprise.dev/reprise/internal/plugin/cli"
)

// usage is a command of the plugin as a page names it, up to the end of the code or line.
var usage = regexp.MustCompile("kubectl reprise ([a-z-]+)([^`\n|#]*)")

var long = regexp.MustCompile(`(?:^| )--([a-z][a-z-]*)`)

// commands returns those of the plugin by name.
func commands() map[string]*cobra.Command {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	all := map[string]*cobra.Command{}
	for _, c := range plugin.Root(cli.NewFactory(streams)).Commands() {
		all[c.Name()] = c
	}
	return all
}

func TestThePageOfThePluginHasEveryCommand(t *testing.T) {
	page, err := os.ReadFile("plugin.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range commands() {
		if !regexp.MustCompile("`" + name + "[ `]").Match(page) {
			t.Errorf("plugin.md does not name %s", name)
		}
	}
}

func TestEveryCommandAndFlagOfThePluginThatAPageNamesExists(t *testing.T) {
	all := commands()
	named := 0
	for path, text := range pages(t) {
		for _, found := range usage.FindAllStringSubmatch(text, -1) {
			command := all[found[1]]
			if command == nil && !slices.Contains([]string{"help", "completion"}, found[1]) {
				t.Errorf("%s names kubectl reprise %s, which does not exist", path, found[1])
			}
			if command == nil {
				continue
			}
			named++
			own, _, _ := strings.Cut(found[2], " -- ")
			for _, flag := range long.FindAllStringSubmatch(own, -1) {
				if !has(command, flag[1]) {
					t.Errorf("%s: kubectl reprise %s has no flag --%s", path, found[1], flag[1])
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("the pages name %d commands only", named)
	}
}

func has(c *cobra.Command, flag string) bool {
	known := func(flags *pflag.FlagSet) bool { return flags.Lookup(flag) != nil }
	return flag == "help" || known(c.Flags()) || known(c.InheritedFlags())
}
