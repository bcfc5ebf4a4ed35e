// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/run"
)

// line explains something that waits in a queue that exists, by what its queue says.
func (v *View) line(a *Answer, p *picture, uid types.UID) {
	i, waits := p.at[uid]
	if !waits {
		a.say(admission.CodeOutOfDate, "its version cannot be compared with others, so its queue leaves it out")
		return
	}
	w := p.waiting[i]
	a.Reason, a.Message, a.Place, a.Start = w.Reason.Code, w.Reason.Message, p.place(uid), p.starts[uid]
	if w.Reason.Code == admission.CodeNextInTurn && w.Entry.Kind == admission.JobRun && p.throttled() {
		a.Reason, a.Message = admission.CodeStartupThrottle, p.held().Message
	}
	if more := moreOf[w.Reason.Code]; more != nil {
		more(v, a, p, i)
	}
}

// moreOf says, by the reason for which something waits, what else there is to tell of the i-th of those that wait: by whom what
// it waits for is held, and what a person can do.
var moreOf = map[string]func(v *View, a *Answer, p *picture, i int){
	admission.CodeSuspended: func(_ *View, a *Answer, _ *picture, _ int) {
		a.hint("resume the queue: kubectl reprise resume jq/%s -n %s", a.Queue, a.Namespace)
	},
	admission.CodeLimitReached:     (*View).limited,
	admission.CodeTypeLimitReached: (*View).typeFull,
	admission.CodeResourceShort:    (*View).resourceShort,
	admission.CodeBehindOthers:     (*View).behind,
	admission.CodeReservationFirst: (*View).reservedFirst,
	admission.CodePredecessor:      (*View).fenced,
	admission.CodeBackOff:          (*View).backOff,
	admission.CodeUnknownType:      (*View).misfit,
	admission.CodeUnknownResource:  (*View).misfit,
	admission.CodeExceedsCapacity:  (*View).misfit,
}

// backOff tells until when, and how to bring it forward.
func (v *View) backOff(a *Answer, p *picture, i int) {
	until := p.waiting[i].Entry.NotBefore
	a.Message = fmt.Sprintf("it is in back-off until %s (spec.notBefore), %s from now", clock(until), short(until.Sub(v.now)))
	a.hint(`to have it run before that: kubectl patch jobrun %s -n %s --type=merge -p '{"spec":{"notBefore":"%s"}}'`, a.Name, a.Namespace, clock(v.now))
}

// misfit tells what to do with something that can never be admitted as things are.
func (v *View) misfit(a *Answer, _ *picture, _ int) {
	a.hint("change spec.concurrency of JobQueue %s, or delete this and create it anew with what the queue has", a.Queue)
}

// typeFull tells who holds the slots of the type.
func (v *View) typeFull(a *Answer, p *picture, i int) {
	kind := p.waiting[i].Entry.Type
	v.heldBy(a, p, func(e admission.Entry) bool { return e.Type == kind })
	if p.limits.Types[kind] == 0 {
		a.hint("raise spec.concurrency.types[name=%s].limit of JobQueue %s, which is 0", kind, a.Queue)
	}
}

// resourceShort tells who holds what of it is short.
func (v *View) resourceShort(a *Answer, p *picture, i int) {
	short := p.short(p.waiting[i].Entry)
	v.heldBy(a, p, func(e admission.Entry) bool {
		return slices.ContainsFunc(e.Claims, func(c admission.Claim) bool { return short[c.Name] })
	})
}

// limited explains that every slot is in use.
func (v *View) limited(a *Answer, p *picture, _ int) {
	if p.limits.Limit <= 0 {
		a.hint("raise spec.concurrency.limit of JobQueue %s, which is 0", a.Queue)
		return
	}
	v.heldBy(a, p, func(admission.Entry) bool { return true })
}

// short returns the resources of which less is free than the entry claims.
func (p *picture) short(e admission.Entry) map[string]bool {
	used := map[string]int{}
	for _, h := range p.holders {
		for _, c := range h.Claims {
			used[c.Name] += c.Count
		}
	}
	out := map[string]bool{}
	for _, c := range e.Claims {
		out[c.Name] = used[c.Name]+c.Count > p.limits.Resources[c.Name]
	}
	return out
}

// heldBy tells who holds what is waited for.
func (v *View) heldBy(a *Answer, p *picture, matches func(admission.Entry) bool) {
	for _, e := range p.holders {
		if matches(e) {
			a.Holders = append(a.Holders, v.holder(e))
		}
	}
	slices.SortFunc(a.Holders, func(x, y Holder) int { return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Name, y.Name)) })
	for i, h := range a.Holders {
		if i == mostListed {
			a.detail("and by %d more", len(a.Holders)-mostListed)
			break
		}
		a.detail("held by %s", v.sentence(h))
	}
}

