// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Random sends a server requests that are drawn by a seed, most of them sensible, some old, wrong or late, and returns what it
// answered. Two servers that are the same to a client give the same answers to the same seed.
func Random(t *testing.T, begin Begin, seed uint64, requests int) Answers {
	t.Helper()
	c, namespace := begin(t)
	r := &random{Script: newScript(t, c, namespace), Rand: rand.New(rand.NewPCG(seed, 0)), seen: map[string][]*unstructured.Unstructured{}}
	for i := range requests {
		r.note(fmt.Sprintf("request %d", i+1))
		r.step()
	}
	return Answers{fmt.Sprintf("seed %d", seed): r.lines}
}

// random draws requests.
type random struct {
	*Script
	*rand.Rand
	// seen are the latest versions of each object that were answered, the newest last.
	seen map[string][]*unstructured.Unstructured
}

// subject is a kind with changes that may be made to its objects, some of them against the rules.
type subject struct {
	object         string
	specs, states  []string
	fields         []string
	withoutVersion bool
}

// subjects are the kinds whose objects the requests are about.
var subjects = []subject{
	{
		object: run, specs: []string{`{priority: 3}`, `{priority: null}`, `{cancel: true}`, `{cancel: false}`, `{queue: other}`, `{notBefore: "2026-11-20T07:00:00Z"}`, `{nonsense: 3}`},
		states: []string{
			`{phase: Running, slot: Held, queue: q}`, `{phase: Completed, slot: Free}`, `{phase: Failed}`, `{phase: Cancelling}`, `{phase: Cancelled}`, `{phase: Skipped}`, `{phase: Queued}`, `{phase: Nonsense}`,
			`{slot: Free}`, `{slot: Held}`, `{message: hello}`, `{message: null, reason: null}`, `{halt: {phase: Cancelled, reason: A, message: b}}`, `{halt: null}`,
		},
		fields: []string{"status.phase=Queued", "status.phase=Running", "status.slot=Held", "spec.queue=q"},
	},
	{
		object: reservation, specs: []string{`{release: true}`, `{release: false}`, `{renewTime: "2026-11-20T07:00:00Z"}`, `{renewTime: "2026-11-20T08:00:00Z"}`, `{queue: other}`, `{leaseDurationSeconds: 9}`},
		states: []string{`{phase: Active}`, `{phase: Granted}`, `{phase: Released}`, `{phase: Expired}`, `{phase: Pending}`, `{epoch: "1.1"}`},
		fields: []string{"status.phase=Pending", "spec.queue=q", "status.epoch=a"},
	},
	{
		object: group, specs: []string{`{cancel: true}`, `{cancel: null}`, `{mode: Parallel}`, `{ttlSecondsAfterFinished: 5}`},
		states: []string{`{phase: Running}`, `{phase: Pending}`, `{phase: Completed}`, `{phase: Cancelling}`, `{message: a}`},
		fields: []string{"status.phase=Pending"},
	},
	{object: queue, specs: []string{`{suspend: true}`, `{suspend: null}`, `{concurrency: {limit: 7}}`, `{concurrency: {limit: -1}}`, `{onStale: Fail}`}, states: []string{`{queued: 3}`, `{running: 1}`, `{queued: many}`}},
	{object: ledger, specs: []string{`{epoch: "100.2"}`, `{epoch: "101.0"}`, `{epoch: "99.0"}`, `{directInRow: 3}`, `{directInRow: -1}`}},
	{
		object: schedule, specs: []string{`{suspend: true}`, `{schedule: "@hourly"}`, `{schedule: never}`, `{timeZone: Europe/Lisbon}`, `{timeZone: null}`},
		states: []string{`{lastRunName: a}`, `{lastRunName: b}`},
	},
	{
		object: job, specs: []string{`{suspend: true}`, `{suspend: false}`, `{parallelism: 3}`, `{completions: 3}`, `{template: {spec: {nodeSelector: {a: b}}}}`, `{backoffLimit: 2}`},
		states: []string{
			`{active: 1, startTime: "2026-11-20T07:00:00Z"}`, `{active: 0, startTime: null}`, `{failed: 1}`, `{failed: 0}`, `{startTime: "2026-11-20T07:00:03Z"}`, `{ready: 1}`,
			`{conditions: [{type: Suspended, status: "True"}]}`, `{conditions: [{type: Suspended, status: "False"}]}`, `{conditions: [{type: FailureTarget, status: "True"}]}`,
			`{conditions: [{type: FailureTarget, status: "True"}, {type: Failed, status: "True"}]}`, `{conditions: [{type: SuccessCriteriaMet, status: "True"}]}`,
			`{completionTime: "2026-11-20T07:00:09Z", conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`,
		},
		fields: []string{"status.successful=0"}, withoutVersion: true,
	},
	{object: nodePod, specs: []string{`{restartPolicy: Never}`, `{activeDeadlineSeconds: 60}`}, states: []string{`{phase: Running}`, `{phase: Succeeded}`, `{phase: Failed, reason: Evicted}`}, fields: []string{"spec.nodeName=node"}, withoutVersion: true},
	{object: lease, specs: []string{`{holderIdentity: other}`, `{leaseTransitions: 2}`, `{leaseDurationSeconds: 0}`}},
}

func (r *random) chance(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r *random, all []T) T { return all[r.IntN(len(all))] }

