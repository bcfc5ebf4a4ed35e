// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"reprise.dev/reprise/internal/events"
)

type counting map[string]int

func (c counting) Eventf(_, _ runtime.Object, eventtype, _, _, _ string, _ ...any) { c[eventtype]++ }

func TestNormalEventsBeyondTheBurstAreDroppedAndCountedAndWarningsNever(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	written, dropped := counting{}, 0
	l := events.Limit(written, clock, func() { dropped++ })
	burst := func() {
		for range 2 * events.Burst {
			l.Eventf(&corev1.Pod{}, nil, corev1.EventTypeNormal, "Started", "Start", "it started")
			l.Eventf(&corev1.Pod{}, nil, corev1.EventTypeWarning, "Failed", "Fail", "it failed")
		}
	}
	burst()
	g.Expect(written).To(Equal(counting{corev1.EventTypeNormal: events.Burst, corev1.EventTypeWarning: 2 * events.Burst}))
	g.Expect(dropped).To(Equal(events.Burst))
	clock.SetTime(clock.Now().Add(time.Second))
	burst()
	g.Expect(written[corev1.EventTypeNormal]).To(Equal(events.Burst + events.Rate))
}

type noting struct{ notes []string }

func (n *noting) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	n.notes = append(n.notes, fmt.Sprintf(note, args...))
}

func TestTheNoteOfAnEventIsCutToWhatTheAPITakes(t *testing.T) {
	g := NewWithT(t)
	written := &noting{}
	l := events.Limit(written, clocktesting.NewFakePassiveClock(time.Time{}), func() {})
	l.Eventf(&corev1.Pod{}, nil, corev1.EventTypeWarning, "Failed", "Fail", "%s", strings.Repeat("ä", 2000))
	l.Eventf(&corev1.Pod{}, nil, corev1.EventTypeWarning, "Failed", "Fail", "100 %% of %s", "%d")
	g.Expect(len(written.notes[0])).To(And(BeNumerically("<=", events.MaxNote), BeNumerically(">", events.MaxNote-5)))
	g.Expect(written.notes[0]).To(HaveSuffix("ää…"))
	g.Expect(written.notes[1]).To(Equal("100 % of %d"))
}
