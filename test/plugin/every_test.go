// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin"
	"reprise.dev/reprise/internal/plugin/cli"
)

// every is one call of each command that talks to the cluster, and whether it begins with an object that has to exist.
var every = map[string]struct {
	args  []string
	named bool
}{
	"cancel":          {[]string{"cancel", "nightly"}, true},
	"confirm-stopped": {[]string{"confirm-stopped", "nightly"}, true},
	"convert":         {[]string{"convert", "cronjob/nightly"}, true},
	"logs":            {[]string{"logs", "nightly"}, true},
	"next":            {[]string{"next", "nightly"}, true},
	"plan":            {[]string{"plan"}, false},
	"queue":           {[]string{"queue", "nightly"}, true},
	"resend":          {[]string{"resend", "nightly"}, true},
	"reserve":         {[]string{"reserve", "--queue=nightly", "--", "true"}, false},
	"resume":          {[]string{"resume", "nightly"}, true},
	"retry":           {[]string{"retry", "nightly"}, true},
	"run":             {[]string{"run", "nightly"}, true},
	"suspend":         {[]string{"suspend", "nightly"}, true},
	"tree":            {[]string{"tree", "nightly"}, true},
	"why":             {[]string{"why", "nightly"}, true},
}

// failed is the exit code of a command that could not do what it was asked to.
func failed(name string) int {
	if name == "reserve" {
		return 125 // the others are those of what it runs
	}
	return cli.ExitFailed
}

// alone are the commands that need no cluster.
var alone = []string{"version"}

func TestEveryCommandIsTriedHere(t *testing.T) {
	g := NewWithT(t)
	var names []string
	for _, command := range plugin.Root(cli.NewFactory(genericiooptions.NewTestIOStreamsDiscard())).Commands() {
		names = append(names, command.Name())
	}
	g.Expect(names).To(ConsistOf(append(slices.Collect(maps.Keys(every)), alone...)))
}

// deaf is an API server that hears requests and never answers any.
func deaf(t *testing.T) (url string, heard <-chan struct{}) {
	first, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(first) })
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(ended)
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL, first
}

func TestEveryCommandCanBeInterrupted(t *testing.T) {
	for name, c := range every {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			server, heard := deaf(t)
			process := launch(t, nil, append([]string{"--server=" + server}, c.args...)...)
			select {
			case <-heard:
			case <-process.done:
				t.Fatalf("it asked for nothing: %s", process.err)
			case <-time.After(patience):
				t.Fatal("it asked for nothing")
			}
			process.signal(syscall.SIGINT)
			r := process.result()
			g.Expect(r.code).To(Equal(130))
			g.Expect(r.out).To(BeEmpty())
			g.Expect(r.err).To(HaveSuffix("error: interrupted\n"))
		})
	}
}

func TestEveryCommandSaysThatThereIsNoCluster(t *testing.T) {
	const configs = `apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {cluster: here}}
clusters:
- {name: here, cluster: {server: "http://127.0.0.1:1"}}
`
	config := file(t, configs)
	for name, c := range every {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			for _, why := range []struct {
				flags   []string
				message string
			}{
				{nil, "error: no cluster is configured\nname a kubeconfig with --kubeconfig or the environment variable KUBECONFIG, or write ~/.kube/config\n"},
				{[]string{"--kubeconfig=" + config}, "error: the API server http://127.0.0.1:1 of context \"here\" refuses connections\nis the cluster up"},
				{[]string{"--kubeconfig=" + config, "--context=hree"}, "error: the kubeconfig has no context \"hree\"\ndid you mean here?\n"},
				{[]string{"--kubeconfig=/nonexistent"}, "error: stat /nonexistent: no such file or directory"},
			} {
				r := launch(t, nil, append(why.flags, c.args...)...).result()
				g.Expect(r.code).To(Equal(failed(name)))
				g.Expect(r.out).To(BeEmpty())
				g.Expect(r.err).To(ContainSubstring(why.message))
			}
		})
	}
}

func TestEveryCommandSaysWhichRightIsMissing(t *testing.T) {
	w := newWorld(t)
	w.nightly()
	_, kubeconfig, err := plane.User("nobody")
	w.Expect(err).NotTo(HaveOccurred())
	for name, c := range every {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := launch(t, nil, append([]string{"--kubeconfig=" + kubeconfig, "--namespace=" + w.ns}, c.args...)...).result()
			g.Expect(r.code).To(Equal(failed(name)))
			g.Expect(r.out).To(BeEmpty())
			g.Expect(r.err).To(MatchRegexp(fmt.Sprintf(`(?s)error: user "nobody" may not (\w+) ([\w./]+) in namespace "%[1]s"\nask who .* kubectl auth can-i \w+ [\w./]+ -n %[1]s`, w.ns)))
		})
	}
}

// nightly makes one object of each kind, all of that name.
func (w *world) nightly() {
	w.t.Helper()
	meta := metav1.ObjectMeta{Name: "nightly"}
	work := httpWork("http://127.0.0.1:1/", 0)
	cron := &batchv1.CronJob{ObjectMeta: meta}
	cron.Spec.Schedule = "@daily"
	cron.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "image"}}}
	w.create(scheduledJob("nightly", work), jobRun("nightly", work), &batchv1alpha1.JobQueue{ObjectMeta: meta}, cron)
}

func TestEveryCommandSuggestsTheNameThatWasMeant(t *testing.T) {
	w := newWorld(t)
	w.nightly()
	for name, c := range every {
		if !c.named {
			continue
		}
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			args := slices.Clone(c.args)
			last := len(args) - 1
			args[last] = args[last][:len(args[last])-len("nightly")] + "nigtly"
			r := w.reprise(args...)
			g.Expect(r.code).To(Equal(failed(name)))
			g.Expect(r.out).To(BeEmpty())
			g.Expect(r.err).To(MatchRegexp(`error: there is no \w+ "nigtly" in namespace "%s"\ndid you mean (\w+/)?nightly\?\n`, w.ns))
		})
	}
}

func TestEveryCommandRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, c := range every {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r := launch(t, nil, append([]string{c.args[0], "--no-such-flag"}, c.args[1:]...)...).result()
			g.Expect(r).To(Equal(result{2, "", fmt.Sprintf("error: unknown flag: --no-such-flag\nsee: kubectl reprise %s --help\n", name)}))
			help := launch(t, nil, name, "--help").result()
			g.Expect(help.code).To(BeZero())
			g.Expect(help.out).To(ContainSubstring("Examples:\n"))
			g.Expect(help.out).To(ContainSubstring("Exit codes:"))
		})
	}
	g := NewWithT(t)
	misspelt := launch(t, nil, "cancle").result()
	g.Expect(misspelt.code).To(Equal(2))
	g.Expect(misspelt.err).To(MatchRegexp(`(?s)^error: unknown command "cancle" for "kubectl reprise"\n.*cancel\n`))
}

func TestANameThatIsInAnotherNamespaceIsFoundThere(t *testing.T) {
	here, there := newWorld(t), newWorld(t)
	name := "only-" + there.ns
	there.create(jobRun(name, httpWork("http://127.0.0.1:1/", 0)))
	r := here.reprise("cancel", name)
	here.Expect(r.err).To(Equal(fmt.Sprintf("error: there is no JobRun %q in namespace %q\nthere is one in namespace %s: add --namespace\n", name, here.ns, there.ns)))
	here.Expect(here.Get(t.Context(), client.ObjectKey{Namespace: there.ns, Name: name}, &batchv1alpha1.JobRun{})).To(Succeed())
}
