// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// What can happen to a call, in entry.Event.
const (
	received = "received" // the call has come in whole
	answered = "answered"
	broken   = "broken" // the caller went away before the answer
)

// entry is one line of the server's log. What belongs to the run comes from the headers of the call; the rest from its
// body, if that is a CloudEvent.
type entry struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	Path    string    `json:"path"`
	Run     string    `json:"run,omitempty"`
	Direct  string    `json:"direct,omitempty"` // the reservation of a direct request
	Attempt string    `json:"attempt,omitempty"`
	Key     string    `json:"idempotencyKey,omitempty"`
	AtOnce  int       `json:"atOnce,omitempty"` // calls in flight, this one included
	Status  int       `json:"status,omitempty"`

	ID      string `json:"id,omitempty"`
	Type    string `json:"type,omitempty"`
	Subject string `json:"subject,omitempty"`
	UID     string `json:"uid,omitempty"` // of the run that is announced
}

// worklog is a file of JSON lines that only grows. The claims of the demo are checked against the file itself.
type worklog struct {
	path string
	mu   sync.Mutex
}

func (l *worklog) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// entries reads the log.
func (l *worklog) entries() (entries, error) {
	l.mu.Lock()
	data, err := os.ReadFile(l.path)
	l.mu.Unlock()
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all entries
	for line := range bytes.Lines(data) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("the server's log has the line %q: %w", line, err)
		}
		all = append(all, e)
	}
	return all, nil
}

type entries []entry

// where returns the entries that have the property, in order.
func (all entries) where(property func(entry) bool) entries {
	var some entries
	for _, e := range all {
		if property(e) {
			some = append(some, e)
		}
	}
	return some
}

// calls returns the calls of one run.
func (all entries) calls(run string) entries {
	return all.where(func(e entry) bool { return e.Event == received && e.Run == run })
}

// work returns the calls of all runs.
func (all entries) work() entries {
	return all.where(func(e entry) bool { return e.Event == received && e.Run != "" })
}

// chat returns what happened to the chat, in order.
func (all entries) chat() entries {
	return all.where(func(e entry) bool { return strings.HasPrefix(e.Path, chatPath) })
}

// announcements returns the announcements that were received.
func (all entries) announcements() entries {
	return all.where(func(e entry) bool { return e.Event == received && e.Path == announcementsPath })
}
