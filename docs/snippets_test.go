// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostUnexecuted bounds the snippets that only a real cluster, a registry or somebody else's tool could execute.
const mostUnexecuted = 18

// TestEverySnippetWorks goes through each page as a reader would, in a namespace of its own: objects are applied, commands run
// in order, and what a page shows of their output is compared.
func TestEverySnippetWorks(t *testing.T) {
	for path, text := range pages(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			steps, err := read(text)
			if err != nil {
				t.Fatal(err)
			}
			if len(steps) == 0 {
				return
			}
			r := newReader(t)
			for _, s := range steps {
				if err := r.take(s); err != nil {
					t.Fatalf("line %d: %v", s.line, err)
				}
			}
			r.finish()
		})
	}
}

// TestFewSnippetsAreNotExecuted keeps the exceptions in sight: what each needs is said beside it.
func TestFewSnippetsAreNotExecuted(t *testing.T) {
	var excused []string
	executed := 0
	for path, text := range pages(t) {
		steps, err := read(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, s := range steps {
			switch {
			case s.needs != "":
				excused = append(excused, fmt.Sprintf("%s:%d needs %s", filepath.Base(path), s.line, s.needs))
			case !s.hidden:
				executed++
			}
		}
	}
	slices.Sort(excused)
	t.Logf("%d snippets are executed, %d are not:\n%s", executed, len(excused), strings.Join(excused, "\n"))
	if len(excused) > mostUnexecuted {
		t.Errorf("%d snippets are not executed; %d may be", len(excused), mostUnexecuted)
	}
	if executed < 3*len(excused) {
		t.Errorf("only %d snippets are executed", executed)
	}
}

// step is one thing that a page asks its reader to do.
type step struct {
	line int
	// language is sh (commands), yaml (objects), json, or text (the output of the commands before it).
	language, text string
	// file is the name under which the reader is to save the text instead of applying it: its first line says so.
	file string
	// hidden commands prepare what the page takes for granted. They stand in its source only.
	hidden bool
	// needs is what it takes to execute the step, if a test cannot.
	needs string
	// interrupted commands go on until the reader presses Ctrl-C.
	interrupted bool
	// exit is the exit code that the page shows.
	exit int
}

var (
	fileLine  = regexp.MustCompile(`^# ([\w.-]+\.ya?ml)\n`)
	command   = regexp.MustCompile(`(?m)^\s*\$?\s*(kubectl|helm|make|curl) `)
	languages = []string{"sh", "yaml", "json", "text"}
)

// read finds the steps of a page. A block without a language is a drawing. An HTML comment directs the block after it:
//
//	<!-- snippet: needs … -->         nobody executes it
//	<!-- snippet: interrupted -->     it goes on until Ctrl-C
//	<!-- snippet: exit 3 -->          it fails, with this exit code
//	<!-- snippet: before              commands that nobody sees, in this and the following lines
//	… -->
func read(text string) ([]step, error) {
	var steps []step
	var next step
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		line, start := lines[i], i+1
		var err error
		switch {
		case strings.HasPrefix(line, "<!-- snippet: "):
			var body string
			if body, i, err = until(lines, i, "-->\n"); err == nil {
				steps, err = direct(steps, &next, strings.TrimSpace(strings.TrimPrefix(body, "<!-- snippet: ")), start)
			}
		case strings.HasPrefix(line, "```"):
			var body string
			if body, i, err = until(lines, i+1, "```\n"); err == nil {
				steps, err = block(steps, next, strings.TrimSpace(line[3:]), body, start)
				next = step{}
			}
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			err = fmt.Errorf("an indented block is overlooked")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", start, err)
		}
	}
	return steps, filesAreUsed(steps)
}

// until returns the text up to an end, and the line that has it.
func until(lines []string, from int, end string) (string, int, error) {
	var text strings.Builder
	for i := from; i < len(lines); i++ {
		if before, found := strings.CutSuffix(lines[i], end); found {
			text.WriteString(before)
			return text.String(), i, nil
		}
		text.WriteString(lines[i])
	}
	return "", 0, fmt.Errorf("no %s follows", strings.TrimSpace(end))
}

func direct(steps []step, next *step, directive string, line int) ([]step, error) {
	verb, rest, _ := strings.Cut(directive, " ")
	if body, found := strings.CutPrefix(directive, "before\n"); found {
		return append(steps, step{line: line, language: "sh", text: body, hidden: true}), nil
	}
	switch verb {
	case "needs":
		next.needs = rest
	case "interrupted":
		next.interrupted = true
	case "exit":
		if _, err := fmt.Sscan(rest, &next.exit); err != nil {
			return nil, fmt.Errorf("exit %s: %w", rest, err)
		}
	default:
		return nil, fmt.Errorf("unknown directive %q", directive)
	}
	return steps, nil
}

