// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	ssautils "github.com/fluxcd/pkg/ssa/utils"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// theUser is the field manager of these tests, as Flux names its own.
const theUser = "kustomize-controller"

// flux returns the applier of Flux, as its kustomize-controller uses it.
func (w *world) flux() *ssa.ResourceManager {
	w.t.Helper()
	poller := polling.NewStatusPoller(w, w.RESTMapper(), polling.Options{})
	return ssa.NewResourceManager(w, poller, ssa.Owner{Field: theUser, Group: "kustomize.toolkit.fluxcd.io"})
}

// objects reads manifests into the test's namespace.
func (w *world) objects(manifests string) []*unstructured.Unstructured {
	w.t.Helper()
	all, err := ssautils.ReadObjects(strings.NewReader(manifests))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(all).NotTo(BeEmpty())
	for _, o := range all {
		o.SetNamespace(w.ns)
	}
	return all
}

// applied applies objects as Flux does, and returns what that did to each.
func (w *world) applied(flux *ssa.ResourceManager, objects []*unstructured.Unstructured) map[string]ssa.Action {
	w.t.Helper()
	var copies []*unstructured.Unstructured
	for _, o := range objects {
		copies = append(copies, o.DeepCopy()) // it fills in what the API server answers
	}
	changes, err := flux.ApplyAll(w.ctx, copies, ssa.DefaultApplyOptions())
	w.Expect(err).NotTo(HaveOccurred())
	done := map[string]ssa.Action{}
	for _, c := range changes.Entries {
		done[c.Subject] = c.Action
	}
	w.Expect(done).To(HaveLen(len(objects)))
	return done
}

// samples returns the samples that show what is applied and stays, by their file, with the test's server in place of the demo's.
func samples(t *testing.T, w *world) map[string]string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.yaml", "more/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, "config", "samples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	texts := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = strings.ReplaceAll(string(data), "http://127.0.0.1:18080", w.url)
	}
	if len(texts) < 20 {
		t.Fatalf("found %d samples only", len(texts))
	}
	return texts
}

func TestApplyingEverySampleSettlesAfterOneWriteAndNothingDriftsWhileTheOperatorWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	flux := w.flux()
	var all []*unstructured.Unstructured
	var texts []string
	for file, text := range samples(t, w) {
		objects := w.objects(text)
		w.Expect(w.applied(flux, objects)).To(HaveEach(ssa.CreatedAction), file)
		w.Expect(w.applied(flux, objects)).To(HaveEach(ssa.UnchangedAction), file)
		all, texts = append(all, objects...), append(texts, text)
	}
	manifests := strings.Join(texts, "\n---\n")
	created := w.live(all)
	w.again(manifests)
	once := w.live(all)
	for i := range all {
		w.Expect(sameButVersion(created[i], once[i])).To(BeTrue(), "%v became %v", created[i], once[i])
	}
	w.again(manifests)
	w.Expect(w.live(all)).To(Equal(once), "nothing is written again")

	w.start()
	var ended []*unstructured.Unstructured
	for _, run := range []string{"slow-research", "harbour-story", "heartbeat-by-hand", "pod-work"} {
		ended = append(ended, w.reaches("JobRun", run, "Completed"))
	}
	ended = append(ended, w.reaches("JobGroup", "novel", "Completed"))
	w.gone("ScheduledJob", "wake-agent-7") // ttlSecondsAfterFired: 0
	kept := slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return o.GetName() == "wake-agent-7" })
	w.Expect(w.applied(flux, kept)).To(HaveEach(ssa.UnchangedAction))
	ended = w.live(ended)
	w.again(manifests)
	w.Expect(w.live(ended)).To(Equal(ended), "nothing of what has ended is written again")
	for _, o := range w.live(kept) {
		if o.GroupVersionKind().Group == batchv1alpha1.GroupVersion.Group {
			w.theUsers(o)
		}
	}
}

// again applies manifests once more by kubectl, in the name of the same tool.
func (w *world) again(manifests string) {
	w.t.Helper()
	w.does(manifests, "apply", "--server-side", "--field-manager="+theUser, "-f", "-")
}

// sameButVersion reports whether two states of an object are the same for whoever reads them. The API server does not store the
// default of a status at creation but adds it on reading: the first write after that, whatever it is for, stores it.
func sameButVersion(a, b *unstructured.Unstructured) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	a.SetResourceVersion("")
	b.SetResourceVersion("")
	return equality.Semantic.DeepEqual(a, b)
}

// live reads objects as they are now.
func (w *world) live(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	w.t.Helper()
	var all []*unstructured.Unstructured
	for _, o := range objects {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(o.GroupVersionKind())
		w.Expect(w.Get(w.ctx, clientKey(o), u)).To(Succeed())
		all = append(all, u)
	}
	return all
}

// theUsers expects that everything of an object but its status is its user's, and was written once.
func (w *world) theUsers(u *unstructured.Unstructured) {
	w.t.Helper()
	w.Expect(u.GetGeneration()).To(BeEquivalentTo(1), "%s %s", u.GetKind(), u.GetName())
	owned := false
	for _, m := range u.GetManagedFields() {
		if m.Manager == theUser {
			owned = strings.Contains(m.FieldsV1.GetRawString(), `"f:spec"`)
			continue
		}
		w.Expect(m.Subresource).To(Equal("status"), "%s wrote %s of %s %s", m.Manager, m.FieldsV1.GetRawString(), u.GetKind(), u.GetName())
	}
	w.Expect(owned).To(BeTrue(), "%s %s: %v", u.GetKind(), u.GetName(), u.GetManagedFields())
}

func TestFluxWaitsForWhatItApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	flux := w.flux()
	w.start()
	objects := w.objects(w.manifests(`
kind: JobQueue
metadata: {name: q}
spec: {concurrency: {limit: 1}}
---
kind: ScheduledJob
metadata: {name: nightly}
spec: {schedule: "0 2 * * *", suspend: true, runTemplate: {queue: q, work: {http: {url: URL}}}}
---
kind: JobRun
metadata: {name: migrate}
spec: {queue: q, work: {http: {url: URL}}}
---
kind: JobGroup
metadata: {name: seed}
spec: {members: [{name: a, runTemplate: {queue: q, work: {http: {url: URL}}}}]}
`))
	w.applied(flux, objects)
	w.Expect(flux.Wait(objects, ssa.WaitOptions{Interval: interval, Timeout: patience})).To(Succeed())
	w.Expect(w.phase("JobRun", "migrate")()).To(Equal("Completed"))
	w.Expect(w.phase("JobGroup", "seed")()).To(Equal("Completed"))

	bad := w.objects(w.manifests("kind: JobRun\nmetadata: {name: bad}\nspec: {queue: q, work: {http: {url: URL/fail}}, retryPolicy: {maxRetries: 1, baseDelaySeconds: 1}}\n"))
	w.applied(flux, bad)
	err := flux.Wait(bad, ssa.WaitOptions{Interval: interval, Timeout: patience})
	w.Expect(err).To(MatchError(ContainSubstring("failed early due to stalled resources")))
	w.Expect(w.called()).To(HaveLen(4), "it waited for the retry")

	long := w.objects(w.manifests("kind: JobRun\nmetadata: {name: long}\nspec: {queue: q, work: {http: {url: URL/hold}}}\n"))
	w.applied(flux, long)
	err = flux.Wait(long, ssa.WaitOptions{Interval: interval, Timeout: 2 * interval})
	w.Expect(err).To(MatchError(ContainSubstring("timeout waiting for")))
	w.let()
}
