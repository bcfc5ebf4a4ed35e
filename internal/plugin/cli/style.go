// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"

	"golang.org/x/term"

	"reprise.dev/reprise/internal/plugin/text"
)

// Style is how Out shows text: in colours on a terminal alone, cut off at its edge if it is one.
func (f *Factory) Style() text.Style {
	style := text.Style{Colours: f.Colour}
	if f.Terminal {
		style.Width, _ = f.Size()
	}
	return style
}

// Table writes a table.
func (f *Factory) Table(t *text.Table) {
	for _, line := range t.Lines(f.Style()) {
		f.Printf("%s\n", line)
	}
}

// Size returns the columns and rows of the terminal, 80 and 24 if Out is none.
func (f *Factory) Size() (columns, rows int) {
	if out, ok := f.Out.(*os.File); ok && f.Terminal {
		if columns, rows, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}
