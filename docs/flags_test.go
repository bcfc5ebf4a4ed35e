// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of flags into operations.md")

const (
	flagsPage  = "operations.md"
	flagsBegin = "<!-- flags: written by go test ./docs -run Flags -update -->\n"
	flagsEnd   = "<!-- end of flags -->"
)

var oneFlag = regexp.MustCompile(`(?m)^  -(\S+).*\n    \t(.*?)(?: \(default ([^()]*)\))?$`)

// table makes the table of flags from what the manager says of itself.
func table(t *testing.T) string {
	t.Helper()
	help := exec.CommandContext(t.Context(), "go", "run", "./cmd/manager", "--help")
	help.Dir = ".."
	help.Env = append(os.Environ(), "POD_NAMESPACE=") // one default is the namespace of the pod, in a pod
	out, err := help.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var b strings.Builder
	b.WriteString("\n| flag | default | meaning |\n| --- | --- | --- |\n")
	flags := oneFlag.FindAllStringSubmatch(string(out), -1)
	if lines := strings.Count(string(out), "\n  -"); lines != len(flags) {
		t.Fatalf("of %d flags %d were understood:\n%s", lines, len(flags), out)
	}
	for _, f := range flags {
		value := ""
		if f[3] != "" {
			value = "`" + strings.Trim(f[3], `"`) + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | %s | %s |\n", f[1], value, strings.ReplaceAll(f[2], "|", `\|`))
	}
	return b.String() + "\n"
}

func TestTheTableOfFlagsIsWhatTheManagerSays(t *testing.T) {
	text, err := os.ReadFile(flagsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), flagsBegin)
	present, after, ends := strings.Cut(rest, flagsEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", flagsPage)
	}
	want := table(t)
	if present == want {
		return
	}
	if !*update {
		t.Fatalf("%s has another table of flags than the manager; go test ./docs -run Flags -update writes it:\n%s", flagsPage, want)
	}
	if err := os.WriteFile(flagsPage, []byte(before+flagsBegin+want+flagsEnd+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
