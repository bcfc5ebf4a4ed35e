// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// known are the labels of the containers of these tests.
var known = map[string]map[string]string{
	"sandbox": {kindLabel: "sandbox", podUIDLabel: "u1"},
	"first":   {kindLabel: "container", containerLabel: "main", podNamespaceLabel: "ns", podNameLabel: "p1", podUIDLabel: "u1"},
	"second":  {kindLabel: "container", containerLabel: "main", podNamespaceLabel: "ns", podNameLabel: "p2", podUIDLabel: "u2"},
}

func knownLabels(id string) (map[string]string, error) {
	if labels, ok := known[id]; ok {
		return labels, nil
	}
	return nil, errors.New("no such container")
}

func at10(second string) string { return "2026-11-20 10:00:" + second + " +0000 UTC k8s.io " }

func journalOf(t *testing.T, lines ...string) *Journal {
	t.Helper()
	j := newJournal(knownLabels)
	for _, line := range lines {
		if err := j.take(line); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

func TestTheJournalTellsTheLifeOfEveryContainerInOrder(t *testing.T) {
	j := journalOf(t,
		at10("01")+`/containers/create {"id":"sandbox"}`,
		at10("02")+`/tasks/start {"container_id":"sandbox","pid":7}`,
		at10("03")+`/containers/create {"id":"first"}`,
		at10("04")+`/tasks/start {"container_id":"first","pid":8}`,
		at10("05")+`/tasks/exit {"container_id":"first","id":"a-command-in-it","pid":9,"exit_status":1,"exited_at":"2026-11-20T10:00:05Z"}`,
		at10("07")+`/tasks/exit {"container_id":"first","id":"first","pid":8,"exit_status":137,"exited_at":"2026-11-20T10:00:06.5Z"}`,
		at10("08")+`/containers/delete {"id":"first"}`,
		at10("09")+`/containers/create {"id":"second"}`,
	)
	got := j.Containers()
	if len(got) != 2 || got[0].ID != "first" || got[1].ID != "second" {
		t.Fatalf("got %+v", got)
	}
	first, second := got[0], got[1]
	if first.Name != "main" || first.PodNamespace != "ns" || first.PodName != "p1" || first.PodUID != "u1" || first.PID != 8 {
		t.Errorf("the first is %+v", first)
	}
	clock := func(t time.Time) string { return t.UTC().Format("05.0") }
	if clock(first.Created) != "03.0" || clock(first.Started) != "04.0" || clock(first.Finished) != "06.5" {
		t.Errorf("made %s, started %s, ended %s", first.Created, first.Started, first.Finished)
	}
	if first.ExitCode == nil || *first.ExitCode != 137 {
		t.Errorf("exit code %v", first.ExitCode)
	}
	if !second.Started.IsZero() || !second.Finished.IsZero() || second.ExitCode != nil || second.PID != 0 {
		t.Errorf("the second has not started, and is %+v", second)
	}
}

func TestWhoWaitsForTheJournalIsTold(t *testing.T) {
	j := journalOf(t, at10("01")+`/containers/create {"id":"first"}`)
	changed := j.Changed()
	if err := j.take(at10("02") + `/tasks/start {"container_id":"first","pid":8}`); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody is told of a start")
	}
}

func TestAJournalThatMayLackSomethingSaysSo(t *testing.T) {
	for name, line := range map[string]string{
		"a container that is gone before it is asked about": at10("01") + `/containers/create {"id":"unknown"}`,
		"a line that cannot be read":                        "?",
	} {
		t.Run(name, func(t *testing.T) {
			j := newJournal(knownLabels)
			if j.Err() != nil {
				t.Fatal(j.Err())
			}
			j.read(strings.NewReader(line + "\n" + at10("02") + `/containers/create {"id":"first"}` + "\n"))
			if j.Err() == nil {
				t.Error("it seems to be complete")
			}
			if len(j.Containers()) != 1 {
				t.Error("it does not go on")
			}
		})
	}
}

func TestTheEndOfTheEventsIsAFault(t *testing.T) {
	j := newJournal(knownLabels)
	j.read(strings.NewReader(""))
	if j.Err() == nil {
		t.Error("a journal that nobody keeps any more seems to be complete")
	}
}
