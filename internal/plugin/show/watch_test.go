// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testingclock "k8s.io/utils/clock/testing"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/cli"
)

// aFactory writes into buffers.
func aFactory() (f *cli.Factory, out, errs *bytes.Buffer) {
	streams, _, out, errs := genericiooptions.NewTestIOStreams()
	f = cli.NewFactory(streams)
	f.Clock = testingclock.NewFakeClock(now)
	return f, out, errs
}

func TestOutsideATerminalEachChangeIsALine(t *testing.T) {
	g := NewWithT(t)
	f, out, errs := aFactory()
	show := journal(f, asked{})
	s := aSnapshot()
	g.Expect(show(s, nil)).To(Succeed())
	g.Expect(show(s, nil)).To(Succeed())
	s.Runs[0] = aRun("first", completed(0, time.Minute))
	s.Runs[1] = aRun("second", running(0))
	g.Expect(show(s, errors.New("the connection broke"))).To(Succeed())
	g.Expect(show(s, errors.New("the connection broke"))).To(Succeed())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	g.Expect(lines[0]).To(Equal("2026-11-20T07:00:00Z jq/default first Running"))
	g.Expect(lines[1]).To(HavePrefix("2026-11-20T07:00:00Z jq/default second Queued "))
	g.Expect(lines[2]).To(HavePrefix("2026-11-20T07:00:00Z jq/default third Queued "))
	g.Expect(lines[3:]).To(ContainElements("2026-11-20T07:00:00Z jq/default second Running", "2026-11-20T07:00:00Z jq/default first gone"))
	g.Expect(errs.String()).To(Equal("this may be out of date: the connection broke\n"), "once")
}

func TestATerminalIsDrawnOverAndNeverFlooded(t *testing.T) {
	g := NewWithT(t)
	g.Expect(frame([]string{"a", "b"}, 24)).To(Equal("\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J"))
	g.Expect(frame([]string{"a", "b", "c"}, 3)).To(Equal("\x1b[Ha\x1b[K\r\nb\x1b[K\r\nc\x1b[K\x1b[J"))
	g.Expect(frame([]string{"a", "b", "c", "d"}, 3)).To(Equal("\x1b[Ha\x1b[K\r\nb\x1b[K\r\n… 2 more lines\x1b[K\x1b[J"))
}

func TestATerminalSaysWhenItIsOutOfDate(t *testing.T) {
	f, out, _ := aFactory()
	NewWithT(t).Expect(screen(f, asked{})(aSnapshot(), errors.New("the connection broke"))).To(Succeed())
	NewWithT(t).Expect(out.String()).To(ContainSubstring("this may be out of date: the connection broke"))
}

func TestAQueueThatVanishesIsShownAsOneThatDoesNotExist(t *testing.T) {
	views := present(explain.Snapshot{Namespace: "ns"}, asked{queue: "gpu"}, now)
	NewWithT(t).Expect(views).To(Equal([]explain.QueueView{{Namespace: "ns", Name: "gpu"}}))
}

// Estimates and durations change all the time; who reads lines, or documents, wants to hear of what has happened.
func TestThePassingOfTimeAloneIsNoChange(t *testing.T) {
	g := NewWithT(t)
	s := aSnapshot()
	s.Runs = append(s.Runs, aRun("ended", completed(time.Minute, time.Minute)))
	before, after := states(present(s, asked{}, now)), states(present(s, asked{}, now.Add(30*time.Second)))
	g.Expect(changes(before, after)).To(BeEmpty())
	s.Runs[1].Status.Phase = batchv1alpha1.JobRunSkipped
	g.Expect(changes(before, states(present(s, asked{}, now)))).To(ContainElement("jq/default second gone"))
}
