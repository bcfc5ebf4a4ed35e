// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
	"reprise.dev/reprise/internal/reservation"
)

// stream is a call of the stage that sends a line, and another for each that the test wants, and how it ended.
type stream struct {
	more chan struct{}
	done chan struct{}
	gone chan time.Time // when it was cut
}

// streams makes the stage send a stream under that name.
func (s *stage) streams(name string) *stream {
	st := &stream{more: make(chan struct{}), done: make(chan struct{}), gone: make(chan time.Time, 1)}
	s.acts[name] = func(rw http.ResponseWriter, r *http.Request) {
		for n := 0; ; n++ {
			_, _ = fmt.Fprintln(rw, n)
			rw.(http.Flusher).Flush()
			select {
			case <-st.more:
			case <-st.done:
				return
			case <-r.Context().Done():
				st.gone <- time.Now()
				return
			}
		}
	}
	return st
}

// reading is the client's end of a stream.
type reading struct {
	*world
	*bufio.Reader
}

// reads begins to read a stream and waits for its first line.
func (d *door) reads(token, name string) *reading {
	d.t.Helper()
	response, err := d.http.Do(d.direct(token, "default", name))
	d.Expect(err).NotTo(HaveOccurred())
	d.t.Cleanup(func() { _ = response.Body.Close() })
	d.Expect(response.StatusCode).To(Equal(http.StatusOK))
	from := &reading{world: d.world, Reader: bufio.NewReader(response.Body)}
	from.line("0")
	return from
}

// line expects the next line.
func (r *reading) line(want string) {
	r.t.Helper()
	line, err := r.ReadString('\n')
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(line).To(Equal(want + "\n"))
}

// broken expects that the stream breaks off and does not look whole.
func (r *reading) broken() {
	r.t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, r)
		ended <- err
	}()
	var err error
	r.Eventually(ended).Should(Receive(&err))
	r.Expect(err).To(HaveOccurred())
}

func TestARequestIsCutWhenSomebodyElseEndsItsReservation(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, dr *batchv1alpha1.DirectReservation)
		left int // reservations
	}{
		"by releasing it": {func(w *world, dr *batchv1alpha1.DirectReservation) { w.release(dr.Name) }, 1},
		"by deleting it":  {func(w *world, dr *batchv1alpha1.DirectReservation) { w.Expect(w.Delete(w.ctx, dr)).To(Succeed()) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			chat := s.streams("chat")
			w.upstream(s, 1)
			d, m := w.opens()
			from := d.reads(w.client(), "chat")
			w.create(w.act(s, "next"))
			dr := w.only(batchv1alpha1.ReservationGranted)
			w.Expect(s.atWork()).To(Equal([]string{"chat"}))
			c.end(w, dr)
			from.broken()
			w.Eventually(chat.gone).Should(Receive())
			s.end("next")
			w.eventually("next", batchv1alpha1.JobRunCompleted)
			w.Expect(w.reservations()).To(HaveLen(c.left))
			w.Eventually(func() []map[string]any { return m.log.with("request") }).Should(ContainElement(And(
				HaveKeyWithValue("reservation", dr.Name), HaveKeyWithValue("code", "SlotLost"))))
			w.idempotent(m)
		})
	}
}

// leading makes a manager take part in the leader election with this lease. A busy machine takes it from nobody.
func leading(lease time.Duration) func(*operator.Options) {
	return func(o *operator.Options) {
		o.LeaderElect = true
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = lease, lease*4/5, 100*time.Millisecond
	}
}

