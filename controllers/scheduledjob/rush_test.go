// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"reprise.dev/reprise/internal/schedule"
)

func TestOnlyAFireThatNothingCanComeInBetweenIsRecordedLater(t *testing.T) {
	seven := clockTime("07:00:00")
	waits, before := ticked(seven), ticked(dawn)
	one := fire{tick: schedule.Tick{Time: seven}, made: productOf(&waits), anew: true}
	found := one
	found.anew = false
	for name, c := range map[string]struct {
		change change
		made   fired
		seen   []product
		later  bool
	}{
		"one new run":                        {runs, fired{made: []fire{one}}, nil, true},
		"one new group":                      {groups, fired{made: []fire{one}}, nil, true},
		"one that was there":                 {runs, fired{made: []fire{found}}, nil, false},
		"several":                            {runAll, fired{made: []fire{one, one}}, nil, false},
		"one, and then a failure":            {runs, fired{made: []fire{one}, failure: errors.New("quota")}, nil, false},
		"one that passed over a foreign one": {runs, fired{made: []fire{one}, foreign: 1}, nil, false},
		"one, and an earlier one was found":  {runs, fired{made: []fire{one}}, products(all(before), nil), false},
		"overlap is forbidden":               {forbid, fired{made: []fire{one}}, nil, false},
		"it replaces":                        {replace, fired{made: []fire{one}}, nil, false},
		"it is the only tick":                {runAt(seven), fired{made: []fire{one}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			sj := hourly(c.change)
			if sj.Status.HandledThrough != nil {
				sj.Status.HandledThrough = at(dawn.Add(-time.Hour))
			}
			NewWithT(t).Expect(decide(sj, c.seen, seven).separable(c.made)).To(Equal(c.later))
		})
	}
}

func TestInARushAFireIsRecordedByTheNextPass(t *testing.T) {
	for name, c := range map[string]struct {
		next   time.Duration
		faults func(*world)
		active []time.Duration
	}{
		"which its event brings":                              {62 * time.Second, func(*world) {}, minutes(1)},
		"which nothing brings":                                {61*time.Second + eventPatience, func(*world) {}, minutes(1)},
		"which the next tick brings":                          {121 * time.Second, func(*world) {}, minutes(1, 2)},
		"which the next tick brings, and the cache is behind": {121 * time.Second, (*world).blind, minutes(1, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create()
			w.pass()
			w.at(61 * time.Second)
			c.faults(w)
			r := w.reconciler()
			r.underWay.Add(rush)
			before := w.get()
			w.Expect(w.reconcile(r)).To(HaveField("RequeueAfter", eventPatience))
			w.Expect(w.ticks()).To(Equal(minutes(1)))
			w.Expect(w.get()).To(Equal(before))

			w.at(c.next)
			_, err := w.reconcile(r)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(w.ticks()).To(Equal(c.active))
			w.Expect(w.active()).To(Equal(c.active))
			w.Expect(w.get().Status.MissedRuns).To(BeZero())
			w.Expect(r.unrecorded.of(w.key())).To(BeEmpty())
			w.works()
			w.quiet()
		})
	}
}

func TestWhatWasMadeForADeletedScheduleIsForgotten(t *testing.T) {
	w := newWorld(t)
	sj := w.create()
	w.at(61 * time.Second)
	r := w.reconciler()
	r.underWay.Add(rush)
	_, err := w.reconcile(r)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(r.unrecorded.of(w.key())).To(HaveLen(1))
	w.remove(sj)
	_, err = w.reconcile(r)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(r.unrecorded.made).To(BeEmpty())
}

func TestAFireCostsThreeRequestsInARushAndOutsideOfOne(t *testing.T) {
	for name, c := range map[string]struct {
		others int32
		passes int
	}{"in a rush": {rush, 2}, "outside": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create()
			w.pass()
			w.at(61 * time.Second)
			sent := w.counted()
			r := w.reconciler()
			r.underWay.Add(c.others)
			for range c.passes {
				_, err := w.reconcile(r)
				w.Expect(err).NotTo(HaveOccurred())
			}
			w.Expect(w.active()).To(Equal(minutes(1)))
			w.Expect(*sent).To(Equal([]string{"read", "create", "record"}))
		})
	}
}
