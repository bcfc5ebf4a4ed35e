// SPDX-License-Identifier: Apache-2.0

package epoch_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"reprise.dev/reprise/internal/epoch"
)

func TestALaterTransitionOrALaterLeaseIsAHigherEpoch(t *testing.T) {
	born := time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC)
	ascending := []epoch.Epoch{
		{},
		epoch.New(born, 0),
		epoch.New(born, 9),
		epoch.New(born, 10),
		epoch.New(born.Add(time.Second), 0), // the Lease was deleted and made again
	}
	g := NewWithT(t)
	for i, a := range ascending {
		for j, b := range ascending {
			g.Expect(a.Compare(b)).To(Equal(sign(i-j)), "%s against %s", a, b)
		}
	}
}

func TestWhatIsStoredIsReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := epoch.New(time.Unix(rapid.Int64Range(1, 1<<40).Draw(t, "created"), 0), rapid.Int32Range(0, 1<<30).Draw(t, "transitions"))
		back, err := epoch.Parse(e.String())
		if err != nil || back.Compare(e) != 0 {
			t.Fatalf("%s was read as %s: %v", e, back, err)
		}
	})
}

func TestTextThatIsNoEpochIsAnError(t *testing.T) {
	for _, s := range []string{"1", "1.2.3", "a.b", "1.2 ", "01.2", "+1.2"} {
		_, err := epoch.Parse(s)
		NewWithT(t).Expect(err).To(HaveOccurred(), s)
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	default:
		return 0
	}
}
