// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// event is what containerd reports of a container or of its first process.
type event struct {
	at    time.Time
	topic string
	eventBody
}

// eventBody has the fields of all the kinds of events that matter, which do not contradict each other.
type eventBody struct {
	// ID is the container's at its creation, and at an end the process's.
	ID          string    `json:"id"`
	ContainerID string    `json:"container_id"`
	PID         int       `json:"pid"`
	ExitStatus  int       `json:"exit_status"`
	ExitedAt    timestamp `json:"exited_at"`
}

// timestamp is a time in one of the two forms that versions of containerd write.
type timestamp struct{ time.Time }

// UnmarshalJSON reads RFC 3339, and seconds with nanoseconds.
func (t *timestamp) UnmarshalJSON(data []byte) error {
	if t.Time.UnmarshalJSON(data) == nil {
		return nil
	}
	var parts struct {
		Seconds int64 `json:"seconds"`
		Nanos   int64 `json:"nanos"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return fmt.Errorf("%s is no time", data)
	}
	t.Time = time.Unix(parts.Seconds, parts.Nanos).UTC()
	return nil
}

// eventTime is how Go prints a time, which is what containerd's client does.
const eventTime = "2006-01-02 15:04:05.999999999 -0700 MST"

// parseEvent reads a line of containerd's client: time, namespace, topic and JSON. Events of topics that do not matter have no
// body.
func parseEvent(line string) (event, error) {
	words := strings.SplitN(line, " ", 7)
	if len(words) < 6 {
		return event{}, fmt.Errorf("no event: %q", line)
	}
	at, err := time.Parse(eventTime, strings.Join(words[:4], " "))
	if err != nil {
		return event{}, fmt.Errorf("no event: %q: %w", line, err)
	}
	e := event{at: at, topic: words[5]}
	switch e.topic {
	case "/containers/create", "/tasks/start", "/tasks/exit":
	default:
		return e, nil
	}
	if len(words) < 7 {
		return event{}, fmt.Errorf("no event: %q", line)
	}
	if err := json.Unmarshal([]byte(words[6]), &e.eventBody); err != nil {
		return event{}, fmt.Errorf("no event: %q: %w", line, err)
	}
	return e, nil
}