func block(steps []step, s step, language, text string, line int) ([]step, error) {
	s.line, s.language, s.text = line, language, text
	switch {
	case language == "" && command.MatchString(text):
		return nil, fmt.Errorf("commands without a language are not executed: name it sh")
	case language == "":
		return steps, nil
	case s.needs == "" && !slices.Contains(languages, language):
		return nil, fmt.Errorf("blocks of %s are not executed: the languages are %v", language, languages)
	case language == "text" && (len(steps) == 0 || steps[len(steps)-1].language != "sh"):
		return nil, fmt.Errorf("this output follows no commands")
	}
	if found := fileLine.FindStringSubmatch(text); found != nil && language == "yaml" {
		s.file = found[1]
	}
	return append(steps, s), nil
}

// filesAreUsed complains of files that a page has its reader save and never use.
func filesAreUsed(steps []step) error {
	for i, s := range steps {
		used := func(later step) bool {
			return later.language == "sh" && (strings.Contains(later.text, s.file) || usesDirectory(s, later))
		}
		if s.file != "" && s.needs == "" && !slices.ContainsFunc(steps[i+1:], used) {
			return fmt.Errorf("line %d: no command uses %s", s.line, s.file)
		}
	}
	return nil
}

// usesDirectory: kubectl finds a kustomization by its directory.
func usesDirectory(s, later step) bool {
	return s.file == "kustomization.yaml" && (strings.Contains(later.text, "-k .") || strings.Contains(later.text, "kustomize ."))
}

// take does a step.
func (r *reader) take(s step) error {
	switch {
	case s.needs != "":
		return nil
	case s.file != "":
		return os.WriteFile(filepath.Join(r.dir, s.file), []byte(s.text), 0o600)
	case s.language == "yaml":
		return r.run("kubectl apply --validate=strict -f -", s)
	case s.language == "json":
		if !json.Valid([]byte(s.text)) {
			return fmt.Errorf("this is no JSON: %s", s.text)
		}
		return nil
	case s.language == "text":
		return alike(s.text, r.output)
	}
	return r.run(s.text, s)
}

func TestAPageIsReadAsItsReaderWould(t *testing.T) {
	page := "# Title\n\n```\na drawing\n```\n<!-- snippet: needs cluster -->\n```sh\nhelm\n```\n<!-- snippet: before\nkubectl a\nkubectl b\n-->\n" +
		"<!-- snippet: exit 3 -->\n```sh\nkubectl reprise run x\n```\n```text\nno\n```\n```yaml\n# f.yaml\nkind: X\n```\n```sh\nkubectl apply -f f.yaml\n```\n"
	steps, err := read(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{line: 7, language: "sh", text: "helm\n", needs: "cluster"},
		{line: 10, language: "sh", text: "kubectl a\nkubectl b", hidden: true},
		{line: 15, language: "sh", text: "kubectl reprise run x\n", exit: 3},
		{line: 18, language: "text", text: "no\n"},
		{line: 21, language: "yaml", text: "# f.yaml\nkind: X\n", file: "f.yaml"},
		{line: 25, language: "sh", text: "kubectl apply -f f.yaml\n"},
	}
	if !slices.Equal(steps, want) {
		t.Errorf("read\n%+v\nwant\n%+v", steps, want)
	}
}

func TestAPageThatHidesASnippetIsRefused(t *testing.T) {
	for name, page := range map[string]string{
		"an unknown language":                    "```bash\nkubectl get jr\n```\n",
		"commands without a language":            "```\nkubectl get jr\n```\n",
		"an indented block":                      "- x\n  ```sh\n  kubectl get jr\n  ```\n",
		"a block without an end":                 "```sh\nkubectl get jr\n",
		"an unknown directive":                   "<!-- snippet: perhaps -->\n```sh\nkubectl get jr\n```\n",
		"an output without commands":             "```text\nhello\n```\n",
		"a file that no command uses":            "```yaml\n# f.yaml\nkind: X\n```\n",
		"a file that is used before it is there": "```sh\nkubectl apply -f f.yaml\n```\n```yaml\n# f.yaml\nkind: X\n```\n",
	} {
		if _, err := read(page); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
