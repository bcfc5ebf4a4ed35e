// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// exchange is one request and what is known of it so far.
type exchange struct {
	*Front
	r   *http.Request
	w   *answer
	to  route
	cut context.CancelCauseFunc
	// inside: it came through the gate.
	inside bool
	// stay makes the end of the process no reason any more to turn the request away, and says whether that was in time.
	stay func() bool

	user   user
	queue  *batchv1alpha1.JobQueue
	wish   wish
	target *url.URL

	body        *body
	reservation string
	// queued is when the request began to wait, granted when it had its slot, ended when the call to the upstream had ended.
	queued, granted, ended time.Time
}

// serve serves one request. It says whether its connection must be broken, since the answer broke off.
func (f *Front) serve(w http.ResponseWriter, r *http.Request) (broken bool) {
	x := &exchange{Front: f, r: r, w: newAnswer(w, f.timing.write)}
	defer x.end()
	p := x.serve()
	if status, _ := x.w.sent(); p != nil && status == 0 && p.status != statusClientGone {
		if f.gate.closed() {
			w.Header().Set("Connection", "close")
		}
		told := *p // it may be others' problem too
		if told.reservation == "" {
			told.reservation = x.reservation
		}
		told.write(x.w)
	} else {
		broken = p != nil
	}
	x.report(p)
	return broken
}

// end ends a request, also one that panicked.
func (x *exchange) end() {
	defer x.w.finish()
	if x.inside {
		defer x.gate.leave()
	}
	if x.body != nil {
		x.body.stop(x.timing.linger)
	} else if x.r.ContentLength != 0 {
		// The server reads what is left of the body before it answers.
		_ = x.w.control.SetReadDeadline(time.Now().Add(x.timing.linger))
	}
}

// serve goes through the steps of a request, and returns why it came to no good end.
func (x *exchange) serve() (p *problem) {
	ctx, cut := context.WithCancelCause(x.r.Context())
	defer cut(nil)
	x.cut, x.stay = cut, context.AfterFunc(x.turning, func() { cut(shuttingDown()) })
	defer x.stay()
	if x.to, p = routed(x.r); p != nil {
		return p
	}
	if p := x.enter(ctx); p != nil {
		return p
	}
	if x.to.run != "" {
		return x.retry(ctx)
	}
	if p := x.admit(ctx); p != nil {
		return p
	}
	return x.direct(ctx)
}

// enter finds out who sends the request, and lets a user through the gate. Those whose token was never good wait before it, in a
// place of their own: they keep no user out.
func (x *exchange) enter(ctx context.Context) (p *problem) {
	met := x.users.met(x.r)
	if !met {
		if p := x.strangers.enter(); p != nil {
			return p
		}
		defer x.strangers.leave()
		if x.user, p = x.users.user(ctx, x.r); p != nil {
			return p
		}
	}
	if p := x.gate.enter(); p != nil {
		return p
	}
	x.inside = true
	if met {
		x.user, p = x.users.user(ctx, x.r)
	}
	return p
}

// admit finds out whether the request may wait for a slot of its queue. Rights come first: nothing is said about a queue to
// someone who may not use it.
func (x *exchange) admit(ctx context.Context) (p *problem) {
	if p := x.rights.mayCreate(ctx, x.user, x.to.namespace, "directreservations"); p != nil {
		return p
	}
	if p := x.aim(ctx); p != nil {
		return p
	}
	direct := x.queue.Spec.Direct
	if x.wish, p = wished(x.r.Header, direct); p != nil {
		return p
	}
	if code, message, ok := x.Fit(x.queue, x.wish.typeName, x.wish.claims); !ok {
		return refuse(http.StatusBadRequest, code, "%s", message)
	}
	if limit := maxBodyOf(direct); x.r.ContentLength > limit {
		return tooLarge(limit)
	}
	return nil
}

// aim finds the queue of the request, and what to call.
func (x *exchange) aim(ctx context.Context) (p *problem) {
	if x.queue, p = x.Front.queue(ctx, x.to.namespace, x.to.queue); p != nil {
		return p
	}
	x.target, p = target(x.queue.Spec.Direct.Upstream, x.to.rest, x.r.URL.RawQuery)
	return p
}

