// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/reserve/guard"
	"reprise.dev/reprise/internal/plugin/text"
	"reprise.dev/reprise/internal/reservation"
)

const (
	// callTime bounds one call of the API server.
	callTime = 10 * time.Second
	// retryPause is how long after a call without an answer the next one is made.
	retryPause = time.Second
)

// slot is the reservation as far as this process knows it. One goroutine uses it.
type slot struct {
	api   client.Client
	clock clock.Clock
	times *times
	plan  guard.Plan
	lease time.Duration

	// current is the newest version known.
	current *batchv1alpha1.DirectReservation
	// gone: it was deleted.
	gone bool
	// granted: a renewal was answered by a version that is Granted.
	granted bool
	// sure is until when the slot is held whatever anybody else does by time.
	sure guard.Limit
	// next is when the next renewal is due.
	next time.Time
	// underway gets the outcome of the renewal that was sent; nil if there is none.
	underway chan renewal
}

// renewal is the outcome of one.
type renewal struct {
	sent        time.Time
	stamp, date time.Time
	// got is what was answered, or after a conflict, read.
	got *batchv1alpha1.DirectReservation
	err error
}

// create makes the reservation. A call without an answer may have made it: it is made again under the same name until there is an
// answer, and recognised by its sign.
func (s *slot) create(ctx context.Context, want *batchv1alpha1.DirectReservation) error {
	for {
		err := s.tryCreate(ctx, want)
		if err == nil || answered(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-s.clock.After(retryPause):
		}
	}
}

func (s *slot) tryCreate(ctx context.Context, want *batchv1alpha1.DirectReservation) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	d := want.DeepCopy()
	d.Spec.RenewTime = &metav1.Time{Time: s.times.now().Truncate(time.Second)}
	err := s.api.Create(ctx, d)
	if apierrors.IsAlreadyExists(err) {
		d = &batchv1alpha1.DirectReservation{}
		if err := s.api.Get(ctx, client.ObjectKeyFromObject(want), d); err != nil {
			return err
		}
		if !bears(d, s.plan) {
			return fmt.Errorf("reservation %s exists already in namespace %q: it is %s, for %s\nchoose another --name, or wait until it is over and deleted",
				d.Name, d.Namespace, d.Status.Phase, holderOf(d))
		}
		err = nil
	}
	if err == nil {
		s.current = d
		s.next = s.clock.Now().Add(s.period())
	}
	return err
}

// answered says whether an error is an answer of the API server, so that it is no use to ask again.
func answered(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code != 0 && code < 500 && code != http.StatusTooManyRequests
	}
	_, network := errors.AsType[*url.Error](err)
	return !network && !errors.Is(err, context.DeadlineExceeded)
}

// bears says whether a reservation bears the sign of the holder.
func bears(d *batchv1alpha1.DirectReservation, p guard.Plan) bool {
	return p.Nonce != "" && d.Annotations[batchv1alpha1.AnnotationFront] == p.Nonce
}

func holderOf(d *batchv1alpha1.DirectReservation) string {
	if d.Spec.HolderIdentity == "" {
		return "somebody"
	}
	return text.Line(d.Spec.HolderIdentity)
}

// period is how long after a renewal the next one is sent.
func (s *slot) period() time.Duration {
	if s.current.Status.Phase == batchv1alpha1.ReservationGranted {
		return s.lease / 6
	}
	return s.lease / 3
}

// renew sends a renewal if it is due, without waiting for the answer. That of a granted reservation is its acknowledgement. It has
// no resourceVersion, and needs none: what is answered shows whether the slot was ours at that moment, and whoever ends it by time
// from then on must have seen the renewal.
func (s *slot) renew(ctx context.Context) {
	now := s.clock.Now()
	if s.gone || s.underway != nil || now.Before(s.next) {
		return
	}
	stamp := s.times.now().Truncate(time.Second)
	if last := s.current.Spec.RenewTime; last != nil && !stamp.After(last.Time) {
		stamp = last.Add(time.Second) // it never goes back, or would be refused, and always changes, or nobody would be told
	}
	answer, target := make(chan renewal, 1), s.current
	s.underway = answer
	go func() {
		ctx, cancel := context.WithTimeout(ctx, min(callTime, s.lease/4))
		defer cancel()
		ctx, dated := dating(ctx)
		got, err := patch(ctx, s.api, target, map[string]any{"renewTime": stamp.UTC().Format(time.RFC3339)})
		if err != nil {
			got = nil
		}
		if apierrors.IsConflict(err) { // there may be another of the name in its place
			found := &batchv1alpha1.DirectReservation{}
			if s.api.Get(ctx, client.ObjectKeyFromObject(target), found) == nil {
				got = found
			}
		}
		answer <- renewal{sent: now, stamp: stamp, date: dated.date, got: got, err: err}
	}()
}

