// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

const (
	namespace = "reprise-system"
	kinds     = "customresourcedefinitions.apiextensions.k8s.io"
	// kindsWait bounds how long the API server makes or removes kinds. It is long because the machine may be busy.
	kindsWait = 4 * time.Minute
)

// place makes the namespace as the documents say, for as long as the test runs, and takes the kinds away at the end.
func place(t *testing.T, namespaces ...string) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.Background()
		for _, args := range [][]string{
			{"delete", kinds, "-l", "app.kubernetes.io/name=reprise", "--ignore-not-found"},
			append([]string{"delete", "namespace", "--ignore-not-found"}, namespaces...),
			{"delete", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=reprise", "--ignore-not-found"},
		} {
			if out, err := plane.Kubectl(ctx, args...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	})
	for _, name := range namespaces {
		kubectl(t, "", "create", "namespace", name)
		kubectl(t, "", "label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	}
}

// helmed runs Helm in a namespace and returns what it says, or fails the test.
func helmed(t *testing.T, namespace string, args ...string) string {
	t.Helper()
	out, err := helm(t, append(args, "--namespace", namespace)...).CombinedOutput()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// newer copies the chart as its next version would be: a kind has a field more, and the manager another image.
func newer(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), chart)
	g.Expect(os.CopyFS(dir, os.DirFS(chart))).To(Succeed())
	edit := func(file, before, after string) {
		path := filepath.Join(dir, file)
		text, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(ContainSubstring(before))
		g.Expect(os.WriteFile(path, []byte(strings.Replace(string(text), before, after, 1)), 0o600)).To(Succeed())
	}
	edit("Chart.yaml", "\nversion: 0", "\nversion: 9")
	edit("Chart.yaml", "\nappVersion: v0", "\nappVersion: v9")
	edit("templates/crds/batch.reprise.dev_jobqueues.yaml",
		"          spec:\n", "          spec:\n            x-kubernetes-preserve-unknown-fields: true\n")
	return dir
}

// A person's objects: one of each kind.
const objects = `
apiVersion: batch.reprise.dev/v1alpha1
kind: JobQueue
metadata: {name: mine}
spec: {concurrency: {limit: 3}}
---
apiVersion: batch.reprise.dev/v1alpha1
kind: JobRun
metadata: {name: mine}
spec: {queue: mine, work: {http: {url: "https://example.com"}}}
---
apiVersion: batch.reprise.dev/v1alpha1
kind: ScheduledJob
metadata: {name: mine}
spec: {schedule: "0 6 * * *", runTemplate: {queue: mine, work: {http: {url: "https://example.com"}}}}
---
apiVersion: batch.reprise.dev/v1alpha1
kind: JobGroup
metadata: {name: mine}
spec: {members: [{name: first, runTemplate: {queue: mine, work: {http: {url: "https://example.com"}}}}]}
---
apiVersion: batch.reprise.dev/v1alpha1
kind: DirectReservation
metadata: {name: mine}
spec: {queue: mine, holderIdentity: me}
---
apiVersion: batch.reprise.dev/v1alpha1
kind: QueueLedger
metadata: {name: mine}
spec: {epoch: "1.1"}
`

// use makes objects of every kind and returns their UIDs.
func use(t *testing.T, namespace string) string {
	t.Helper()
	kubectl(t, "", "wait", "--for=condition=Established", "--timeout="+kindsWait.String(), kinds, "-l", "app.kubernetes.io/name=reprise")
	// What the API server serves follows what it says of itself.
	NewWithT(t).Eventually(func() string {
		cmd := plane.Kubectl(t.Context(), "apply", "--namespace", namespace, "-f", "-")
		cmd.Stdin = strings.NewReader(objects)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}).WithTimeout(kindsWait).WithPolling(time.Second).ShouldNot(ContainSubstring("rror"))
	return identities(t, namespace)
}

// identities returns the name and UID of every object of ours. It asks for whole lists, for which the API server's store of a kind
// must be ready; a page of a list comes from etcd until then.
func identities(t *testing.T, namespace string) string {
	t.Helper()
	return kubectl(t, "", "get", "jobqueues,jobruns,scheduledjobs,jobgroups,directreservations,queueledgers", "--namespace", namespace,
		"--chunk-size=0", "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.uid} {.metadata.deletionTimestamp}{"\n"}{end}`)
}

func TestAnUpgradeChangesTheKindsAndAnUninstallLeavesThemAndEveryObject(t *testing.T) {
	g := NewWithT(t)
	place(t, namespace)
	said := helmed(t, namespace, "install", "reprise", chart)
	g.Expect(said).To(ContainSubstring("STATUS: deployed"))
	stored := len(kubectl(t, "", "get", "secret", "sh.helm.release.v1.reprise.v1", "-n", namespace, "-o", "jsonpath={.data.release}")) * 3 / 4
	t.Logf("the release is stored in %d KiB", stored/1024)
	g.Expect(stored).To(BeNumerically("<", 768*1024), "a Secret may have 1 MiB, and the kinds grow")
	mine := use(t, namespace)
	g.Expect(strings.Count(mine, "/mine=")).To(Equal(6), mine)
	before := kubectl(t, "", "get", kinds, "jobqueues.batch.reprise.dev", "-o", "jsonpath={.metadata.uid}")

	helmed(t, namespace, "upgrade", "reprise", newer(t))
	after := kubectl(t, "", "get", kinds, "jobqueues.batch.reprise.dev", "-o",
		`jsonpath={.metadata.uid} {.spec.versions[0].schema.openAPIV3Schema.properties.spec.x-kubernetes-preserve-unknown-fields}`)
	g.Expect(after).To(Equal(before+" true"), "the kind is the same, and changed")
	g.Expect(identities(t, namespace)).To(Equal(mine))
	image := kubectl(t, "", "get", "deployment", "reprise-manager", "-n", namespace, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	g.Expect(image).To(HavePrefix("reprise/manager:v9."))

	helmed(t, namespace, "rollback", "reprise", "1")
	g.Expect(kubectl(t, "", "get", kinds, "jobqueues.batch.reprise.dev", "-o",
		`jsonpath={.metadata.uid}{.spec.versions[0].schema.openAPIV3Schema.properties.spec.x-kubernetes-preserve-unknown-fields}`)).To(Equal(before))

	said = helmed(t, namespace, "uninstall", "reprise")
	g.Expect(said).To(ContainSubstring("jobruns.batch.reprise.dev"), "it says what it leaves")
	g.Expect(identities(t, namespace)).To(Equal(mine))
	g.Expect(leftovers(t)).To(BeEmpty())

	helmed(t, namespace, "install", "reprise", chart)
	g.Expect(identities(t, namespace)).To(Equal(mine))
	helmed(t, namespace, "uninstall", "reprise")
}

// leftovers returns what has the chart's label, the kinds apart.
func leftovers(t *testing.T) string {
	t.Helper()
	return kubectl(t, "", "get", "-A", "-l", "app.kubernetes.io/name=reprise", "--ignore-not-found", "-o", "name",
		"deployments,services,serviceaccounts,poddisruptionbudgets,networkpolicies,roles,rolebindings,clusterroles,clusterrolebindings")
}

func TestAnUninstallTakesTheKindsOnlyIfToldSo(t *testing.T) {
	g := NewWithT(t)
	place(t, namespace)
	helmed(t, namespace, "install", "reprise", chart, "--set=crds.keep=false")
	// The API server lists the objects of a kind that goes. If that is the first time that somebody lists it, its store is not ready; the
	// second try may lose against what the first one noted in the kind, and the third comes up to ten minutes later, with a resync.
	use(t, namespace)
	helmed(t, namespace, "uninstall", "reprise")
	g.Eventually(kubectl).WithArguments(t, "", "get", kinds, "-o", "name").WithTimeout(kindsWait).ShouldNot(ContainSubstring("reprise"))
}

func TestWhatKustomizeInstalledCanBeTakenOver(t *testing.T) {
	g := NewWithT(t)
	place(t, namespace)
	config := overlay(t, "resources: [CONFIG/default]\npatches:\n- {target: {kind: Namespace}, patch: \"{$patch: delete, apiVersion: v1, kind: Namespace, metadata: {name: x}}\"}")
	kubectl(t, "", "apply", "-k", config)
	mine := use(t, namespace)
	deployment := kubectl(t, "", "get", "deployment", "reprise-manager", "-n", namespace, "-o", "jsonpath={.metadata.uid}")

	out, err := helm(t, "install", "reprise", chart, "--namespace", namespace).CombinedOutput()
	g.Expect(err).To(HaveOccurred(), "not unasked")
	g.Expect(string(out)).To(ContainSubstring("invalid ownership metadata"))
	helmed(t, namespace, "install", "reprise", chart, "--take-ownership", "--force-conflicts")
	g.Expect(identities(t, namespace)).To(Equal(mine))
	g.Expect(kubectl(t, "", "get", "deployment", "reprise-manager", "-n", namespace, "-o", "jsonpath={.metadata.uid}")).To(Equal(deployment))
	helmed(t, namespace, "uninstall", "reprise")
	g.Expect(leftovers(t)).To(BeEmpty())
	g.Expect(identities(t, namespace)).To(Equal(mine))
}

// Two teams, each with a manager of their own, and somebody who administers the cluster.
func TestReleasesForSomeNamespacesLiveSideBySide(t *testing.T) {
	g := NewWithT(t)
	place(t, "team-a", "team-b", "team-c", "operators")
	scoped := []string{"--set=crds.install=false", "--set=rbac.userRoles=false"}
	helmed(t, "team-a", "install", "reprise", chart, "--set=namespaces={team-a}")
	helmed(t, "operators", append([]string{"install", "reprise", chart, "--set=namespaces={team-b,team-c}"}, scoped...)...)
	g.Expect(kubectl(t, "", "get", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=reprise", "-o", "name")).To(
		Equal("clusterrole.rbac.authorization.k8s.io/reprise-user-admin\nclusterrole.rbac.authorization.k8s.io/reprise-user-editor\n"+
			"clusterrole.rbac.authorization.k8s.io/reprise-user-viewer\n"), "those of users alone")
	may := func(account, verb, resource, in string) bool {
		out, err := plane.Kubectl(t.Context(), "auth", "can-i", verb, resource, "-n", in, "--as=system:serviceaccount:"+account).Output()
		return err == nil && strings.TrimSpace(string(out)) == "yes"
	}
	g.Expect(may("team-a:reprise-manager", "list", "jobruns.batch.reprise.dev", "team-a")).To(BeTrue())
	g.Expect(may("team-a:reprise-manager", "list", "jobruns.batch.reprise.dev", "team-b")).To(BeFalse())
	g.Expect(may("operators:reprise-manager", "create", "jobs.batch", "team-c")).To(BeTrue())
	g.Expect(may("operators:reprise-manager", "get", "secrets", "team-a")).To(BeFalse())
	g.Expect(may("operators:reprise-manager", "get", "pods", "operators")).To(BeTrue(), "those of earlier managers")
	g.Expect(may("operators:reprise-manager", "get", "secrets", "operators")).To(BeFalse())

	mine := use(t, "team-a") + use(t, "team-c")
	helmed(t, "operators", "uninstall", "reprise")
	g.Expect(identities(t, "team-a") + identities(t, "team-c")).To(Equal(mine))
	helmed(t, "team-a", "uninstall", "reprise")
	g.Expect(identities(t, "team-a") + identities(t, "team-c")).To(Equal(mine))
}

func TestTheAPIServerAcceptsEverythingThatValuesCanMake(t *testing.T) {
	g := NewWithT(t)
	place(t, "everything", "other")
	all := ""
	for key, object := range rendered(t, "reprise", "everything", "--values", everything) {
		text, err := yaml.Marshal(object)
		g.Expect(err).NotTo(HaveOccurred(), key)
		all += "---\n" + string(text)
	}
	g.Expect(kubectl(t, all, "apply", "--dry-run=server", "--validate=strict", "-f", "-")).NotTo(ContainSubstring("Warning"))
}
