// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Measures in pixels, of a monospaced font of which nothing is known but that a character is about 0.6 of its size wide.
const (
	fontSize   = 14
	charWidth  = 8.43
	lineHeight = 20
	margin     = 16
	titleBar   = 28
)

const (
	background = "#16181d"
	foreground = "#d7dae0"
)

// palette are the colours of a dark terminal, by their codes.
var palette = map[int]string{31: "#f07178", 32: "#8fd18f", 33: "#e6c07b", 34: "#7aa2f7", 35: "#c792ea", 36: "#6fc3df"}

// picture draws a terminal with a command and what it printed. Each run of characters that look alike has its place by column, so
// that columns stand where they should in any font.
func picture(command string, rows [][]cell, columns int) string {
	prompt := append(paintAll("$ ", style{colour: 32, bold: true}), paintAll(command, style{bold: true})...)
	rows = append([][]cell{prompt}, rows...)
	width := int(float64(columns)*charWidth) + 2*margin
	height := len(rows)*lineHeight + titleBar + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, escaped(command))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	for i, colour := range []string{"#f07178", "#e6c07b", "#8fd18f"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="5" fill="%s"/>`+"\n", margin+4+i*18, titleBar/2, colour)
	}
	fmt.Fprintf(&b, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%d" fill="%s">`+"\n",
		fontSize, foreground)
	for i, row := range rows {
		drawRow(&b, row, titleBar+(i+1)*lineHeight-4)
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

func paintAll(text string, s style) []cell {
	var row []cell
	for _, char := range text {
		row = append(row, cell{char, s})
	}
	return row
}

// drawRow draws each word by itself: what looks alike and has no two spaces within.
func drawRow(b *strings.Builder, row []cell, y int) {
	for start := 0; start < len(row); {
		end := start + 1
		for end < len(row) && row[end].style == row[start].style && !gap(row, end) {
			end++
		}
		if text := strings.TrimRight(plain(row[start:end]), " "); strings.TrimSpace(text) != "" {
			lead := len(text) - len(strings.TrimLeft(text, " "))
			fmt.Fprintf(b, `<text x="%.1f" y="%d"%s xml:space="preserve">%s</text>`+"\n",
				margin+float64(start+lead)*charWidth, y, attributes(row[start].style), escaped(text[lead:]))
		}
		start = end
	}
}

// gap says whether a word begins after two spaces.
func gap(row []cell, i int) bool {
	return i >= 2 && row[i].char != ' ' && row[i-1].char == ' ' && row[i-2].char == ' '
}

func attributes(s style) string {
	text := ""
	if colour := palette[s.colour]; colour != "" {
		text += ` fill="` + colour + `"`
	}
	if s.bold {
		text += ` font-weight="bold"`
	}
	if s.dim {
		text += ` opacity="0.6"`
	}
	return text
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}
