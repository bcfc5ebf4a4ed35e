// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// member builds a member that does what the run does.
func member(name string, r *batchv1alpha1.JobRun) batchv1alpha1.GroupMember {
	return batchv1alpha1.GroupMember{Name: name, RunTemplate: r.Spec.JobRunTemplateSpec}
}

// calling builds a member that calls the URL, and retries once.
func (w *world) calling(name, url string, change ...func(*batchv1alpha1.JobRun)) batchv1alpha1.GroupMember {
	return member(name, w.httpRun("", url, change...))
}

// podded builds a member whose one pod runs until the test ends it.
func (w *world) podded(name string, change ...func(*batchv1alpha1.JobRun)) batchv1alpha1.GroupMember {
	return member(name, w.jobRun("", change...))
}

type groupChange func(*batchv1alpha1.JobGroup)

func parallelGroup(g *batchv1alpha1.JobGroup) { g.Spec.Mode = batchv1alpha1.GroupParallel }

func onFailure(p batchv1alpha1.GroupFailurePolicy) groupChange {
	return func(g *batchv1alpha1.JobGroup) { g.Spec.OnFailure = p }
}

// group builds a sequence of these members, unless changed.
func (w *world) group(name string, members []batchv1alpha1.GroupMember, change ...groupChange) *batchv1alpha1.JobGroup {
	g := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	g.Spec.Members = members
	for _, c := range change {
		c(g)
	}
	return g
}

func (w *world) readGroup(name string) *batchv1alpha1.JobGroup {
	w.t.Helper()
	g := &batchv1alpha1.JobGroup{}
	w.Expect(w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, g)).To(Succeed())
	return g
}

// standing tells where a group and its members stand: "Running: a Completed, b Queued, c Waiting".
func standing(g *batchv1alpha1.JobGroup) string {
	var members []string
	for _, m := range g.Status.Members {
		members = append(members, m.Name+" "+string(m.Phase))
	}
	return string(g.Status.Phase) + ": " + strings.Join(members, ", ")
}

// stands waits until a group and its members stand so, and returns the group.
func (w *world) stands(name, want string) *batchv1alpha1.JobGroup {
	w.t.Helper()
	w.Eventually(func() string {
		g := &batchv1alpha1.JobGroup{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, g); err != nil {
			return err.Error()
		}
		return standing(g)
	}).Should(Equal(want), func() string { return w.groupStory() })
	return w.readGroup(name)
}

// ends waits until a group has ended, as told by the members, and expects that its status says so in every way.
func (w *world) ends(name, want string) *batchv1alpha1.JobGroup {
	w.t.Helper()
	g := w.stands(name, want)
	w.Expect(g.Status.Phase.Terminal()).To(BeTrue(), want)
	conditions := map[string]string{}
	for _, c := range g.Status.Conditions {
		w.Expect(c.ObservedGeneration).To(Equal(g.Generation), c.Type)
		conditions[c.Type] = string(c.Status)
	}
	if g.Status.Phase == batchv1alpha1.JobGroupFailed {
		w.Expect(conditions).To(Equal(map[string]string{batchv1alpha1.ConditionFailed: "True", batchv1alpha1.ConditionStalled: "True"}))
	} else {
		w.Expect(conditions).To(Equal(map[string]string{batchv1alpha1.ConditionComplete: "True"}))
	}
	w.Expect(g.Status.ObservedGeneration).To(Equal(g.Generation))
	w.Expect(g.Status.Settled).To(Equal(fmt.Sprintf("%d/%d", len(g.Spec.Members), len(g.Spec.Members))))
	w.Expect(g.Status.FinishedAt).NotTo(BeNil())
	return g
}

// groupStory tells what is in the namespace, for a failed expectation.
func (w *world) groupStory() string {
	groups := &batchv1alpha1.JobGroupList{}
	if err := w.List(w.ctx, groups, client.InNamespace(w.ns)); err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, g := range groups.Items {
		fmt.Fprintf(&b, "%s: %s %s %s\n", g.Name, standing(&g), g.Status.Reason, g.Status.Message)
		for _, m := range g.Status.Members {
			fmt.Fprintf(&b, "  %s: %s %s %s\n", m.Name, m.RunName, m.Reason, m.Message)
		}
	}
	return b.String() + w.story()
}

// told returns what the status of a group says of a member.
func told(g *batchv1alpha1.JobGroup, name string) batchv1alpha1.GroupMemberStatus {
	for _, m := range g.Status.Members {
		if m.Name == name {
			return m
		}
	}
	return batchv1alpha1.GroupMemberStatus{}
}

// neverMade expects that a member ended without ever having had a run.
func (w *world) neverMade(g *batchv1alpha1.JobGroup, names ...string) {
	w.t.Helper()
	for _, name := range names {
		m := told(g, name)
		w.Expect(m.RunName).To(BeEmpty(), name)
		w.Expect(m.RunUID).To(BeEmpty(), name)
		w.Expect(m.Reason).NotTo(BeEmpty(), name)
		w.Expect(m.Message).NotTo(BeEmpty(), name)
		w.Expect(w.allRuns()).NotTo(ContainElement(HavePrefix(g.Name+"-"+name)), "member %s", name)
	}
}

// allRuns returns the names of the runs of the namespace, in order.
func (w *world) allRuns() []string {
	w.t.Helper()
	list := &batchv1alpha1.JobRunList{}
	w.Expect(w.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	return slices.Sorted(slices.Values(runNames(list.Items)))
}

// cancelGroup asks for the end of a group.
func (w *world) cancelGroup(name string) {
	w.t.Helper()
	g := w.readGroup(name)
	w.patch(g, func() { g.Spec.Cancel = true })
}

// gated is a queue that admits nothing until it is opened.
func (w *world) gated(name string) (open func()) {
	w.t.Helper()
	q := w.queue(name, 0)
	return func() {
		w.t.Helper()
		w.patch(q, func() { q.Spec.Concurrency.Limit = ptr.To[int32](1) })
	}
}

// starts counts how often pods of each chain began to work, by the name of its first run.
func (w *world) starts() map[string]int {
	n := map[string]int{}
	for _, e := range w.lives() {
		if name, started := strings.CutPrefix(e, "Started "); started {
			n[withoutRetry(name)]++
		}
	}
	return n
}

var ofRetry = regexp.MustCompile(`-r[0-9]+$`)

// withoutRetry returns the name of the first run of the chain of a run, by its name.
func withoutRetry(name string) string { return ofRetry.ReplaceAllString(name, "") }

// failsOnce refuses the first attempt of each of these runs, and answers everything else.
func failsOnce(runs ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		name := r.Header.Get("Reprise-Run")
		if slices.Contains(runs, name[strings.LastIndex(name, "/")+1:]) && r.Header.Get("Reprise-Attempt") == "0" {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	}
}

// kubectl runs kubectl in the namespace of the test.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := plane.Kubectl(w.ctx, append([]string{"-n", w.ns}, args...)...).CombinedOutput()
	w.Expect(err).NotTo(HaveOccurred(), "%s", out)
	return string(out)
}

// groupCondition reports whether a condition of a group holds.
func (w *world) groupCondition(name, kind string) bool {
	w.t.Helper()
	return meta.IsStatusConditionTrue(w.readGroup(name).Status.Conditions, kind)
}
