// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/events/v1"
)

// server is where Events are written: it notes each try, and answers after a while.
type server struct {
	typed.EventsV1Interface
	typed.EventInterface
	takes  time.Duration
	answer func(n int) error

	mu    sync.Mutex
	tried []try
}

// try is one write: of what, and when.
type try struct {
	note string
	at   time.Time
}

// tries returns what was tried so far.
func (s *server) tries() []try {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tried)
}

// notes returns what was tried so far, without the times.
func (s *server) notes() (all []string) {
	for _, t := range s.tries() {
		all = append(all, t.note)
	}
	return all
}

func (s *server) Events(string) typed.EventInterface { return s }

func (s *server) Create(ctx context.Context, e *eventsv1.Event, _ metav1.CreateOptions) (*eventsv1.Event, error) {
	s.mu.Lock()
	s.tried = append(s.tried, try{note: e.Note, at: time.Now()})
	n := len(s.tried)
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, &url.Error{Op: "Post", Err: ctx.Err()}
	case <-time.After(s.takes):
	}
	if s.answer == nil {
		return e, nil
	}
	return nil, s.answer(n)
}

// unanswered is what a client says when a connection breaks.
var unanswered = &url.Error{Op: "Post", Err: errors.New("connection reset by peer")}

func quick(s *server) *Writer {
	return newWriter(s, scheme.Scheme, "reprise-here", logr.Discard(), func() {})
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
}

func (w *Writer) tell(eventtype string, from, to int) {
	for i := from; i <= to; i++ {
		w.Eventf(pod("a"), nil, eventtype, "Reason", "Act", "%s %d", eventtype, i)
	}
}

// running lets a Writer run in a bubble of its own, where time passes when all wait.
func running(t *testing.T, s *server, test func(g *WithT, w *Writer, stop func())) {
	synctest.Test(t, func(t *testing.T) {
		w := quick(s)
		ctx, stop := context.WithCancel(context.Background())
		go w.Run(ctx)
		defer func() {
			stop()
			<-w.ended
		}()
		synctest.Wait()
		test(NewWithT(t), w, stop)
	})
}

// pass lets time pass in a bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestEventsOfARecoveryOfTenThousandAreWrittenOneAtATimeAndAtMostFortyASecond(t *testing.T) {
	s := &server{takes: time.Millisecond}
	running(t, s, func(g *WithT, w *Writer, _ func()) {
		dropped := 0
		w.dropped = func() { dropped++ }
		begun := time.Now()
		w.tell(corev1.EventTypeNormal, 1, 10000)
		w.tell(corev1.EventTypeWarning, 1, 10000)
		g.Expect(time.Since(begun)).To(BeZero(), "nobody waits")
		g.Expect(dropped).To(BeNumerically("~", 10000-Normal, 1), "the first may have been taken out before")
		pass(10 * time.Second)
		tries := s.tries()
		g.Expect(len(tries)).To(And(BeNumerically("<=", 401), BeNumerically(">", 380)))
		for i := 1; i < len(tries); i++ {
			g.Expect(tries[i].at.Sub(tries[i-1].at)).To(BeNumerically(">=", Pause))
		}
		pass(10 * time.Minute)
		tries = s.tries()
		g.Expect(tries).To(HaveLen(20000 - dropped))
		for _, t := range tries[1:10000] {
			g.Expect(t.note).To(HavePrefix(corev1.EventTypeWarning))
		}
	})
}

func TestASlowAPIServerIsAskedForOneEventAtATime(t *testing.T) {
	s := &server{takes: 4 * time.Second}
	running(t, s, func(g *WithT, w *Writer, _ func()) {
		w.tell(corev1.EventTypeWarning, 1, 100)
		pass(20 * time.Second)
		g.Expect(s.notes()).To(HaveLen(5))
	})
}

func TestAnEventWithoutAnAnswerIsWrittenAgainAfterAPauseAndBeforeTheNext(t *testing.T) {
	exists := apierrors.NewAlreadyExists(eventsv1.Resource("events"), "a.1")
	s := &server{answer: func(n int) error {
		return map[int]error{1: unanswered, 2: unanswered, 3: exists}[n]
	}}
	running(t, s, func(g *WithT, w *Writer, _ func()) {
		w.dropped = func() { t.Error("an Event was dropped") }
		w.tell(corev1.EventTypeNormal, 1, 2)
		pass(time.Minute)
		g.Expect(s.notes()).To(Equal([]string{"Normal 1", "Normal 1", "Normal 1", "Normal 2"}))
		g.Expect(s.tries()[1].at.Sub(s.tries()[0].at)).To(Equal(retryPause))
	})
}

func TestAnEventThatIsRefusedIsCountedAndNotWrittenAgain(t *testing.T) {
	refused := apierrors.NewForbidden(eventsv1.Resource("events"), "a.1", errors.New("the namespace is being terminated"))
	s := &server{answer: func(int) error { return refused }}
	running(t, s, func(g *WithT, w *Writer, _ func()) {
		dropped := 0
		w.dropped = func() { dropped++ }
		w.tell(corev1.EventTypeNormal, 1, 2)
		pass(time.Minute)
		g.Expect(s.notes()).To(Equal([]string{"Normal 1", "Normal 2"}))
		g.Expect(dropped).To(Equal(2))
	})
}

func TestAtTheEndWhatWaitsIsWrittenAtOnceAndWhatIsOnItsWayIsNotCutOff(t *testing.T) {
	s := &server{takes: time.Millisecond}
	running(t, s, func(g *WithT, w *Writer, stop func()) {
		w.tell(corev1.EventTypeWarning, 1, 1000)
		synctest.Wait() // the first is on its way
		begun := time.Now()
		stop()
		w.Flush()
		g.Expect(s.notes()).To(HaveLen(1000))
		g.Expect(time.Since(begun)).To(Equal(time.Second))
	})
}

func TestTheEndIsNotPutOffForLong(t *testing.T) {
	for name, c := range map[string]struct {
		server *server
		left   int
		most   time.Duration
	}{
		"an API server that is slow":              {&server{takes: 100 * time.Millisecond}, 1000, grace},
		"an API server that does not answer":      {&server{takes: time.Hour}, 1000, grace},
		"an API server that cannot be reached":    {&server{answer: func(int) error { return unanswered }}, 1000, 0},
		"an API server that goes away in between": {&server{takes: time.Second, answer: func(n int) error { return map[int]error{3: unanswered}[n] }}, 1000, 3 * time.Second},
		"nothing is left to write":                {&server{}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			running(t, c.server, func(g *WithT, w *Writer, stop func()) {
				stop()
				<-w.ended
				w.tell(corev1.EventTypeWarning, 1, c.left)
				begun := time.Now()
				w.Flush()
				g.Expect(time.Since(begun)).To(Equal(c.most))
			})
		})
	}
}
