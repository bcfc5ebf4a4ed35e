// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bufio"
	"encoding/json"
	"io"
	"time"
)

// Plan is what a guard gives back if its holder cannot: a reservation, and the sign that it is the holder's.
type Plan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Nonce     string `json:"nonce"`
}

// Orders for the command.
type Orders struct {
	// Env is the environment of the command.
	Env []string `json:"env"`
	// Foreground gives it the terminal.
	Foreground bool `json:"foreground,omitempty"`
}

// Event is something that the guard tells of the command. One field is set.
type Event struct {
	// Started is the process ID of the command, which is that of its process group too.
	Started int `json:"started,omitempty"`
	// Failed: it could not be started.
	Failed *Failure `json:"failed,omitempty"`
	// Ended: the command has ended. What it has started may still be there.
	Ended *Exit `json:"ended,omitempty"`
	// Gone: nothing of it is left. It is the last event.
	Gone bool `json:"gone,omitempty"`
}

// Failure is why a command could not be started.
type Failure struct {
	// Code is the exit code that shells use for it: 127 not found, 126 not executable.
	Code int `json:"code"`
	// Message for a person.
	Message string `json:"message"`
}

// Exit is how a command ended.
type Exit struct {
	// Code is its exit code; 128 and the number of the signal that ended it.
	Code int `json:"code"`
	// OutOfTime: it was ended since the time was over that the holder had given.
	OutOfTime bool `json:"outOfTime,omitempty"`
}

// order is a message to the guard. One field is set.
type order struct {
	Plan   *Plan   `json:"plan,omitempty"`
	Run    *Orders `json:"run,omitempty"`
	Until  *until  `json:"until,omitempty"`
	Signal int     `json:"signal,omitempty"`
	End    *grace  `json:"end,omitempty"`
	Done   bool    `json:"done,omitempty"`
}

// until is a moment, by the wall clock and as a time from when it was sent.
type until struct {
	Wall  time.Time     `json:"wall"`
	Left  time.Duration `json:"left"`
	Grace time.Duration `json:"grace"`
}

type grace struct {
	Grace time.Duration `json:"grace"`
}

func write(w io.Writer, message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// read sends every message that comes, and closes the channel when no more can come.
func read[T any](r io.Reader, messages chan<- T) {
	defer close(messages)
	for lines := json.NewDecoder(bufio.NewReader(r)); ; {
		var message T
		if lines.Decode(&message) != nil {
			return
		}
		messages <- message
	}
}

// Limit is a moment that no change of a clock can put off: it has come when either the wall clock or the monotonic clock says so. The
// first counts the time that a machine sleeps, the second does not care who sets the clock.
type Limit struct{ wall, ticks time.Time }

// Until returns the limit that is left from now, which has been read from a clock.
func Until(now time.Time, left time.Duration) Limit {
	return Limit{wall: now.Add(left).Round(0), ticks: now.Add(left)}
}

// limit returns what the message meant, now that it has been read. It may have waited in the pipe.
func (u *until) limit(now time.Time) Limit {
	return Limit{wall: u.Wall, ticks: now.Add(min(u.Left, u.Wall.Sub(now.Round(0))))}
}

// IsZero says whether there is no limit.
func (l Limit) IsZero() bool { return l.wall.IsZero() }

// Left returns how much time there is until the limit, negative after it.
func (l Limit) Left(now time.Time) time.Duration {
	return min(l.wall.Sub(now.Round(0)), l.ticks.Sub(now))
}
