// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// style is how a character looks: what the plugin uses of a terminal's possibilities.
type style struct {
	colour    int // 31 to 36; 0 is the terminal's own
	bold, dim bool
}

type cell struct {
	char  rune
	style style
}

// screen is a terminal, as far as the plugin needs one.
type screen struct {
	columns int
	rows    [][]cell
	x, y    int
	now     style
}

func newScreen(columns int) *screen { return &screen{columns: columns} }

// write shows what a program has written.
func (s *screen) write(text string) {
	for len(text) > 0 {
		if rest, ok := s.escape(text); ok {
			text = rest
			continue
		}
		char, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch char {
		case '\r':
			s.x = 0
		case '\n':
			s.y++
		default:
			if char >= ' ' {
				s.put(char)
			}
		}
	}
}

func (s *screen) put(char rune) {
	if s.x >= s.columns {
		s.x = 0
		s.y++
	}
	s.reach()
	row := s.rows[s.y]
	for len(row) <= s.x {
		row = append(row, cell{char: ' '})
	}
	row[s.x] = cell{char: char, style: s.now}
	s.rows[s.y] = row
	s.x++
}

// reach makes the row of the cursor.
func (s *screen) reach() {
	for len(s.rows) <= s.y {
		s.rows = append(s.rows, nil)
	}
}

// escape obeys a control sequence (CSI) at the beginning of the text.
func (s *screen) escape(text string) (rest string, ok bool) {
	body, found := strings.CutPrefix(text, "\x1b[")
	if !found {
		return text, false
	}
	end := strings.IndexFunc(body, func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 {
		return "", true // cut off
	}
	s.obey(body[end], parameters(body[:end]))
	return body[end+1:], true
}

func parameters(text string) []int {
	var all []int
	for part := range strings.SplitSeq(text, ";") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 0 // left out, or private
		}
		all = append(all, n)
	}
	return all
}

func (s *screen) obey(command byte, values []int) {
	first := max(values[0], 1)
	switch command {
	case 'm':
		for _, v := range values {
			s.paint(v)
		}
	case 'A':
		s.y = max(s.y-first, 0)
	case 'B':
		s.y += first
	case 'G':
		s.x = first - 1
	case 'H':
		s.y, s.x = first-1, 0
		if len(values) > 1 {
			s.x = max(values[1], 1) - 1
		}
	case 'J':
		s.erase(values[0])
	case 'K':
		s.reach()
		s.rows[s.y] = s.rows[s.y][:min(s.x, len(s.rows[s.y]))]
	}
}

// erase removes what is below and right of the cursor, or everything.
func (s *screen) erase(what int) {
	if what >= 2 {
		s.rows = nil
		return
	}
	s.reach()
	s.rows[s.y] = s.rows[s.y][:min(s.x, len(s.rows[s.y]))]
	s.rows = s.rows[:s.y+1]
}

func (s *screen) paint(code int) {
	switch {
	case code == 0:
		s.now = style{}
	case code == 1:
		s.now.bold = true
	case code == 2:
		s.now.dim = true
	case code == 22:
		s.now.bold, s.now.dim = false, false
	case code >= 31 && code <= 36:
		s.now.colour = code
	case code == 39:
		s.now.colour = 0
	}
}

// shown returns the rows without the empty ones at the end.
func (s *screen) shown() [][]cell {
	last := len(s.rows)
	for last > 0 && strings.TrimSpace(plain(s.rows[last-1])) == "" {
		last--
	}
	return s.rows[:last]
}

func plain(row []cell) string {
	var b strings.Builder
	for _, c := range row {
		b.WriteRune(c.char)
	}
	return b.String()
}
