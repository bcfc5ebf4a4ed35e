// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

const (
	// controller is what Events say they come from.
	controller = "reprise"
	// grace is how long Events may be on their way after the end.
	grace = 5 * time.Second
)

// Broadcast returns a Recorder that writes in the background, and what ends it. That of controller-runtime cuts off what is on its
// way when the manager ends, which loses the last Events of an orderly end and logs an error for each.
func Broadcast(config *rest.Config, client *http.Client, scheme *runtime.Scheme, log logr.Logger) (Recorder, func(), error) {
	api, err := eventsv1.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for events: %w", err)
	}
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), log))
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: api})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		cancel()
		return nil, nil, fmt.Errorf("starting to write events: %w", err)
	}
	end := func() {
		broadcaster.Shutdown()
		time.AfterFunc(grace, cancel)
	}
	return broadcaster.NewRecorder(scheme, controller), end, nil
}