func TestAStreamThroughAStandbySurvivesTheEndOfTheLeader(t *testing.T) {
	for name, lease := range map[string]time.Duration{"in good order": time.Hour, "that is killed": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			chat := s.streams("chat")
			w.upstream(s, 1)
			x := newWire(t)
			first := w.startOn(x.config(), leading(lease), x.mortal)
			before := w.epochOf(first)
			d := w.door()
			second := w.start(leading(lease), d.serving)
			d.opened()
			token := w.client()
			from := d.reads(token, "chat")
			held := w.only(batchv1alpha1.ReservationGranted)
			w.Expect(held.Status.Epoch).To(Equal(before.String()))
			waiting := d.sent(d.direct(token, "default", "other"))
			w.Eventually(w.phases).Should(ConsistOf(batchv1alpha1.ReservationGranted, batchv1alpha1.ReservationActive))
			w.create(w.act(s, "next"))

			if name == "in good order" {
				first.stop()
			} else {
				x.cut()
				w.lost(first)
			}
			w.Expect(w.epochOf(second).Compare(before)).To(BeNumerically(">", 0))
			w.summary(second)
			chat.more <- struct{}{}
			from.line("1")
			w.Eventually(func() time.Time { // it is renewed, and the new leader sees it
				return w.readReservation(held.Name).Status.RenewedAt.Time
			}).Should(BeTemporally(">", held.Status.RenewedAt.Time))
			w.Expect(s.atWork()).To(Equal([]string{"chat"}), "the slot is still its own")
			close(chat.done)
			_, err := io.Copy(io.Discard, from)
			w.Expect(err).NotTo(HaveOccurred(), "it is whole")
			s.end("other")
			w.Expect(d.got(waiting).status).To(Equal(http.StatusOK), "it has kept its place")
			s.end("next")
			w.Expect(w.eventually("next", batchv1alpha1.JobRunCompleted).Status.Incarnation.ID).To(Equal(second.id))
			w.Eventually(w.phases).Should(ConsistOf(batchv1alpha1.ReservationReleased, batchv1alpha1.ReservationReleased))
			w.Expect(s.began("")).To(Equal([]string{"chat", "other", "next"}))
			w.Expect(s.most("")).To(Equal(1))
		})
	}
}

// standby starts a leader and, on a wire, a replica that does not lead and has the door.
func (w *world) standby() (d *door, x *wire, leader, standby *manager) {
	w.t.Helper()
	leader = w.start(leading(time.Hour))
	w.epochOf(leader)
	x, d = newWire(w.t), w.door()
	standby = w.startOn(x.config(), leading(time.Hour), x.mortal, d.serving)
	d.opened()
	return d, x, leader, standby
}

func TestAFrontThatLosesTheAPIServerCutsItsRequestsBeforeTheirSlotsAreGivenToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	chat := s.streams("chat")
	w.upstream(s, 1)
	d, x, leader, standby := w.standby()
	from := d.reads(w.client(), "chat")
	w.create(w.act(s, "next"))
	w.only(batchv1alpha1.ReservationGranted)
	x.cut()

	from.broken()
	var cut time.Time
	w.Eventually(chat.gone).Should(Receive(&cut))
	w.Expect(s.began("")).To(Equal([]string{"chat"}))
	w.Eventually(s.atWork).Should(Equal([]string{"next"}))
	dr := w.only(batchv1alpha1.ReservationExpired)
	w.Expect(dr.Status.Reason).To(Equal(batchv1alpha1.ReasonLeaseExpired))
	end := dr.Status.ExpiresAt.Time
	w.Expect(cut).To(BeTemporally("<", end.Add(reservation.ClockAllowance)), "before the slot counts as free")
	w.Expect(dr.Status.FinishedAt.Time).To(BeTemporally(">=", end.Add(reservation.ClockAllowance)))
	w.Expect(s.most("")).To(Equal(1), "the call had ended before the run began")
	s.end("next")
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	standby.stop()
	w.idempotent(leader)
}

func TestWhatWaitedAtAFrontThatDiedHoldsUpNobodyOnceItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.upstream(s, 1, func(q *batchv1alpha1.JobQueue) { q.Spec.Direct.WaitTimeoutSeconds = ptr.To[int32](600) })
	d, x, leader, standby := w.standby()
	w.create(w.act(s, "running"))
	w.Eventually(s.atWork).Should(Equal([]string{"running"}))
	token := w.client()
	for _, name := range []string{"first", "second", "third"} { // one is Active, the others Pending
		d.sent(d.direct(token, "default", name))
	}
	w.Eventually(w.phases).Should(And(HaveLen(3), ContainElement(batchv1alpha1.ReservationActive)))
	w.create(w.act(s, "next"))
	x.cut()

	w.Eventually(w.standings).Should(HaveEach("Expired HolderLost false"), "nobody renews them any more")
	s.end("running", "next")
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.began("")).To(Equal([]string{"running", "next"}))
	standby.stop()
	w.idempotent(leader)
}
