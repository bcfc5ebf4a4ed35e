// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"unicode/utf8"
)

// gap is the space between two columns.
const gap = 3

// Cell is one field of a table.
type Cell struct {
	Text   string
	Colour Colour
}

// Plain is a cell without a colour.
func Plain(text string) Cell { return Cell{Text: text} }

// Table is rows whose columns stand under each other. The last column is never padded. The zero value is empty.
type Table struct {
	// Indent is how many spaces begin each line.
	Indent int
	headed bool
	rows   [][]Cell
}

// Header begins the table with a row of headings.
func (t *Table) Header(names ...string) {
	row := make([]Cell, 0, len(names))
	for _, name := range names {
		row = append(row, Cell{name, Dim})
	}
	t.headed, t.rows = true, [][]Cell{row}
}

// Row adds a row.
func (t *Table) Row(cells ...Cell) { t.rows = append(t.rows, cells) }

// Lines returns the rows as lines. A column that is empty in every row but the header is left out.
func (t *Table) Lines(s Style) []string {
	widths := t.widths()
	lines := make([]string, 0, len(t.rows))
	for _, row := range t.rows {
		lines = append(lines, t.line(row, widths, s))
	}
	return lines
}

// widths returns the width of each column, 0 for one that is left out.
func (t *Table) widths() []int {
	var widths []int
	var used []bool
	for n, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths, used = append(widths, 0), append(used, false)
			}
			w := utf8.RuneCountInString(Line(cell.Text))
			widths[i] = max(widths[i], w)
			used[i] = used[i] || (w > 0 && (n > 0 || !t.headed))
		}
	}
	for i := range widths {
		if !used[i] {
			widths[i] = 0
		}
	}
	return widths
}

func (t *Table) line(row []Cell, widths []int, s Style) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", t.Indent))
	at, pad := t.Indent, 0
	for i, cell := range row {
		if widths[i] == 0 {
			continue
		}
		text := Line(cell.Text)
		if s.Width > 0 {
			text = cut(text, s.Width-at-pad)
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", pad))
			b.WriteString(s.Paint(cell.Colour, text))
			at += pad + utf8.RuneCountInString(text)
			pad = 0
		}
		pad += widths[i] - utf8.RuneCountInString(text) + gap
	}
	return b.String()
}
