// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"reprise.dev/reprise/internal/plugin/text"
)

func table() *text.Table {
	t := &text.Table{Indent: 1}
	t.Header("NAME", "TYPE", "PHASE", "NOTE")
	t.Row(text.Plain("nightly-1"), text.Plain(""), text.Cell{Text: "Failed", Colour: text.Phase("Failed")}, text.Plain("exit code 1"))
	t.Row(text.Plain("größer"), text.Plain(""), text.Cell{Text: "Queued", Colour: text.Phase("Queued")})
	return t
}

func TestColumnsStandUnderEachOtherAndAnEmptyOneIsLeftOut(t *testing.T) {
	NewWithT(t).Expect(table().Lines(text.Style{})).To(Equal([]string{
		" NAME        PHASE    NOTE",
		" nightly-1   Failed   exit code 1",
		" größer      Queued",
	}))
}

func TestColoursTakeNoRoom(t *testing.T) {
	NewWithT(t).Expect(table().Lines(text.Style{Colours: true})[1]).To(Equal(" nightly-1   \x1b[31mFailed\x1b[0m   exit code 1"))
}

func TestALineEndsAtTheEdgeOfTheTerminal(t *testing.T) {
	g := NewWithT(t)
	for width := 1; width < 40; width++ {
		for _, line := range table().Lines(text.Style{Width: width}) {
			g.Expect(len([]rune(line))).To(BeNumerically("<=", width), "%q", line)
		}
	}
	g.Expect(table().Lines(text.Style{Width: 27})[1]).To(Equal(" nightly-1   Failed   exit…"))
}

func TestAMessageCannotSpeakToTheTerminal(t *testing.T) {
	g := NewWithT(t)
	hostile := "done\x1b]0;owned\x07\x1b[2J\r\nsecond line\u009b1m"
	g.Expect(text.Line(hostile)).To(Equal("done ]0;owned [2J second line 1m"))
	painted := text.Style{Colours: true}.Paint(text.Red, hostile)
	g.Expect(strings.Count(painted, "\x1b")).To(Equal(2), "its own colour, and the end of it")
}

func TestTimesAreToldAsPeopleSayThem(t *testing.T) {
	now := time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Time{
		"now":       now.Add(400 * time.Millisecond),
		"in 90s":    now.Add(90 * time.Second),
		"in 3h":     now.Add(3 * time.Hour),
		"12s ago":   now.Add(-12 * time.Second),
		"3m12s ago": now.Add(-192 * time.Second),
	} {
		NewWithT(t).Expect(text.Until(at, now)).To(Equal(want))
	}
	NewWithT(t).Expect(text.For(-time.Minute)).To(Equal("0s"), "clocks differ")
}
