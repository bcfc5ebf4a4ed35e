// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

// world is the receivers, and what they were told. It outlives managers.
type world struct {
	api client.WithWatch

	mu         sync.Mutex
	answers    []int // of the next calls; 200 after them
	faults     []int // of the next status writes; none after them
	acks       map[string]int
	violations []string
}

// RoundTrip is every receiver at once.
func (w *world) RoundTrip(request *http.Request) (*http.Response, error) {
	var e struct{ ID, Type, Subject string }
	if err := json.NewDecoder(request.Body).Decode(&e); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	receiver := request.URL.Hostname()
	of := aRun(e.Subject)
	if strings.HasPrefix(e.Type, "job.group.") {
		of = aGroup(e.Subject)
	}
	if w.stateOf(of, receiver, e.Type) != batchv1alpha1.AnnouncementOwed {
		w.violations = append(w.violations, fmt.Sprintf("%s was sent to %s though it was on record", e.ID, receiver))
	}
	status := take(&w.answers, http.StatusOK)
	if status == 0 {
		return nil, errors.New("connection reset")
	}
	if status == http.StatusOK {
		w.acks[receiver+" "+e.ID]++
	}
	header := http.Header{}
	if status == http.StatusTooManyRequests {
		header.Set("Retry-After", "7")
	}
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: request}, nil
}

func (w *world) stateOf(of notify.Name, receiver, event string) batchv1alpha1.AnnouncementState {
	subject := notify.NewSubject(of.Kind)
	if err := w.api.Get(context.Background(), of.NamespacedName, subject.Object()); err != nil {
		return ""
	}
	announcements := subject.Announcements()
	i := slices.IndexFunc(announcements, func(a batchv1alpha1.Announcement) bool { return a.Receiver == receiver && a.Event == event })
	return announcements[i].State
}

// write is a status write that may fail before it, or lose its answer after it.
func (w *world) write(_ context.Context, write func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	conflict := apierrors.NewConflict(schema.GroupResource{}, "run", errors.New("somebody wrote"))
	switch take(&w.faults, 0) {
	case 1:
		return conflict
	case 2:
		return errors.Join(conflict, write())
	default:
		return write()
	}
}

func TestEveryAnnouncementIsMadeUnderCrashesConflictsAndFailures(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		from := notify.Sources{Queue: queueNaming("ops", "http://ops", "audit", "http://audit"), ScheduledJob: scheduleNaming("authors", "http://authors")}
		objects, names := []client.Object{from.Queue, from.ScheduledJob}, []notify.Name{}
		add := func(o notify.Object) {
			objects, names = append(objects, o), append(names, notify.NameOf(notify.Of(o)))
		}
		for i := range rapid.IntRange(1, 3).Draw(rt, "runs") {
			add(scheduledRun(fmt.Sprintf("object-%d", i), from))
		}
		for i := range rapid.IntRange(0, 2).Draw(rt, "groups") {
			add(scheduledGroup(fmt.Sprintf("object-%d", i), from))
		}
		w := &world{
			api:     newAPI(objects...),
			answers: rapid.SliceOfN(rapid.SampledFrom([]int{0, 200, 302, 410, 429, 503}), 0, 12).Draw(rt, "answers"),
			faults:  rapid.SliceOfN(rapid.IntRange(0, 2), 0, 8).Draw(rt, "faults"),
			acks:    map[string]int{},
		}
		restarts := rapid.IntRange(0, 3).Draw(rt, "restarts")
		steps := rapid.IntRange(1, 10).Draw(rt, "steps between restarts")

		restarted := w.live(t, names, restarts, steps)
		for n := 0; w.askAgain(t, names, n); n++ { // for what a receiver did not want
			restarted += w.live(t, names, n%2, steps)
		}

		w.mu.Lock()
		defer w.mu.Unlock()
		for _, v := range w.violations {
			rt.Error(v)
		}
		for _, name := range names {
			for _, receiver := range []string{"ops", "audit", "authors"} {
				for _, id := range eventsOf(name) {
					acks := w.acks[receiver+" "+id]
					if acks < 1 || acks > 1+restarted {
						rt.Errorf("%s acknowledged %s %d times, with %d restarts", receiver, id, acks, restarted)
					}
				}
			}
		}
	})
}

// askAgain has everything sent again that was given up, and reports whether there was any.
func (w *world) askAgain(t *testing.T, names []notify.Name, n int) (asked bool) {
	t.Helper()
	for _, name := range names {
		s := notify.NewSubject(name.Kind)
		if err := w.api.Get(t.Context(), name.NamespacedName, s.Object()); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(s.Announcements(), func(a batchv1alpha1.Announcement) bool { return a.State == batchv1alpha1.AnnouncementAbandoned }) {
			continue
		}
		asked = true
		s.Object().SetAnnotations(map[string]string{batchv1alpha1.AnnotationResend: fmt.Sprint(n)})
		if err := w.api.Update(t.Context(), s.Object()); err != nil {
			t.Fatal(err)
		}
	}
	return asked
}

// eventsOf are the ids of the events of a run whose chain has failed for good, or of a failed group.
func eventsOf(name notify.Name) []string {
	if name.Kind == notify.KindGroup {
		return []string{"uid-group-" + name.Name + "/failed"}
	}
	return []string{"uid-" + name.Name + "/failed", "uid-" + name.Name + "/permanently_failed"}
}

// live lets managers come and go until everything is settled, and returns how many of them were ended before that.
func (w *world) live(t *testing.T, names []notify.Name, restarts, steps int) int {
	now := finished
	for ended := 0; ; ended++ {
		b := start(t, w.api, statusWrites(w.write))
		b.r.Sender = &notify.Sender{Client: &http.Client{Transport: w}}
		b.clock.SetTime(now)
		for n := 0; ended == restarts || n < steps; n++ {
			if w.settled(b, names) {
				b.stop()
				return ended
			}
			for _, name := range names {
				b.r.wake(name)
			}
			b.step()
			now = now.Add(5 * time.Second)
			b.clock.SetTime(now)
		}
		b.stop()
	}
}

func (w *world) settled(b *bench, names []notify.Name) bool {
	return !slices.ContainsFunc(names, func(name notify.Name) bool { return notify.InDebt(b.subject(name)) })
}
