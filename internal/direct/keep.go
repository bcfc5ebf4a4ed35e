// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"net/http"
	"time"

	"reprise.dev/reprise/internal/reservation"
)

// await waits until the slot is the request's, which takes no longer than until.
func (h *hold) await(ctx context.Context, until time.Time) *problem {
	for {
		if p := cause(ctx); p != nil {
			return p
		}
		if p := h.lost(); p != nil {
			return p
		}
		if h.showsGrant() && h.acknowledged {
			return h.usable(h.Clock.Now())
		}
		// The manager gives up what shows no sign of life.
		if silent := h.renewed.Add(reservation.Lease(h.current)); silent.Before(until) {
			if h.step(ctx, silent) {
				return h.loss("could not be renewed in time")
			}
			continue
		}
		if h.step(ctx, until) {
			return notInTime(h.key.Name)
		}
	}
}

// keep renews a granted reservation until ctx ends, and cuts the request when the slot is lost, or not sure to be held, or when
// the request has used up its time. The manager counts the slot as free only 5 s after its expiry.
func (h *hold) keep(ctx context.Context, timeout time.Time, cut context.CancelCauseFunc) {
	for ctx.Err() == nil {
		if p := h.lost(); p != nil {
			cut(p)
			return
		}
		expiry := h.expiry()
		if timeout.Before(expiry) {
			if h.step(ctx, timeout) {
				cut(refuse(http.StatusGatewayTimeout, "UpstreamTimeout", "the time of the request was over before the upstream had answered").about(h.key.Name))
				return
			}
			continue
		}
		if h.step(ctx, expiry) {
			cut(h.loss("could not be renewed in time"))
			return
		}
	}
}
