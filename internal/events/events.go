// SPDX-License-Identifier: Apache-2.0

// Package events keeps the Events that the manager writes from costing it anything: they tell people a story, and nothing rests
// on them.
//
// What client-go has for it writes each Event in a goroutine of its own, as fast as they come, and cannot be asked what is still on
// its way when the process ends.
package events

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typed "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"

	"reprise.dev/reprise/internal/bounded"
)

// MaxNote is how many bytes the API server takes as the note of an Event.
const MaxNote = 1024

// controller is what Events say they come from.
const controller = "reprise"

// Recorder writes Events, as an events.EventRecorder of client-go does.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// New returns a Writer for the API server of config; it writes nothing before Run. The scheme knows what Events are about. Dropped is
// called for each Event that will not be written.
func New(config *rest.Config, client *http.Client, scheme *runtime.Scheme, log logr.Logger, dropped func()) (*Writer, error) {
	api, err := typed.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making a client for events: %w", err)
	}
	host, _ := os.Hostname() // it only tells people where the manager ran
	return newWriter(api, scheme, controller+"-"+host, log, dropped), nil
}

// Eventf implements Recorder. It waits for nothing. A note that is too long is cut to MaxNote.
func (w *Writer) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	e, err := w.event(time.Now(), regarding, related)
	if err != nil {
		w.log.Error(err, "an Event about something without a name", "reason", reason)
		w.dropped()
		return
	}
	e.Type, e.Reason, e.Action, e.Note = eventtype, reason, action, bounded.Bytes(fmt.Sprintf(note, args...), MaxNote)
	if !w.waiting.add(e) {
		w.dropped()
	}
}

// event makes one. Its name is its own, so that it can be written again after a write without an answer.
func (w *Writer) event(now time.Time, regarding, related runtime.Object) (*eventsv1.Event, error) {
	about, err := reference.GetReference(w.scheme, regarding)
	if err != nil {
		return nil, err
	}
	var with *corev1.ObjectReference
	if related != nil {
		if with, err = reference.GetReference(w.scheme, related); err != nil {
			return nil, err
		}
	}
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: about.Namespace, Name: util.GenerateEventName(about.Name, now.UnixNano())},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: controller,
		ReportingInstance:   w.instance,
		Regarding:           *about,
		Related:             with,
	}, nil
}
