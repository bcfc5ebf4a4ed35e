// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAScreenShowsWhatATerminalWould(t *testing.T) {
	for name, c := range map[string]struct{ written, shown string }{
		"lines":                              {"one\r\ntwo\r\n", "one\ntwo"},
		"a line written over":                {"wait…\rdone \r\n", "done "},
		"a picture drawn anew from the top":  {"old\r\nlonger\r\n\x1b[H\x1b[Jnew\r\n", "new"},
		"a screen that is cleared":           {"old\x1b[2J\x1b[1;1Hnew", "new"},
		"lines that are drawn over":          {"a\r\nb\r\n\x1b[2A\x1b[Kc\r\nd\x1b[K", "c\nd"},
		"a cursor that is hidden":            {"\x1b[?25lx\x1b[?25h", "x"},
		"a line that is too long":            {strings.Repeat("a", 12), "aaaaaaaaaa\naa"},
		"colours that take no room":          {"\x1b[1;32mgreen\x1b[0m!", "green!"},
		"an end in the middle of a sequence": {"x\x1b[3", "x"},
	} {
		s := newScreen(10)
		s.write(c.written)
		if got := text(s.shown()); got != c.shown {
			t.Errorf("%s: %q, want %q", name, got, c.shown)
		}
	}
}

func TestAPictureIsWellFormedAndHasEveryWordInItsColumnAndColour(t *testing.T) {
	s := newScreen(40)
	s.write("NAME      PHASE\r\n<a&b>     \x1b[36mRunning\x1b[0m\r\n")
	drawn := picture("kubectl reprise queue", s.shown(), 40)
	texts := map[string]string{} // of each word, its place and colour
	for d := xml.NewDecoder(strings.NewReader(drawn)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, drawn)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "text" {
			continue
		}
		var word string
		if err := d.DecodeElement(&word, &start); err != nil {
			t.Fatal(err)
		}
		attributes := map[string]string{}
		for _, a := range start.Attr {
			attributes[a.Name.Local] = a.Value
		}
		texts[word] = attributes["x"] + " " + attributes["fill"]
	}
	if texts["NAME"] != "16.0 " || texts["<a&b>"] != "16.0 " || texts["PHASE"] != "100.3 " || texts["Running"] != "100.3 "+palette[36] {
		t.Errorf("it has %q", texts)
	}
}

func TestTheSceneHasAnActForEachOfItsParts(t *testing.T) {
	if parts := strings.Split(scene, "--- # when"); len(parts) != len(acts) {
		t.Errorf("%d parts and %d acts", len(parts), len(acts))
	}
}
