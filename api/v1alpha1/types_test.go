// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	v1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestTerminalPhasesAreThoseThatNeverChange(t *testing.T) {
	g := NewWithT(t)
	for phase, terminal := range map[v1alpha1.JobRunPhase]bool{
		v1alpha1.JobRunQueued: false, v1alpha1.JobRunRunning: false, v1alpha1.JobRunCancelling: false, "": false,
		v1alpha1.JobRunCompleted: true, v1alpha1.JobRunFailed: true, v1alpha1.JobRunSkipped: true, v1alpha1.JobRunCancelled: true,
	} {
		g.Expect(phase.Terminal()).To(Equal(terminal), "%q", phase)
	}
	for phase, terminal := range map[v1alpha1.DirectReservationPhase]bool{
		v1alpha1.ReservationPending: false, v1alpha1.ReservationActive: false, v1alpha1.ReservationGranted: false, "": false,
		v1alpha1.ReservationReleased: true, v1alpha1.ReservationExpired: true,
	} {
		g.Expect(phase.Terminal()).To(Equal(terminal), "%q", phase)
	}
}

func TestAGroupAndItsMembersHaveFinalPhases(t *testing.T) {
	g := NewWithT(t)
	for phase, terminal := range map[v1alpha1.JobGroupPhase]bool{
		v1alpha1.JobGroupPending: false, v1alpha1.JobGroupRunning: false, v1alpha1.JobGroupCancelling: false, "": false,
		v1alpha1.JobGroupCompleted: true, v1alpha1.JobGroupFailed: true, v1alpha1.JobGroupSkipped: true, v1alpha1.JobGroupCancelled: true,
	} {
		g.Expect(phase.Terminal()).To(Equal(terminal), "%q", phase)
	}
	for phase, settled := range map[v1alpha1.GroupMemberPhase]bool{
		v1alpha1.MemberWaiting: false, v1alpha1.MemberQueued: false, v1alpha1.MemberRunning: false, "": false,
		v1alpha1.MemberCompleted: true, v1alpha1.MemberFailed: true, v1alpha1.MemberSkipped: true, v1alpha1.MemberCancelled: true,
	} {
		g.Expect(phase.Settled()).To(Equal(settled), "%q", phase)
	}
}

func TestARunIsInProgressFromItsClaimToItsOutcome(t *testing.T) {
	g := NewWithT(t)
	for _, phase := range []v1alpha1.JobRunPhase{
		v1alpha1.JobRunQueued, v1alpha1.JobRunRunning, v1alpha1.JobRunCancelling, v1alpha1.JobRunCompleted, v1alpha1.JobRunFailed, v1alpha1.JobRunSkipped, v1alpha1.JobRunCancelled,
	} {
		g.Expect(phase.InProgress()).To(Equal(phase == v1alpha1.JobRunRunning || phase == v1alpha1.JobRunCancelling), "%q", phase)
	}
}

// enum returns the words that a field of a generated CRD may have.
func enum(t *testing.T, kind, path string) []string {
	t.Helper()
	schema := *definitions(t)[kind].Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range strings.Split(path, ".") {
		var ok bool
		if schema, ok = property(schema, name); !ok {
			t.Fatalf("%s has no %s", kind, path)
		}
	}
	words := make([]string, len(schema.Enum))
	for i, word := range schema.Enum {
		words[i] = strings.Trim(string(word.Raw), `"`)
	}
	return words
}

func property(s apiextensionsv1.JSONSchemaProps, name string) (apiextensionsv1.JSONSchemaProps, bool) {
	if s.Items != nil {
		s = *s.Items.Schema
	}
	child, ok := s.Properties[name]
	return child, ok
}

func TestTheConstantsAreTheWordsOfTheAPI(t *testing.T) {
	for _, c := range []struct {
		kind, path string
		constants  []any
	}{
		{"JobRun", "status.phase", []any{
			v1alpha1.JobRunQueued, v1alpha1.JobRunRunning, v1alpha1.JobRunCancelling, v1alpha1.JobRunCompleted, v1alpha1.JobRunFailed, v1alpha1.JobRunSkipped, v1alpha1.JobRunCancelled,
		}},
		{"JobRun", "status.slot", []any{v1alpha1.SlotHeld, v1alpha1.SlotFree}},
		{"JobRun", "status.announcements.state", []any{v1alpha1.AnnouncementOwed, v1alpha1.AnnouncementDelivered, v1alpha1.AnnouncementAbandoned}},
		{"JobRun", "spec.recoveryPolicy", []any{v1alpha1.RecoveryFail, v1alpha1.RecoveryAdopt}},
		{"ScheduledJob", "spec.missedRunPolicy", []any{v1alpha1.MissedRunOnce, v1alpha1.MissedRunAll, v1alpha1.MissedSkip}},
		{"ScheduledJob", "spec.concurrencyPolicy", []any{v1alpha1.ConcurrencyAllow, v1alpha1.ConcurrencyForbid, v1alpha1.ConcurrencyReplace}},
		{"ScheduledJob", "spec.groupTemplate.mode", []any{v1alpha1.GroupSequential, v1alpha1.GroupParallel}},
		{"JobGroup", "spec.onFailure", []any{v1alpha1.GroupStop, v1alpha1.GroupContinue, v1alpha1.GroupSkip}},
		{"JobGroup", "status.phase", []any{
			v1alpha1.JobGroupPending, v1alpha1.JobGroupRunning, v1alpha1.JobGroupCancelling, v1alpha1.JobGroupCompleted, v1alpha1.JobGroupFailed, v1alpha1.JobGroupSkipped,
			v1alpha1.JobGroupCancelled,
		}},
		{"JobGroup", "status.members.phase", []any{
			v1alpha1.MemberWaiting, v1alpha1.MemberQueued, v1alpha1.MemberRunning, v1alpha1.MemberCompleted, v1alpha1.MemberFailed, v1alpha1.MemberSkipped, v1alpha1.MemberCancelled,
		}},
		{"JobQueue", "spec.onStale", []any{v1alpha1.StaleWarn, v1alpha1.StaleFail}},
		{"DirectReservation", "status.phase", []any{
			v1alpha1.ReservationPending, v1alpha1.ReservationActive, v1alpha1.ReservationGranted, v1alpha1.ReservationReleased, v1alpha1.ReservationExpired,
		}},
	} {
		t.Run(c.kind+" "+c.path, func(t *testing.T) {
			g := NewWithT(t)
			words := enum(t, c.kind, c.path)
			g.Expect(words).To(HaveLen(len(c.constants)))
			for _, constant := range c.constants {
				g.Expect(words).To(ContainElement(BeEquivalentTo(constant)))
			}
		})
	}
}
