// SPDX-License-Identifier: Apache-2.0

package foresee

import (
	"fmt"
	"time"

	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/text"
)

// Action is what would be done to an object.
type Action string

// The actions.
const (
	// ActionFail: a run fails by the restart.
	ActionFail Action = "Fail"
	// ActionRecord: the outcome of a run whose work has ended is recorded.
	ActionRecord Action = "Record"
	// ActionAdopt: the work of a run goes on.
	ActionAdopt Action = "Adopt"
	// ActionLeave: a run is left as it is, marked Orphaned.
	ActionLeave Action = "Leave"
	// ActionRetry: a retry is made.
	ActionRetry Action = "Retry"
	// ActionGiveUp: a chain fails for good: no retry follows.
	ActionGiveUp Action = "GiveUp"
	// ActionExpire: a reservation ends.
	ActionExpire Action = "Expire"
	// ActionFire: a tick makes a run or a group.
	ActionFire Action = "Fire"
	// ActionSkip: a tick leaves a Skipped run.
	ActionSkip Action = "Skip"
	// ActionCancel: a run or group is cancelled, for a later tick takes its place.
	ActionCancel Action = "Cancel"
	// ActionAdmit: a run or reservation that waits gets a slot.
	ActionAdmit Action = "Admit"
)

// colour in which an action is shown.
func (a Action) colour() text.Colour {
	switch a {
	case ActionFail, ActionGiveUp, ActionExpire, ActionCancel:
		return text.Red
	case ActionRetry, ActionSkip, ActionLeave:
		return text.Yellow
	default:
		return text.Green
	}
}

// Step is one thing that would be done.
type Step struct {
	// Action says what.
	Action Action `json:"action"`
	// Kind and Name of the object that it is done to, or that is made.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// At is when, if it is later.
	At time.Time `json:"at,omitzero"`
	// Message explains it to a person.
	Message string `json:"message"`
}

// Plan is what would be done.
type Plan struct {
	// Namespace that the plan is of.
	Namespace string `json:"namespace"`
	// Of says in a few words what is planned for.
	Of string `json:"of"`
	// Steps in their order.
	Steps []Step `json:"steps"`
	// Notes say what a person should know besides, a sentence each.
	Notes []string `json:"notes,omitempty"`
	// Counts of the runs that a restart resolves, as the manager logs them in scheduler_startup_cleanup. Absent for a resume.
	Counts *Counts `json:"counts,omitempty"`
}

// Counts are those of the log line scheduler_startup_cleanup.
type Counts struct {
	RunningFailed    int `json:"running_failed"`
	CancellingFailed int `json:"cancelling_failed"`
	Adopted          int `json:"adopted"`
	Recorded         int `json:"recorded"`
}

func (p *Plan) step(a Action, kind, name, format string, args ...any) {
	p.Steps = append(p.Steps, Step{Action: a, Kind: kind, Name: name, Message: fmt.Sprintf(format, args...)})
}

func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// count returns how many steps are of an action.
func (p *Plan) count(a Action) int {
	n := 0
	for _, s := range p.Steps {
		if s.Action == a {
			n++
		}
	}
	return n
}

// lines returns the plan as a person reads it.
func (p *Plan) lines(now time.Time, s text.Style) []string {
	lines := []string{s.Paint(text.Bold, p.Of)}
	if len(p.Steps) == 0 {
		lines = append(lines, "  nothing would be done")
	} else {
		table := &text.Table{Indent: 2}
		table.Header("ACTION", "NAME", "WHEN", "WHY")
		for _, step := range p.Steps {
			when := ""
			if !step.At.IsZero() {
				when = text.Until(step.At, now)
			}
			table.Row(text.Cell{Text: string(step.Action), Colour: step.Action.colour()}, text.Plain(named(step.Kind, step.Name)), text.Plain(when), text.Plain(step.Message))
		}
		lines = append(lines, table.Lines(s)...)
	}
	for _, note := range p.Notes {
		lines = append(lines, "  "+s.Paint(text.Yellow, note))
	}
	return lines
}

// named is how an object is named: runs, which are most, by their names alone.
func named(kind, name string) string {
	if kind == cli.JobRun {
		return name
	}
	return cli.Short(kind) + "/" + name
}
