// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// The kinds of spans. Each is also the name that a trace shows.
const (
	// kindChain lasts from the tick, or the creation of the first run, until the chain is settled.
	kindChain = "chain"
	// kindGroup does so for a group, which has a trace of its own with links to those of its members.
	kindGroup = "group"
	// kindTick is how late a tick was fired.
	kindTick = "tick"
	// kindAttempt is the life of one run.
	kindAttempt = "attempt"
	// kindBackOff is how long a run was kept out of its queue.
	kindBackOff = "back-off"
	// kindWait is how long it waited in the queue.
	kindWait = "wait"
	// kindWork is how long it was at work; what the work tells of itself hangs below it.
	kindWork = "work"
)

// span is one part of a story.
type span struct {
	kind       string
	uid        types.UID // of the first run of the chain, or of the group
	attempt    int32
	parent     string // kind of the span of the same story that it is a part of; "" for the whole
	from, to   time.Time
	attributes []attribute.KeyValue
	links      []trace.SpanContext
	// failed is the reason for which it counts as an error, "" for none. Messages are left out: they may quote the work.
	failed string
}

func (s *span) context() trace.SpanContext { return spanContext(s.uid, s.kind, s.attempt) }

// ofRun tells what the step from one state of a run to the next ends: the attempt, and the chain of a first run.
func ofRun(old, now *batchv1alpha1.JobRun) []span {
	if restored(now) {
		return nil
	}
	var spans []span
	if !old.Status.Phase.Terminal() && now.Status.Phase.Terminal() && now.Status.Reason != batchv1alpha1.ReasonSuperseded {
		spans = attempt(now)
	}
	if before, after := settled(old), settled(now); after != nil && (before == nil || before.Type != after.Type) {
		spans = append(spans, chain(now, after))
	}
	return spans
}

// restored reports whether a run had ended long before it was created: it comes from a backup, and was told of then. The clocks
// of a manager and of the API server may be a little apart.
func restored(r *batchv1alpha1.JobRun) bool {
	return r.Status.FinishedAt != nil && r.CreationTimestamp.Sub(r.Status.FinishedAt.Time) > time.Minute
}

// settled returns the condition by which a first run says that its chain is over, nil if it does not.
func settled(r *batchv1alpha1.JobRun) *metav1.Condition {
	for _, kind := range []string{batchv1alpha1.ConditionComplete, batchv1alpha1.ConditionFailed} {
		if meta.IsStatusConditionTrue(r.Status.Conditions, kind) {
			return meta.FindStatusCondition(r.Status.Conditions, kind)
		}
	}
	return nil
}

func chain(root *batchv1alpha1.JobRun, end *metav1.Condition) span {
	s := span{kind: kindChain, uid: root.UID, from: begun(root), to: end.LastTransitionTime.Time, attributes: aboutRun(root)}
	if c := root.Status.Chain; c != nil {
		s.attributes = append(s.attributes, attribute.Int("reprise.attempts", int(c.Attempts)))
	}
	if end.Type == batchv1alpha1.ConditionFailed {
		s.failed = end.Reason
	}
	return s
}

// begun is when the story of a first run begins.
func begun(root *batchv1alpha1.JobRun) time.Time {
	return tickOr(root.Spec.ScheduledTime, root.CreationTimestamp.Time)
}

// tickOr returns the time of a tick, or that of the creation if there is none before it.
func tickOr(tick *metav1.Time, created time.Time) time.Time {
	if tick == nil {
		return created
	}
	return earlier(tick.Time, created)
}

// attempt tells the life of a run that has ended.
func attempt(r *batchv1alpha1.JobRun) []span {
	story := lifeOf(r)
	ended := story.at(r.Status.FinishedAt, r.CreationTimestamp.Time)
	whole := story.part(kindAttempt, kindChain, r.CreationTimestamp.Time, ended)
	whole.attributes = append(aboutRun(r), attribute.String("reprise.phase", string(r.Status.Phase)), attribute.String("reprise.reason", r.Status.Reason))
	if r.Status.Phase == batchv1alpha1.JobRunFailed {
		whole.failed = r.Status.Reason
	}
	if n := run.Attempt(r); n > 0 {
		whole.links = []trace.SpanContext{spanContext(story.uid, kindAttempt, n-1)}
	}
	spans := []span{whole}
	if run.IsRoot(r) && r.Spec.ScheduledTime != nil {
		spans = append(spans, story.part(kindTick, kindChain, begun(r), r.CreationTimestamp.Time))
	}
	waits := r.CreationTimestamp.Time
	claimed := story.at(r.Status.StartedAt, ended)
	if t := r.Spec.NotBefore; t != nil && t.After(waits) {
		out := earlier(t.Time, claimed)
		spans = append(spans, story.part(kindBackOff, kindAttempt, waits, out))
		waits = out
	}
	spans = append(spans, story.part(kindWait, kindAttempt, waits, claimed))
	if r.Status.StartedAt != nil {
		spans = append(spans, work(r, story.part(kindWork, kindAttempt, claimed, ended)))
	}
	return spans
}

