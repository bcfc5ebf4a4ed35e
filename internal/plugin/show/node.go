// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"reprise.dev/reprise/internal/plugin/text"
)

// Node is one line of a tree, and what hangs from it.
type Node struct {
	// Kind is JobRun, JobGroup, Member or ScheduledJob.
	Kind string `json:"kind"`
	// Name of the object, or of the member.
	Name string `json:"name"`
	// Phase of the object; Deleted for a run of which only the record is left, Due for a retry that is yet to be made.
	Phase string `json:"phase,omitempty"`
	// Reason of the phase, one CamelCase word.
	Reason string `json:"reason,omitempty"`
	// Message explains it to a person.
	Message string `json:"message,omitempty"`
	// Since is when the object was queued, or when it began if it has.
	Since *metav1.Time `json:"since,omitempty"`
	// FinishedAt is when it ended.
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Time tells how long it has taken, or has waited.
	Time string `json:"time,omitempty"`
	// Children are its retries, members or runs, in their order.
	Children []Node `json:"children,omitempty"`
}

// Phases of what is no object.
const (
	// phaseDeleted is that of a run that its parent's status names and that is gone.
	phaseDeleted = "Deleted"
	// phaseDue is that of a retry that is yet to be made.
	phaseDue = "Due"
)

// took tells how long something has run, or ran.
func took(since, until *metav1.Time, now time.Time) string {
	switch {
	case since == nil:
		return ""
	case until == nil:
		return text.For(now.Sub(since.Time)) + " so far"
	default:
		return text.For(until.Sub(since.Time))
	}
}

// draw returns a tree as lines. What stays the same from branch to branch stands under each other.
func draw(root Node, s text.Style) []string {
	table := &text.Table{}
	table.Header("NAME", "PHASE", "REASON", "TIME", "MESSAGE")
	drawNode(table, root, "", "")
	return table.Lines(s)
}

func drawNode(table *text.Table, n Node, first, rest string) {
	name := text.Cell{Text: first + n.Name}
	if first == "" {
		name = text.Cell{Text: prefixOf(n.Kind) + n.Name, Colour: text.Bold}
	} else if n.Kind == kindJobGroup {
		name.Text = first + prefixOf(n.Kind) + n.Name
	}
	table.Row(name, text.Cell{Text: n.Phase, Colour: text.Phase(n.Phase)}, text.Plain(n.Reason), text.Plain(n.Time), text.Cell{Text: n.Message, Colour: text.Dim})
	for i, child := range n.Children {
		if i < len(n.Children)-1 {
			drawNode(table, child, rest+"├─ ", rest+"│  ")
		} else {
			drawNode(table, child, rest+"└─ ", rest+"   ")
		}
	}
}

// prefixOf is how a kind is written before a name: "jg/". Runs, which are most of a tree, have none.
func prefixOf(kind string) string {
	switch kind {
	case kindJobGroup:
		return "jg/"
	case kindScheduledJob:
		return "sj/"
	default:
		return ""
	}
}

// sentence joins what is said of a node.
func sentence(parts ...string) string {
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, "; ")
}