// step sends one request.
func (r *random) step() {
	s := pick(r, subjects)
	name := pick(r, []string{"a", "b", "c"})
	fresh := r.object(called(s.object, name))
	key := fresh.GetKind() + "/" + name
	switch n := r.IntN(100); {
	case n < 20:
		r.make(key, fresh)
	case n < 45:
		r.change(s, key, r.known(key, fresh))
	case n < 65 && s.states != nil:
		o := r.known(key, fresh)
		merge(o.Object, r.content("status: "+pick(r, s.states)))
		r.write("status", key, o, r.client.Status().Update(r.ctx, o))
	case n < 72:
		r.merge(s, key, r.known(key, fresh))
	case n < 84:
		r.remove(r.known(key, fresh))
	case n < 92:
		err := r.client.Get(r.ctx, keyOf(fresh), fresh)
		r.write("get", key, fresh, err)
	default:
		r.find(s, fresh)
	}
}

// known is a version of the object that was seen: mostly the latest, or one that has not been, if none was.
func (r *random) known(key string, fresh *unstructured.Unstructured) *unstructured.Unstructured {
	versions := r.seen[key]
	switch {
	case len(versions) == 0:
		return fresh
	case r.chance(25):
		return pick(r, versions).DeepCopy()
	}
	return versions[len(versions)-1].DeepCopy()
}

// write writes down the answer to a request and keeps the version that it brought.
func (r *random) write(what, key string, o *unstructured.Unstructured, err error) {
	r.Helper()
	r.answered(what, o, err, reasonOf(err))
	if err != nil {
		return
	}
	const kept = 3
	version := o.DeepCopy()
	// Clients that keep versions in a cache drop the managed fields, and so must these: a server takes back old ones.
	version.SetManagedFields(nil)
	r.seen[key] = append(r.seen[key], version)
	r.seen[key] = r.seen[key][max(0, len(r.seen[key])-kept):]
}

// make creates an object.
func (r *random) make(key string, o *unstructured.Unstructured) {
	if r.chance(30) {
		o.SetLabels(map[string]string{"x": pick(r, []string{"one", "two"})})
	}
	if r.chance(20) {
		o.SetFinalizers([]string{"reprise.dev/first"})
	}
	r.write("create", key, o, r.client.Create(r.ctx, o))
}

// change updates an object.
func (r *random) change(s subject, key string, o *unstructured.Unstructured) {
	merge(o.Object, r.content(r.drawn(s)))
	if s.withoutVersion && r.chance(10) {
		o.SetResourceVersion("")
	}
	r.write("update", key, o, r.client.Update(r.ctx, o))
}

// merge sends a change as a merge patch, with the version that was seen or without.
func (r *random) merge(s subject, key string, o *unstructured.Unstructured) {
	patch := &unstructured.Unstructured{Object: r.content(r.drawn(s))}
	if version := o.GetResourceVersion(); version != "" && r.chance(50) {
		patch.SetResourceVersion(version)
	}
	data, err := json.Marshal(patch.Object)
	if err != nil {
		r.Fatal(err)
	}
	r.write("patch", key, o, r.client.Patch(r.ctx, o, client.RawPatch("application/merge-patch+json", data)))
}

// drawn is a change of the spec or of the metadata.
func (r *random) drawn(s subject) string {
	if r.chance(50) {
		return "spec: " + pick(r, s.specs)
	}
	return "metadata: " + pick(r, []string{
		`{labels: {x: one}}`, `{labels: {x: two}}`, `{labels: null}`, `{annotations: {a: b}}`, `{annotations: null}`, `{finalizers: null}`, `{finalizers: [reprise.dev/first]}`,
		`{finalizers: [reprise.dev/first, reprise.dev/second]}`, `{labels: {"not a label": a}}`, `{generation: 17}`, `{}`,
	})
}

// remove deletes an object.
func (r *random) remove(o *unstructured.Unstructured) {
	var how []client.DeleteOption
	if r.chance(40) && o.GetUID() != "" {
		p := client.Preconditions{UID: ptr.To(o.GetUID())}
		if r.chance(50) {
			p.ResourceVersion = ptr.To(o.GetResourceVersion())
		}
		how = append(how, p)
	}
	if r.chance(70) {
		how = append(how, client.PropagationPolicy(pick(r, []metav1.DeletionPropagation{
			metav1.DeletePropagationBackground, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
		})))
	}
	if r.chance(20) {
		how = append(how, client.GracePeriodSeconds(pick(r, []int64{0, 0, 5, 60})))
	}
	err := r.client.Delete(r.ctx, o, how...)
	r.answered("delete", nil, err, reasonOf(err))
}

// find lists objects.
func (r *random) find(s subject, o *unstructured.Unstructured) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(o.GetAPIVersion())
	list.SetKind(o.GetKind() + "List")
	var which []client.ListOption
	if r.chance(40) {
		which = append(which, client.MatchingLabels{"x": pick(r, []string{"one", "two"})})
	}
	if s.fields != nil && r.chance(60) {
		which = append(which, fieldsOf(pick(r, s.fields)))
	}
	if r.chance(30) {
		which = append(which, client.Limit(2))
	}
	err := r.client.List(r.ctx, list, append(which, client.InNamespace(r.namespace))...)
	r.answered("list", nil, err, reasonOf(err))
	for i := range list.Items {
		r.note("  item", r.shown(&list.Items[i]))
	}
	r.note("  more", fmt.Sprint(list.GetContinue() != ""), "remaining", fmt.Sprint(remaining(list)))
}
