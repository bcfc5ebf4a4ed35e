// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?\n)```$")

// blocks returns the code of one language in docs/gitops.md.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/gitops.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
		if block[1] == language {
			found = append(found, block[2])
		}
	}
	return found
}

// commands returns the documented commands that begin so, as their arguments.
func commands(t *testing.T, prefix string) [][]string {
	t.Helper()
	var all [][]string
	for line := range strings.Lines(strings.Join(blocks(t, "sh"), "")) {
		if strings.HasPrefix(line, prefix) {
			all = append(all, strings.Fields(strings.ReplaceAll(line, "'", ""))[1:]) // without kubectl, as a shell has no quotes
		}
	}
	if len(all) == 0 {
		t.Fatalf("the page has no %s", prefix)
	}
	return all
}

var timeout = regexp.MustCompile(`^--timeout=\S+$`)

// waits runs the documented kubectl wait commands at once, each with this timeout, and returns what each says by its arguments.
func (w *world) waits(all [][]string, limit time.Duration) map[string]string {
	w.t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	said := map[string]string{}
	for _, args := range all {
		limited := slices.Clone(args)
		for i, a := range limited {
			if timeout.MatchString(a) {
				limited[i] = "--timeout=" + limit.String()
			}
		}
		w.Expect(limited).NotTo(Equal(args), "it has a timeout of its own")
		group.Go(func() {
			out, err := w.kubectl("", limited...)
			mu.Lock()
			defer mu.Unlock()
			said[strings.Join(args, " ")] = fmt.Sprintf("%s(%v)", out, err)
		})
	}
	group.Wait()
	return said
}

const timedOut = "timed out waiting for the condition"

func TestEveryDocumentedWaitEndsWhenItShouldAndNotBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := commands(t, "kubectl wait ")
	kinds := map[string]bool{}
	for _, args := range all {
		kind, _, _ := strings.Cut(args[1], "/")
		kinds[kind] = true
	}
	for _, kind := range kindsWithStatus(t) {
		w.Expect(slices.Collect(maps.Keys(kinds))).To(ContainElement(strings.ToLower(kind)))
	}
	w.apply(`
kind: JobQueue
metadata: {name: agents}
spec: {concurrency: {limit: 2}}
---
kind: ScheduledJob
metadata: {name: nightly}
spec: {schedule: "0 2 * * *", runTemplate: {queue: agents, work: {http: {url: URL}}}}
---
kind: JobRun
metadata: {name: migrate}
spec: {queue: agents, priority: 10, work: {http: {url: URL/hold}}}
---
kind: JobRun
metadata: {name: bad}
spec: {queue: agents, priority: 5, work: {http: {url: URL/fail}}, retryPolicy: {maxRetries: 1, baseDelaySeconds: 1}}
---
kind: JobRun
metadata: {name: gone, finalizers: [example.org/kept]}
spec: {work: {http: {url: URL}}}
---
kind: JobGroup
metadata: {name: seed}
spec: {members: [{name: a, runTemplate: {queue: agents, work: {http: {url: URL}}}}]}
---
kind: DirectReservation
metadata: {name: terminal}
spec: {queue: agents}
`)
	w.does("", "delete", "jr", "gone", "--wait=false")
	empty := "wait jobqueue/agents --for=jsonpath={.status.running}=0 --timeout=10m"
	for args, said := range w.waits(all, time.Second) {
		if args != empty { // nothing runs yet
			w.Expect(said).To(And(ContainSubstring(timedOut), ContainSubstring("exit status 1")), args)
		}
	}

	w.start()
	w.reaches("JobRun", "migrate", "Running")
	w.Eventually(w.atWork("agents")).Should(BeEquivalentTo(1))
	w.Expect(w.waits([][]string{strings.Fields(empty)}, time.Second)[empty]).To(ContainSubstring(timedOut))
	time.AfterFunc(interval, func() {
		w.let()
		_, _ = w.kubectl("", "patch", "jr", "gone", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`) // or its wait tells
	})
	for args, said := range w.waits(all, patience) {
		w.Expect(said).To(ContainSubstring("condition met\n(<nil>)"), args)
	}
}

func TestTheDocumentedPatchGivesArgoCDItsHealthChecksAndKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "argocd-cm"}, Data: map[string]string{"url": "https://argo.example"}}
	w.Expect(w.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}})).To(Succeed())
	w.Expect(w.Create(w.ctx, cm)).To(Succeed())
	for _, args := range commands(t, "kubectl -n argocd ") {
		cmd := plane.Kubectl(w.ctx, args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		w.Expect(err).NotTo(HaveOccurred(), "%s", out)
	}
	w.Expect(w.Get(w.ctx, client.ObjectKeyFromObject(cm), cm)).To(Succeed())
	w.Expect(cm.Data).To(HaveKeyWithValue("url", "https://argo.example"))
	for _, kind := range kindsWithStatus(t) {
		w.Expect(cm.Data).To(HaveKeyWithValue(key(kind), script(kind)))
	}
}

func TestTheDocumentedKustomizationsAreOfFlux(t *testing.T) {
	examples := blocks(t, "yml")
	if len(examples) != 2 {
		t.Errorf("the page has %d", len(examples))
	}
	for _, example := range examples {
		k := kustomizev1.Kustomization{}
		if err := yaml.UnmarshalStrict([]byte(example), &k); err != nil {
			t.Error(err)
		}
		if k.APIVersion != kustomizev1.GroupVersion.String() || k.Kind != kustomizev1.KustomizationKind || !k.Spec.Prune || k.Spec.SourceRef.Name == "" {
			t.Errorf("it is %+v", k)
		}
	}
}

func TestFluxMakesARunOrGroupAnewThatItIsToForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	flux := w.flux()
	w.start()
	var forced []string
	for _, example := range blocks(t, "yaml") {
		if strings.Contains(example, kustomizev1.GroupVersion.Group+"/force") {
			forced = append(forced, regexp.MustCompile(`https://\S+`).ReplaceAllString(example, w.url+"/one"))
		}
	}
	w.Expect(forced).To(HaveLen(1))
	forced = append(forced, w.manifests(`
kind: JobGroup
metadata: {name: seed, annotations: {`+kustomizev1.GroupVersion.Group+`/force: enabled}}
spec: {members: [{name: a, runTemplate: {work: {http: {url: URL/one}}}}]}
`))
	options := ssa.DefaultApplyOptions()
	options.ForceSelector = map[string]string{kustomizev1.GroupVersion.Group + "/force": kustomizev1.EnabledValue}
	for _, manifest := range forced {
		first := w.objects(manifest)[0]
		_, err := flux.Apply(w.ctx, first, options)
		w.Expect(err).NotTo(HaveOccurred())
		before := w.reaches(first.GetKind(), first.GetName(), "Completed")
		second := w.objects(strings.ReplaceAll(manifest, "/one", "/two"))[0]
		_, err = flux.Apply(w.ctx, second, options)
		w.Expect(err).NotTo(HaveOccurred(), first.GetKind())
		w.Eventually(func() *unstructured.Unstructured { return w.get(first.GetKind(), first.GetName()) }).
			ShouldNot(HaveField("GetUID()", before.GetUID()))
		w.reaches(first.GetKind(), first.GetName(), "Completed")
	}
	w.Expect(w.called()).To(Equal([]string{"migrate", "migrate", "seed-a", "seed-a"}))
}
