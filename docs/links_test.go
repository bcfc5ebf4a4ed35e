// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	links := 0
	for path, text := range pages(t) {
		for _, found := range link.FindAllStringSubmatch(inline.ReplaceAllString(fence.ReplaceAllString(text, ""), ""), -1) {
			links++
			if problem := follow(path, found[1]); problem != "" {
				t.Errorf("%s: link to %s: %s", path, found[1], problem)
			}
		}
	}
	if links == 0 {
		t.Error("there are no links")
	}
}

// follow says what is wrong with a link on a page.
func follow(page, target string) string {
	if strings.Contains(target, "://") {
		return "pages link to nothing outside the repository, which no test could follow"
	}
	file, anchor, _ := strings.Cut(target, "#")
	path := page
	if file != "" {
		path = filepath.Join(filepath.Dir(page), file)
	}
	if _, err := os.Stat(path); err != nil {
		return err.Error()
	}
	if anchor == "" {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	for _, found := range heading.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
		if slug(found[1]) == anchor {
			return ""
		}
	}
	return "there is no such heading"
}

var notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// slug is the anchor that code forges give to a heading.
func slug(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func TestEveryPageIsLinkedFromTheREADME(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for path := range pages(t) {
		if path != filepath.Join("..", "README.md") && !strings.Contains(string(readme), "(docs/"+path) {
			t.Errorf("%s is not linked", path)
		}
	}
}
