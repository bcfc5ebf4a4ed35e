// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryPictureIsShownAndIsWellFormedWithoutScripts(t *testing.T) {
	pictures, err := filepath.Glob("images/*.svg")
	if err != nil || len(pictures) == 0 {
		t.Fatalf("found %v: %v", pictures, err)
	}
	all := strings.Builder{}
	for _, text := range pages(t) {
		all.WriteString(text)
	}
	for _, picture := range pictures {
		if !strings.Contains(all.String(), "("+picture+")") && !strings.Contains(all.String(), "(docs/"+picture+")") {
			t.Errorf("%s is on no page", picture)
		}
		elements, err := elementsOf(picture)
		if err != nil {
			t.Errorf("%s: %v", picture, err)
		}
		if elements["text"] == 0 || elements["script"] > 0 {
			t.Errorf("%s has %v", picture, elements)
		}
	}
}

// elementsOf counts the elements of a picture by their names.
func elementsOf(picture string) (map[string]int, error) {
	f, err := os.Open(picture)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	elements := map[string]int{}
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, nil
		}
		if err != nil {
			return elements, err
		}
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
		}
	}
}
