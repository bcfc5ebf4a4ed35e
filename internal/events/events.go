// SPDX-License-Identifier: Apache-2.0

// Package events keeps the Events that the manager writes from costing it anything: they tell people a story, and nothing rests
// on them.
package events

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"reprise.dev/reprise/internal/bounded"
)

// Rate and Burst bound how many normal Events a process writes: so many a second, and so many at once after a pause. A queue
// that ends thousands of runs a minute would write twice as many Events otherwise, and wait behind them.
const (
	Rate  = 20
	Burst = 200
)

// MaxNote is how many bytes the API server takes as the note of an Event.
const MaxNote = 1024

// Recorder writes Events, as an events.EventRecorder of client-go does.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Limited is a Recorder that drops normal Events beyond Rate and Burst, and cuts notes to MaxNote. Warnings are never dropped.
type Limited struct {
	next    Recorder
	limiter flowcontrol.PassiveRateLimiter
	dropped func()
}

// Limit returns a Recorder that hands on to another; dropped is called for each Event that is not handed on.
func Limit(next Recorder, c clock.PassiveClock, dropped func()) *Limited {
	return &Limited{next: next, limiter: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(Rate, Burst, c), dropped: dropped}
}

// Eventf implements Recorder. It does not wait.
func (l *Limited) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if eventtype != corev1.EventTypeWarning && !l.limiter.TryAccept() {
		l.dropped()
		return
	}
	l.next.Eventf(regarding, related, eventtype, reason, action, "%s", bounded.Bytes(fmt.Sprintf(note, args...), MaxNote))
}
