// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestEverySampleIsAcceptedAsItStands(t *testing.T) {
	const namespace = "samples"
	makeNamespace(t, namespace)
	for _, file := range files(t, "samples") {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			out := kubectl(t, "", "apply", "--validate=strict", "-n", namespace, "-f", file)
			g.Expect(out).NotTo(ContainSubstring("Warning"))
			g.Expect(kubectl(t, "", "apply", "--validate=strict", "-n", namespace, "-f", file)).To(MatchRegexp(`^(\S+ unchanged\n)+$`))
		})
	}
}

// contents returns the text of every sample by its path.
func contents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, file := range files(t, "samples") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	return texts
}

func TestEverySampleBeginsBySayingWhatItShows(t *testing.T) {
	for file, text := range contents(t) {
		if !strings.HasPrefix(text, "# ") {
			t.Errorf("%s begins with %.40q", file, text)
		}
	}
}

// A sample calls nothing but the server of the demo.
func TestEverySampleCallsTheServerOfTheDemo(t *testing.T) {
	const server = "http://127.0.0.1:18080"
	calls := map[string]int{}
	for file, text := range contents(t) {
		for line := range strings.SplitSeq(text, "\n") {
			for _, field := range []string{"url: ", "upstream: "} {
				url, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "- "), field)
				if !ok {
					continue
				}
				calls[field]++
				if url != server && !strings.HasPrefix(url, server+"/") {
					t.Errorf("%s: %s", file, url)
				}
			}
		}
	}
	if len(calls) != 2 {
		t.Errorf("found only %v", calls)
	}
}

// sample is one object of a file: a JobRun's spec has a template's fields, and so has what a reservation asks of a queue.
type sample struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		batchv1alpha1.JobRunTemplateSpec `json:",inline"`
		Concurrency                      batchv1alpha1.QueueConcurrency
		RunTemplate                      *batchv1alpha1.JobRunTemplateSpec
		Members                          []batchv1alpha1.GroupMember
		GroupTemplate                    batchv1alpha1.JobGroupTemplateSpec
	}
}

// asks returns what the object asks of queues. A run by hand asks for nothing itself.
func (s sample) asks() []batchv1alpha1.JobRunTemplateSpec {
	var all []batchv1alpha1.JobRunTemplateSpec
	if s.Spec.Queue != "" {
		all = append(all, s.Spec.JobRunTemplateSpec)
	}
	if s.Spec.RunTemplate != nil {
		all = append(all, *s.Spec.RunTemplate)
	}
	for _, member := range append(s.Spec.Members, s.Spec.GroupTemplate.Members...) {
		all = append(all, member.RunTemplate)
	}
	return all
}

// misfit says why the queue can never give what is asked; "" if it can.
func misfit(ask batchv1alpha1.JobRunTemplateSpec, queue batchv1alpha1.QueueConcurrency) string {
	known := func(of batchv1alpha1.TypeConcurrency) bool { return of.Name == ask.Type }
	if ask.Type != "" && len(queue.Types) > 0 && !slices.ContainsFunc(queue.Types, known) {
		return "it does not know the type " + ask.Type
	}
	for _, claim := range ask.Claims {
		enough := func(r batchv1alpha1.QueueResource) bool {
			return r.Name == claim.Name && r.Capacity >= max(1, claim.Count)
		}
		if !slices.ContainsFunc(queue.Resources, enough) {
			return fmt.Sprintf("it has not %d %s", max(1, claim.Count), claim.Name)
		}
	}
	return ""
}

func TestTheQueuesOfTheSamplesHaveWhatTheSamplesAskFor(t *testing.T) {
	queues, askers := map[string]batchv1alpha1.QueueConcurrency{}, map[string][]sample{}
	for file, text := range contents(t) {
		for document := range strings.SplitSeq(text, "\n---\n") {
			var s sample
			if err := yaml.Unmarshal([]byte(document), &s); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if s.Kind == "JobQueue" {
				queues[s.Metadata.Name] = s.Spec.Concurrency
			}
			askers[file] = append(askers[file], s)
		}
	}
	claims := 0
	for file, samples := range askers {
		for _, s := range samples {
			for _, ask := range s.asks() {
				claims += len(ask.Claims)
				queue, ok := queues[ask.Queue]
				if !ok {
					t.Errorf("%s: %s %s: no sample has the queue %q", file, s.Kind, s.Metadata.Name, ask.Queue)
				}
				if complaint := misfit(ask, queue); complaint != "" {
					t.Errorf("%s: %s %s asks for too much of the queue %s: %s", file, s.Kind, s.Metadata.Name, ask.Queue, complaint)
				}
			}
		}
	}
	if claims == 0 {
		t.Error("no claim found")
	}
}

// What sends heartbeats needs the right to write them, and no other.
func TestTheWorkThatSendsHeartbeatsMayWriteLeasesAlone(t *testing.T) {
	const namespace, user = "heartbeat", "system:serviceaccount:heartbeat:heartbeat"
	g := NewWithT(t)
	makeNamespace(t, namespace)
	kubectl(t, "", "apply", "-n", namespace, "-f", "samples/more/12-run-heartbeat.yaml")
	lease := func(second int) string {
		return fmt.Sprintf(`{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "crawl-wiki"}, "spec": {"renewTime": "2026-11-20T07:00:%02d.000000Z"}}`, second)
	}
	for second := range 2 { // the first makes it
		kubectl(t, lease(second), "apply", "--server-side", "--as="+user, "-n", namespace, "-f", "-")
	}
	g.Expect(kubectl(t, "", "get", "lease", "crawl-wiki", "-n", namespace, "-o", "jsonpath={.spec.renewTime}")).To(Equal("2026-11-20T07:00:01.000000Z"))

	api, err := client.New(plane.Config(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, not := range []struct{ group, resource, verb string }{
		{"coordination.k8s.io", "leases", "delete"}, {"batch.reprise.dev", "jobruns", "patch"}, {"batch.reprise.dev", "jobruns/status", "patch"}, {"batch", "jobs", "create"}, {"", "secrets", "get"},
	} {
		may, err := allowed(t, api, user, namespace, not.group, not.resource, not.verb)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(may).To(BeFalse(), "%+v", not)
	}
	may, err := allowed(t, api, user, "default", "coordination.k8s.io", "leases", "patch")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(may).To(BeFalse(), "of another namespace")
}
