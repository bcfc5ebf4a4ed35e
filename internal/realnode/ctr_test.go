// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"maps"
	"testing"
)

func TestTheTableOfTasksIsRead(t *testing.T) {
	for name, tc := range map[string]struct {
		table string
		want  map[string]int
	}{
		"two":  {"TASK    PID    STATUS    \nabc     12     RUNNING\ndef     0      STOPPED\n", map[string]int{"abc": 12, "def": 0}},
		"none": {"TASK    PID    STATUS    \n", map[string]int{}},
	} {
		got, err := parseTasks(tc.table)
		if err != nil || !maps.Equal(got, tc.want) {
			t.Errorf("%s: got %v (%v), want %v", name, got, err, tc.want)
		}
	}
	for _, table := range []string{"TASK PID\nabc", "TASK PID\nabc x RUNNING"} {
		if _, err := parseTasks(table); err == nil {
			t.Errorf("%q: no error", table)
		}
	}
}
