// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Recorder writes Events, as an events.EventRecorder of client-go does.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// maxNote is how many bytes the API server takes as the note of an Event.
const maxNote = 1024

// event writes an Event on the run. What it tells is on record before: an Event may get lost.
func (s *scope) event(eventtype, reason, action, message string) {
	if len(message) > maxNote {
		const more = "…"
		message = strings.ToValidUTF8(message[:maxNote-len(more)], "") + more
	}
	s.Recorder.Eventf(s.run, nil, eventtype, reason, action, "%s", message)
}