// holder tells of something that uses a slot.
func (v *View) holder(e admission.Entry) Holder {
	h := Holder{Kind: cmp.Or(e.Kind, admission.JobRun), Name: v.nameOf(e), Since: v.since(e.UID), Where: v.where(e.UID)}
	for _, c := range e.Claims {
		h.Claims = append(h.Claims, batchv1alpha1.ResourceClaim{Name: c.Name, Count: int32(c.Count)}) //nolint:gosec // it was one
	}
	if r := v.byUID[e.UID]; r != nil {
		h.Phase = string(r.Status.Phase)
	} else if d := v.reserved[e.UID]; d != nil {
		h.Phase = string(d.Status.Phase)
	}
	return h
}

// nameOf names an entry. Of work whose run is gone its labels tell.
func (v *View) nameOf(e admission.Entry) string {
	if e.Name != "" {
		return e.Name
	}
	for _, p := range v.pods[e.UID] {
		if name := p.Labels[batchv1alpha1.LabelRun]; name != "" {
			return name
		}
	}
	for i := range v.snapshot.Jobs {
		if l := v.snapshot.Jobs[i].Labels; types.UID(l[batchv1alpha1.LabelRunUID]) == e.UID && l[batchv1alpha1.LabelRun] != "" {
			return l[batchv1alpha1.LabelRun]
		}
	}
	return string(e.UID)
}

// sentence tells of a holder in words.
func (v *View) sentence(h Holder) string {
	var b strings.Builder
	b.WriteString(kindWord(h.Kind) + " " + h.Name)
	switch {
	case h.Phase == "":
		b.WriteString(", which was deleted while its work lives")
	case batchv1alpha1.JobRunPhase(h.Phase).Terminal():
		b.WriteString(", which is " + h.Phase + " and whose work has not stopped")
	default:
		b.WriteString(", " + h.Phase)
	}
	if !h.Since.IsZero() {
		fmt.Fprintf(&b, " for %s", short(v.now.Sub(h.Since)))
	}
	for _, c := range h.Claims {
		fmt.Fprintf(&b, ", %d of %s", c.Count, c.Name)
	}
	if h.Where != "" {
		b.WriteString(" (" + h.Where + ")")
	}
	return b.String()
}

func kindWord(k admission.Kind) string {
	if k == admission.DirectReservation {
		return "reservation"
	}
	return "run"
}

// behind tells what the first of those waits for that keep what this one needs, too.
func (v *View) behind(a *Answer, p *picture, i int) {
	mine := p.waiting[i].Entry
	for _, w := range p.waiting[:i] {
		if !w.InLine || !alike(mine, w.Entry) {
			continue
		}
		if c := w.Reason.Code; c == admission.CodeTypeLimitReached || c == admission.CodeResourceShort {
			a.detail("%s %s waits: %s", kindWord(w.Entry.Kind), w.Entry.Name, w.Reason.Message)
			return
		}
	}
}

// alike reports whether two entries need something that may be short for both.
func alike(a, b admission.Entry) bool {
	if a.Type != "" && a.Type == b.Type {
		return true
	}
	return slices.ContainsFunc(a.Claims, func(c admission.Claim) bool {
		return slices.ContainsFunc(b.Claims, func(o admission.Claim) bool { return o.Name == c.Name })
	})
}

// reservedFirst names the reservations that are served first.
func (v *View) reservedFirst(a *Answer, p *picture, _ int) {
	told := 0
	for _, w := range p.waiting {
		d := v.reserved[w.Entry.UID]
		if d == nil || !w.InLine || d.Name == a.Name && a.Kind == admission.DirectReservation {
			continue
		}
		if told++; told > mostListed {
			return
		}
		who := ""
		if d.Spec.HolderIdentity != "" {
			who = " of " + d.Spec.HolderIdentity
		}
		a.detail("reservation %s%s is %s: %s", d.Name, who, d.Status.Phase, w.Reason.Message)
	}
}

// fenced tells whose work of the chain has not stopped, and where it is.
func (v *View) fenced(a *Answer, p *picture, i int) {
	e := p.waiting[i].Entry
	for _, h := range p.holders {
		r := v.byUID[h.UID]
		ofChain := h.ChainUID == e.ChainUID || (r != nil && run.ChainUID(r) == e.ChainUID)
		if !ofChain && !v.worksForChain(h.UID, e.ChainUID) {
			continue
		}
		holder := v.holder(h)
		a.Holders = append(a.Holders, holder)
		a.detail("held by %s", v.sentence(holder))
		if r != nil {
			v.overdue(a, r)
		}
	}
}

// worksForChain reports whether a Job or pod of a run that is gone says that it works for the chain.
func (v *View) worksForChain(uid, chain types.UID) bool {
	of := func(labels map[string]string) bool {
		return types.UID(labels[batchv1alpha1.LabelRunUID]) == uid && types.UID(labels[batchv1alpha1.LabelChain]) == chain
	}
	return slices.ContainsFunc(v.pods[uid], func(p corev1.Pod) bool { return of(p.Labels) }) ||
		slices.ContainsFunc(v.snapshot.Jobs, func(j batchv1.Job) bool { return of(j.Labels) })
}