// direct waits for a slot, and uses it. Whatever happens, the slot is given back.
func (x *exchange) direct(ctx context.Context) *problem {
	leave, p := x.line.join(x.queue)
	if p != nil {
		return p
	}
	defer leave()
	x.body = newBody(x.r, x.w.control, maxBodyOf(x.queue.Spec.Direct), x.budget, x.Clock, x.cut)
	x.w.spent = func() bool { return x.r.ProtoMajor == 1 && !x.body.whole() }
	if p := x.body.begun(ctx, x.timing.start); p != nil {
		return p
	}
	if p := cause(ctx); p != nil {
		return p
	}
	x.queued = x.Clock.Now()
	h, p := x.reserve(ctx, x.wanted())
	if p != nil {
		return p
	}
	defer h.end()
	x.reservation = h.key.Name
	if p := h.await(ctx, x.queued.Add(waitOf(x.queue.Spec.Direct))); p != nil {
		return p
	}
	leave()
	if !x.stay() {
		return shuttingDown()
	}
	if p := x.aim(ctx); p != nil { // the queue may have changed while the request waited
		return p
	}
	return x.use(ctx, h)
}

// use calls the upstream while the slot is the request's.
func (x *exchange) use(ctx context.Context, h *hold) *problem {
	x.granted = x.Clock.Now()
	defer func() { x.ended = x.Clock.Now() }()
	ending := h.loss("was given back, since this replica of the manager is ending")
	keeping, stop := context.WithCancel(ctx)
	kept, watched, passed := make(chan struct{}), make(chan struct{}), false
	go func() {
		defer close(kept)
		h.keep(keeping, x.granted.Add(timeoutOf(x.queue.Spec.Direct)), x.cut)
	}()
	go func() {
		defer close(watched)
		x.body.watch(keeping, x.timing.idle)
	}()
	defer func() {
		stop()
		<-kept
		<-watched
		h.passed = passed
	}()
	defer context.AfterFunc(x.cutting, func() { x.cut(ending) })()
	defer context.AfterFunc(ctx, func() {
		x.w.sever()
		_ = x.body.Close() // the transport does not end before what it reads does
	})()

	added, p := x.added(ctx, x.queue)
	if p == nil {
		passed = true
		p = x.call(ctx, &call{to: x.target, reservation: h.key.Name, added: added, body: x.body, egress: x.Egress})
	}
	// What cut the request explains its end better than what came of it.
	if why := cause(ctx); p != nil && why != nil {
		return why
	}
	return p
}

func (x *exchange) call(ctx context.Context, c *call) *problem {
	err := c.pass(ctx, x.w, x.r)
	switch {
	case err == nil:
		return nil
	case x.w.unread():
		return refuse(http.StatusRequestTimeout, "AnswerUnread", "the client did not read the answer within %s", x.timing.write)
	default:
		return c.failed(err)
	}
}

// cause returns why a request was cut, nil if it was not.
func cause(ctx context.Context) *problem {
	err := context.Cause(ctx)
	if p := (*problem)(nil); err == nil || errors.As(err, &p) {
		return p
	}
	return refuse(statusClientGone, "ClientGone", "the client went away")
}

// report writes the log line of a request. What nobody has proved to be a user is no line: anybody could fill the log.
func (x *exchange) report(p *problem) {
	status, sent := x.w.sent()
	if status == 0 && p != nil {
		status = p.status
	}
	fields := []any{
		"user", x.user.Username, "namespace", x.to.namespace, "method", x.r.Method, "path", cutTo(x.r.URL.EscapedPath(), maxErrorText),
		"status", status, "bytesOut", sent,
	}
	if x.to.queue != "" {
		fields = append(fields, "queue", x.to.queue, "reservation", x.reservation, "waitedSeconds", between(x.queued, x.granted, x.Clock.Now()),
			"heldSeconds", between(x.granted, x.ended, x.Clock.Now()))
	}
	if x.body != nil {
		fields = append(fields, "bytesIn", x.body.taken())
	}
	if p != nil {
		fields = append(fields, "code", p.code)
	}
	if p != nil && p.cause != nil {
		fields = append(fields, "cause", p.cause.Error())
	}
	log := x.Log
	if x.user.Username == "" {
		log = log.V(1)
	}
	log.Info("request", fields...)
}

// between is the time from the one to the other in seconds, or until now if the other has not come.
func between(from, to, now time.Time) float64 {
	if from.IsZero() {
		return 0
	}
	if to.IsZero() {
		to = now
	}
	return to.Sub(from).Round(time.Millisecond).Seconds()
}
