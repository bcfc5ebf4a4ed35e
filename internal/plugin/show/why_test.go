// SPDX-License-Identifier: Apache-2.0

package show

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/text"
)

func TestAnAnswerSaysWhatWhereWhoWhenAndWhatToDo(t *testing.T) {
	a := busy().Waiting[0]
	a.Hints = []string{"raise spec.concurrency.limit of JobQueue gpu"}
	golden(t, "why-waiting.txt", drawAnswer(a, now, text.Style{}))
	golden(t, "why-backoff.txt", drawAnswer(busy().Waiting[2], now, text.Style{}))
	golden(t, "why-running.txt", drawAnswer(busy().Slots[0], now, text.Style{}))
	golden(t, "why-reservation.txt", drawAnswer(busy().Slots[1], now, text.Style{}))
}

func TestAnEstimateThatHasPassedIsAnyMoment(t *testing.T) {
	g := NewWithT(t)
	g.Expect(about(now, now)).To(Equal("any moment"))
	g.Expect(about(now.Add(4*time.Minute), now)).To(Equal("in about 4m, by how long recent runs took"))
}

func TestAReasonIsRedIfAPersonIsNeededAndYellowIfNot(t *testing.T) {
	g := NewWithT(t)
	g.Expect(colourOf(explain.Answer{Waits: true, Reason: admission.CodeLimitReached})).To(Equal(text.Yellow))
	g.Expect(colourOf(explain.Answer{Waits: true, Reason: admission.CodeSuspended, Hints: []string{"resume it"}})).To(Equal(text.Red))
	g.Expect(colourOf(explain.Answer{Phase: "Failed", Reason: "WorkFailed"})).To(Equal(text.Red))
}

// What work writes into its messages must not reach the terminal as it is.
func TestAnAnswerSpeaksToNoTerminal(t *testing.T) {
	a := explain.Answer{Name: "x\x1b[2J", Phase: "Failed", Reason: "WorkFailed", Message: "\x1b]0;gotcha\x07", Details: []string{"a\rb"}, Hints: []string{"\x9b31m"}}
	for _, line := range drawAnswer(a, now, text.Style{}) {
		NewWithT(t).Expect(line).NotTo(MatchRegexp(`[\x00-\x1f\x7f-\x9f]`))
	}
}