// patch changes the spec of that very reservation, and of no other of its name.
func patch(ctx context.Context, api client.Client, d *batchv1alpha1.DirectReservation, spec map[string]any) (*batchv1alpha1.DirectReservation, error) {
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": d.UID}, "spec": spec})
	if err != nil {
		return nil, err
	}
	got := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	return got, api.Patch(ctx, got, client.RawPatch(types.MergePatchType, change))
}

// learn takes in the outcome of a renewal.
func (s *slot) learn(r renewal) {
	s.underway = nil
	switch {
	case r.err == nil:
		s.see(r.got, false)
		if r.got.Status.Phase == batchv1alpha1.ReservationGranted {
			s.granted, s.sure = true, guard.Until(r.sent, lasts(s.lease, r.stamp, r.date))
		}
		s.next = r.sent.Add(s.period())
	case apierrors.IsNotFound(r.err):
		s.gone = true
	default:
		s.next = s.clock.Now().Add(min(retryPause, s.lease/10))
		if r.got != nil {
			s.see(r.got, false)
		}
	}
}

// see takes in a version, unless it is older than what is known.
func (s *slot) see(d *batchv1alpha1.DirectReservation, deleted bool) {
	switch {
	case d.UID != s.current.UID:
		s.gone = s.gone || !deleted
	case deleted:
		s.gone = true
	case newer(d, s.current):
		waited := s.current.Status.Phase != batchv1alpha1.ReservationGranted
		s.current = d
		if waited && d.Status.Phase == batchv1alpha1.ReservationGranted {
			s.next = time.Time{}
		}
	}
}

// newer compares the resourceVersions of two versions: an answer and the watch may come in any order.
func newer(a, b *batchv1alpha1.DirectReservation) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order > 0
}

// lost returns why the reservation cannot be used any more, nil if it can.
func (s *slot) lost() error {
	d := s.current
	switch {
	case s.gone || d.DeletionTimestamp != nil:
		return fmt.Errorf("reservation %s was deleted", d.Name)
	case d.Status.Phase == batchv1alpha1.ReservationExpired && d.Status.Reason == batchv1alpha1.ReasonWaitTimeout:
		return notInTime(d)
	case d.Status.Phase == batchv1alpha1.ReservationExpired:
		return fmt.Errorf("reservation %s expired: %s", d.Name, text.Line(d.Status.Message))
	case d.Status.Phase == batchv1alpha1.ReservationReleased || d.Spec.Release:
		return fmt.Errorf("reservation %s was released by somebody else", d.Name)
	default:
		return nil
	}
}

func notInTime(d *batchv1alpha1.DirectReservation) error {
	return cli.Timeoutf("no slot of queue %s was free in time\nsee who has them: kubectl reprise queue %s; wait for longer with --timeout",
		reservation.Queue(d), reservation.Queue(d))
}

// giveBack releases the planned reservation if it exists and bears the sign of its holder. It tries until there is an answer, or the
// context ends. One that is never found was not made, or is made by a call that is still on its way: then it expires by itself.
func giveBack(ctx context.Context, api client.Client, c clock.Clock, p guard.Plan) error {
	for {
		err := tryGiveBack(ctx, api, p)
		if err == nil || answered(err) && !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-c.After(retryPause):
		}
	}
}

func tryGiveBack(ctx context.Context, api client.Client, p guard.Plan) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	d := &batchv1alpha1.DirectReservation{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Name}, d); err != nil {
		return err
	}
	if !bears(d, p) || d.Status.Phase.Terminal() || d.Spec.Release {
		return nil
	}
	_, err := patch(ctx, api, d, map[string]any{"release": true})
	return err
}
