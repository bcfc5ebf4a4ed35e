// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"hash/maphash"
	"reflect"
	"strings"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// sharing has cached runs that are alike share what they have in common: a long queue is mostly runs of a few kinds of work.
// What is cached is never changed, only replaced, so that nobody can tell.
type sharing struct {
	work  alike[batchv1alpha1.Work]
	retry alike[batchv1alpha1.RetryPolicy]
	texts texts
}

func newSharing() *sharing {
	seed := maphash.MakeSeed()
	return &sharing{work: alike[batchv1alpha1.Work]{seed: seed}, retry: alike[batchv1alpha1.RetryPolicy]{seed: seed}, texts: texts{seed: seed}}
}

// run transforms a JobRun that is about to be cached, and drops what nobody reads.
func (s *sharing) run(o any) (any, error) {
	r, ok := o.(*batchv1alpha1.JobRun)
	if !ok {
		return o, nil
	}
	r.ManagedFields = nil
	for _, text := range []*string{&r.APIVersion, &r.Kind, &r.Namespace, (*string)(&r.Status.Phase)} {
		s.texts.share(text)
	}
	own(r)
	s.template(&r.Spec.JobRunTemplateSpec)
	if resolved := r.Status.ResolvedSpec; resolved != nil {
		s.template(&resolved.JobRunTemplateSpec)
	}
	return r, nil
}

// own puts the strings that are the run's own into one. Those that it comes with stand among what was decoded and dropped, and keep
// that from being given back.
func own(r *batchv1alpha1.JobRun) {
	all := r.Name + string(r.UID) + r.ResourceVersion
	name, uid := len(r.Name), len(r.Name)+len(r.UID)
	r.Name, r.UID, r.ResourceVersion = all[:name], types.UID(all[name:uid]), all[uid:]
}

func (s *sharing) template(t *batchv1alpha1.JobRunTemplateSpec) {
	s.texts.share(&t.Queue)
	s.texts.share(&t.Type)
	t.Work, t.RetryPolicy = s.work.one(t.Work), s.retry.one(t.RetryPolicy)
}

// texts finds the text that another one equals. It forgets one for another that hashes to its place.
type texts struct {
	seed maphash.Seed

	mu    sync.Mutex
	known [alikeSlots]string
}

// share replaces a text by an equal one that was seen before, and otherwise by a copy that stands by itself.
func (t *texts) share(text *string) {
	slot := maphash.String(t.seed, *text) % alikeSlots
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[slot] != *text {
		t.known[slot] = strings.Clone(*text)
	}
	*text = t.known[slot]
}

// alikeSlots is how many values of a kind are known at most.
const alikeSlots = 1 << 10

// alike finds the value that another one is a copy of, as long as some object has that. It keeps none alive, and forgets one for another that hashes to its place.
type alike[T any] struct {
	seed maphash.Seed

	mu    sync.Mutex
	known [alikeSlots]weak.Pointer[T]
}

// one returns what is to be kept in place of v: an equal value that was seen before, or else v.
func (a *alike[T]) one(v *T) *T {
	if v == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return v
	}
	slot := maphash.Bytes(a.seed, raw) % alikeSlots
	a.mu.Lock()
	defer a.mu.Unlock()
	if before := a.known[slot].Value(); before != nil && reflect.DeepEqual(before, v) {
		return before
	}
	a.known[slot] = weak.Make(v)
	return v
}