// work adds what the work left behind.
func work(r *batchv1alpha1.JobRun, s span) span {
	s.failed = ""
	if r.Status.Phase == batchv1alpha1.JobRunFailed {
		s.failed = r.Status.Reason
	}
	if r.Status.JobName != "" {
		s.attributes = append(s.attributes, attribute.String("k8s.job.name", r.Status.JobName))
	}
	if i := r.Status.Incarnation; i != nil {
		s.attributes = append(s.attributes, attribute.String("reprise.manager", i.ID))
	}
	if result := r.Status.Result; result != nil {
		if result.HTTPStatus != nil {
			s.attributes = append(s.attributes, attribute.Int("http.response.status_code", int(*result.HTTPStatus)))
		}
		if result.ExitCode != nil {
			s.attributes = append(s.attributes, attribute.Int("reprise.exit_code", int(*result.ExitCode)))
		}
	}
	return s
}

// life is what the spans of one run have in common.
type life struct {
	uid     types.UID
	attempt int32
}

func lifeOf(r *batchv1alpha1.JobRun) life { return life{uid: run.ChainUID(r), attempt: run.Attempt(r)} }

func (l life) part(kind, parent string, from, to time.Time) span {
	return span{kind: kind, uid: l.uid, attempt: l.attempt, parent: parent, from: from, to: later(from, to)}
}

// at returns a time of the status; another if there is none.
func (life) at(t *metav1.Time, otherwise time.Time) time.Time {
	return ptr.Deref(t, metav1.NewTime(otherwise)).Time
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// parentOf is the span that another is a part of. That of a chain or group is one of no attempt.
func (s *span) parentOf() trace.SpanContext {
	switch s.parent {
	case "":
		return trace.SpanContext{}
	case kindChain:
		return spanContext(s.uid, kindChain, 0)
	default:
		return spanContext(s.uid, s.parent, s.attempt)
	}
}

// ofGroup tells what the step from one state of a group to the next ends.
func ofGroup(old, now *batchv1alpha1.JobGroup) []span {
	if old.Status.Phase.Terminal() || !now.Status.Phase.Terminal() {
		return nil
	}
	created := now.CreationTimestamp.Time
	from := tickOr(now.Spec.ScheduledTime, created)
	l := life{uid: now.UID}
	whole := l.part(kindGroup, "", from, l.at(now.Status.FinishedAt, created))
	whole.attributes = aboutGroup(now)
	if now.Status.Phase == batchv1alpha1.JobGroupFailed {
		whole.failed = now.Status.Reason
	}
	for _, m := range now.Status.Members {
		if m.RunUID != "" {
			whole.links = append(whole.links, spanContext(m.RunUID, kindChain, 0))
		}
	}
	spans := []span{whole}
	if now.Spec.ScheduledTime != nil {
		spans = append(spans, l.part(kindTick, kindGroup, from, created))
	}
	return spans
}

// aboutRun says which run it is. A trace may name objects: it is no metric.
func aboutRun(r *batchv1alpha1.JobRun) []attribute.KeyValue {
	about := []attribute.KeyValue{
		attribute.String("k8s.namespace.name", r.Namespace),
		attribute.String("reprise.run.name", r.Name),
		attribute.String("reprise.run.uid", string(r.UID)),
		attribute.String("reprise.queue", run.Queue(r)),
		attribute.Int("reprise.attempt", int(run.Attempt(r))),
	}
	if kind := run.Type(r); kind != "" {
		about = append(about, attribute.String("reprise.type", kind))
	}
	if ref := r.Spec.ScheduledJobRef; ref != nil {
		about = append(about, attribute.String("reprise.scheduledjob.name", ref.Name))
	}
	if ref := r.Spec.GroupRef; ref != nil {
		about = append(about, attribute.String("reprise.group.name", ref.Name), attribute.String("reprise.group.member", ref.Member))
	}
	return about
}

func aboutGroup(g *batchv1alpha1.JobGroup) []attribute.KeyValue {
	about := []attribute.KeyValue{
		attribute.String("k8s.namespace.name", g.Namespace),
		attribute.String("reprise.group.name", g.Name),
		attribute.String("reprise.group.uid", string(g.UID)),
		attribute.String("reprise.phase", string(g.Status.Phase)),
		attribute.String("reprise.reason", g.Status.Reason),
	}
	if ref := g.Spec.ScheduledJobRef; ref != nil {
		about = append(about, attribute.String("reprise.scheduledjob.name", ref.Name))
	}
	return about
}
