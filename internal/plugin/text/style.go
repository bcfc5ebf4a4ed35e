// SPDX-License-Identifier: Apache-2.0

// Package text lays out what the commands of kubectl reprise show to people: tables, colours, times. It is pure.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Colour of a piece of text on a terminal. The colours are those of the terminal's own scheme, so that they are readable on a
// light and on a dark one.
type Colour string

// The colours. The zero value is none.
const (
	Green  Colour = "32"
	Yellow Colour = "33"
	Red    Colour = "31"
	Cyan   Colour = "36"
	Bold   Colour = "1"
	Dim    Colour = "2"
)

// Style is how text is shown. The zero value is plain text of any width.
type Style struct {
	// Colours says whether colours are shown.
	Colours bool
	// Width is where lines are cut off. 0: nowhere.
	Width int
}

// Paint returns the text in a colour, if the style shows any. What the text itself says to a terminal is taken out.
func (s Style) Paint(c Colour, text string) string {
	text = Line(text)
	if !s.Colours || c == "" || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Line returns the text as one line that does nothing to a terminal: work can write what it likes into a message.
func Line(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }), " ")
}

// cut shortens a text that has more characters than there is room for.
func cut(text string, room int) string {
	if utf8.RuneCountInString(text) <= room {
		return text
	}
	if room < 1 {
		return ""
	}
	return string([]rune(text)[:room-1]) + "…"
}

// Phase returns the colour of the phase of a run, a group, a member or a reservation.
func Phase(phase string) Colour {
	switch phase {
	case string(batchv1alpha1.JobRunCompleted), string(batchv1alpha1.ReservationGranted), string(batchv1alpha1.ReservationReleased):
		return Green
	case string(batchv1alpha1.JobRunRunning), string(batchv1alpha1.ReservationActive):
		return Cyan
	case string(batchv1alpha1.JobRunFailed), string(batchv1alpha1.ReservationExpired):
		return Red
	case string(batchv1alpha1.JobRunCancelling):
		return Yellow
	case string(batchv1alpha1.JobRunSkipped), string(batchv1alpha1.JobRunCancelled):
		return Dim
	default:
		return ""
	}
}
