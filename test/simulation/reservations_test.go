// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Where nothing goes wrong no two controllers write the same at the same time: whoever loses has to wait and write again.
func TestReservationsThatComeWhileARunHasTheSlotMeetNoConflict(t *testing.T) {
	const reservations = 20
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1, plan{}, false)
		s.calm.Store(true)
		s.prepare()
		for n := range reservations {
			name := fmt.Sprintf("dr-%d", n)
			s.after(time.Duration(n+1)*time.Minute, name, func() {
				run := s.template(s.chance.of(name))
				run.Queue, run.Type, run.Claims = "one", "", nil
				s.create(&batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "run-" + name}, Spec: batchv1alpha1.JobRunSpec{JobRunTemplateSpec: run}})
			})
			s.after(time.Duration(n+1)*time.Minute+30*time.Millisecond, name, func() {
				s.create(&batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: batchv1alpha1.DirectReservationSpec{
					Queue: "one", LeaseDurationSeconds: 5, WaitTimeoutSeconds: 3600,
				}})
			})
		}
		s.run(s.begin.Add(time.Hour))
		over := 0
		for _, v := range s.history.Versions {
			if dr, ok := v.Object.(*batchv1alpha1.DirectReservation); ok && dr.Status.Phase == batchv1alpha1.ReservationExpired {
				over++
			}
		}
		if over < reservations {
			t.Errorf("%d reservations were granted and are over, want %d", over, reservations)
		}
		for _, line := range s.lines {
			if strings.Contains(line, "update/status DirectReservation") && strings.Contains(line, "has been modified") {
				t.Error(line)
			}
		}
		for _, p := range s.processes {
			p.end("the test is over")
		}
	})
}
