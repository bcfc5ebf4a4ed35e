// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// event is one event of a watch, as it was on the wire.
type event struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
	key    string          // of the object, in its kind
}

// decode reads the next event of a watch in JSON.
func decode(d *json.Decoder) (event, error) {
	var e event
	if err := d.Decode(&e); err != nil {
		return e, err
	}
	var o struct {
		Metadata struct{ Namespace, Name string } `json:"metadata"`
	}
	if err := json.Unmarshal(e.Object, &o); err != nil {
		return e, err
	}
	e.key = o.Metadata.Namespace + "/" + o.Metadata.Name
	return e, nil
}

// encode returns the event as the wire has it.
func (e event) encode() []byte {
	raw, err := json.Marshal(e)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return append(raw, '\n')
}

// expired is how a watch ends whose version the API server has forgotten.
func expired() event {
	raw, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone, Message: "too old resource version",
	})
	if err != nil {
		panic(err) // a Status is JSON
	}
	return event{Type: watch.Error, Object: raw}
}

// merge makes what happened to each object one event, as one sees it who was not looking meanwhile: only the last state of each
// is left, an object that came and went was never there, and one that was made anew under its old name has merely changed.
// What has gone is the object that was known: no watch tells of the end of a namesake of which it has never told.
// Events that are left keep their order, and the kind of object its history.
func merge(events []event) []event {
	known, telling := tell(events)
	var left []event
	for i, e := range events {
		switch {
		case e.Type == watch.Bookmark:
			left = append(left, e)
			continue
		case telling[e.key] != i || (e.Type == watch.Deleted && !known[e.key]):
			continue
		case e.Type == watch.Added && known[e.key]:
			e.Type = watch.Modified
		case e.Type == watch.Modified && !known[e.key]:
			e.Type = watch.Added
		}
		left = append(left, e)
	}
	return left
}

// tell returns, by key, whether the watcher knew an object before, and which event tells what has become of it: the last, or, if
// nothing is left, the first deletion.
func tell(events []event) (known map[string]bool, telling map[string]int) {
	known, telling = map[string]bool{}, map[string]int{}
	gone := map[string]int{}
	for i, e := range events {
		if _, met := telling[e.key]; !met {
			known[e.key] = e.Type != watch.Added
		}
		if _, before := gone[e.key]; !before && e.Type == watch.Deleted {
			gone[e.key] = i
		}
		telling[e.key] = i
	}
	for key, i := range telling {
		if events[i].Type == watch.Deleted {
			telling[key] = gone[key]
		}
	}
	return known, telling
}

// stream is one watch on its way to the process.
type stream struct {
	view     *View
	resource string
	random   *rand.Rand
	source   io.ReadCloser
	out      *io.PipeWriter
	arrived  chan event
	ended    chan error // how the source ended, after its last event
	closed   chan struct{}
	once     sync.Once // for closed

	held []due // what has arrived and is held back, oldest first
}

// due is an event and when it may go on.
type due struct {
	event
	at time.Time
}

// errBroken ends a watch in the middle.
var errBroken = errors.New("the watch broke off")

// read takes events from the API server until the watch ends or nobody wants them any more.
func (s *stream) read() {
	d := json.NewDecoder(s.source)
	for {
		e, err := decode(d)
		if err != nil {
			s.ended <- err
			return
		}
		select {
		case s.arrived <- e:
		case <-s.closed:
			return
		}
	}
}

// deliver hands events on, each in its time, until the watch ends.
func (s *stream) deliver() {
	_ = s.out.CloseWithError(s.pump())
	_ = s.close()
}

// close tells the API server that nobody watches any more.
func (s *stream) close() error {
	s.once.Do(func() { close(s.closed) })
	return s.source.Close()
}

// pump returns how the watch ends for the process.
func (s *stream) pump() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	cleared := s.view.cleared
	for {
		var next <-chan time.Time
		if len(s.held) > 0 {
			timer.Reset(time.Until(s.held[0].at))
			next = timer.C
		}
		select {
		case <-s.closed:
			return nil
		case e := <-s.arrived:
			s.hold(e)
			continue
		case <-cleared:
			cleared = nil
			for i := range s.held {
				s.held[i].at = time.Time{}
			}
			continue
		case err := <-s.ended:
			if e := s.flush(); e != nil {
				return e
			}
			return err
		case <-next:
		}
		if err := s.step(); err != nil {
			return err
		}
	}
}

// hold appends an event, to be delivered not before the one ahead of it.
func (s *stream) hold(e event) {
	s.view.count(func(n *Seen) { n.Events++ })
	at := time.Now()
	if late := s.view.late(s.random); late > 0 {
		s.view.count(func(n *Seen) { n.Late++ })
		at = at.Add(late)
	}
	if n := len(s.held); n > 0 && s.held[n-1].at.After(at) {
		at = s.held[n-1].at
	}
	s.held = append(s.held, due{e, at})
}

// step does with the first event what chance wants. It returns how the watch ends, if it does.
func (s *stream) step() error {
	switch s.view.turn(s.resource, s.random) {
	case expires:
		return s.expire()
	case breaks:
		raw := s.held[0].encode()
		if _, err := s.out.Write(raw[:len(raw)/2]); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", errBroken, io.ErrUnexpectedEOF)
	case merges:
		return s.flushMerged()
	default:
		e := s.held[0].event
		s.held = s.held[1:]
		return s.write(e)
	}
}

// expire lets time pass, in which the process sees nothing, and ends the watch so that the process lists again.
func (s *stream) expire() error {
	pause := time.NewTimer(s.view.late(s.random))
	defer pause.Stop()
	for waiting := true; waiting; {
		select {
		case <-s.arrived:
		case <-s.closed:
			return nil
		case <-s.ended: //nolint:errcheck // it ends as expired, whatever ended the source
			waiting = false
		case <-s.view.cleared:
			waiting = false
		case <-pause.C:
			waiting = false
		}
	}
	if err := s.write(expired()); err != nil {
		return err
	}
	return io.EOF
}

func (s *stream) flushMerged() error {
	events := s.take()
	left := merge(events)
	s.view.count(func(n *Seen) { n.Unseen += len(events) - len(left) })
	return s.write(left...)
}

func (s *stream) flush() error { return s.write(s.take()...) }

// take returns everything that is held back.
func (s *stream) take() []event {
	var events []event
	for _, h := range s.held {
		events = append(events, h.event)
	}
	s.held = nil
	return events
}

func (s *stream) write(events ...event) error {
	for _, e := range events {
		if _, err := s.out.Write(e.encode()); err != nil {
			return err
		}
	}
	return nil
}

// body is the process's end of a stream.
type body struct {
	*io.PipeReader
	stream *stream
}

// Close ends the watch.
func (b *body) Close() error {
	return errors.Join(b.stream.close(), b.PipeReader.Close())
}
