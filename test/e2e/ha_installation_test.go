// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"reprise.dev/reprise/internal/realnode"
	"reprise.dev/reprise/test/e2e/judge"
)

// leaseDuration is that of the managers of these tests, which is the default.
const leaseDuration = 15 * time.Second

// installation is a namespace with managers of its own, which look after that namespace alone (config/namespaced).
type installation struct {
	*world
	node    *realnode.Node
	seen    *record
	overlay string
}

// install installs so many managers with further flags, and returns when one of them leads.
func install(t *testing.T, replicas int, flags ...string) *installation {
	t.Helper()
	n := requireNode(t)
	i := &installation{world: newBareWorld(t), node: n}
	i.seen = recordWorld(i.world)
	go i.keepLogs()
	i.overlay = i.writeOverlay(replicas, flags)
	t.Cleanup(i.remove)
	i.kubectl("apply", "-k", i.overlay)
	i.rolledOut()
	i.Eventually(i.leader).ShouldNot(BeEmpty(), "a manager leads")
	return i
}

// writeOverlay writes a kustomization for the namespace.
func (i *installation) writeOverlay(replicas int, flags []string) string {
	i.t.Helper()
	dir := filepath.Join(root(), "bin", "e2e", "overlay-"+i.ns)
	i.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	name, tag, _ := strings.Cut(managerImage, ":")
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
resources:
- ../../../config/namespaced
images:
- name: reprise/manager
  newName: %s
  newTag: %q
patches:
- target: {kind: Deployment}
  patch: |-
    - {op: replace, path: /spec/replicas, value: %d}
`, i.ns, name, tag, replicas)
	for _, flag := range flags {
		fmt.Fprintf(&b, "    - {op: add, path: /spec/template/spec/containers/0/args/-, value: %q}\n", flag)
	}
	i.Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(b.String()), 0o644)).To(Succeed())
	return dir
}

// remove takes the managers away and returns when the last of them has ended: they must not meet those of other tests.
func (i *installation) remove() {
	i.kubectl("delete", "-k", i.overlay, "--ignore-not-found", "--wait=false")
	i.Eventually(i.managers).Should(BeEmpty(), "managers that have not ended")
	i.Expect(os.RemoveAll(i.overlay)).To(Succeed())
}

// keepLogs keeps the logs of managers whose pods are gone, which would go with them, among those of the node.
func (i *installation) keepLogs() {
	into := filepath.Join(i.node.Logs(), "gone", i.ns)
	if err := os.MkdirAll(into, 0o755); err != nil {
		i.t.Errorf("the logs of managers cannot be kept: %v", err)
		return
	}
	pods := filepath.Join(i.node.Logs(), "pods")
	for i.ctx.Err() == nil {
		changed := i.node.Follow().Changed()
		logs, _ := filepath.Glob(filepath.Join(pods, i.ns+"_*", "manager", "*.log")) // the pattern is a good one
		for _, log := range logs {
			relative, _ := filepath.Rel(pods, log)
			_ = os.Link(log, filepath.Join(into, strings.ReplaceAll(relative, "/", "_"))) // it may be there already
		}
		select {
		case <-changed:
		case <-i.ctx.Done():
		}
	}
}

// rolledOut waits until the managers are those of the Deployment.
func (i *installation) rolledOut() {
	i.t.Helper()
	i.kubectl("rollout", "status", "deployment/"+managerDeployment, "--timeout="+patience.String())
}

// scale changes the number of managers, and returns when it is that.
func (i *installation) scale(replicas int) {
	i.t.Helper()
	i.kubectl("scale", "deployment/"+managerDeployment, fmt.Sprintf("--replicas=%d", replicas))
	i.Eventually(i.managers).Should(HaveLen(replicas))
}

// containers are those of the namespace, in the order in which they were made.
func (i *installation) containers() []realnode.Container {
	return slices.DeleteFunc(i.node.Follow().Containers(), func(c realnode.Container) bool {
		return c.PodNamespace != i.ns || c.Started.IsZero()
	})
}

// managers are the containers of managers that have not ended.
func (i *installation) managers() []realnode.Container {
	return slices.DeleteFunc(i.containers(), func(c realnode.Container) bool { return c.Name != "manager" || !c.Finished.IsZero() })
}

// leader is the pod of the manager that leads; empty: none does.
func (i *installation) leader() string { return i.seen.leader().Pod() }

// leading is the container of the manager that leads.
func (i *installation) leading() realnode.Container {
	i.t.Helper()
	pod := i.leader()
	i.Expect(pod).NotTo(BeEmpty(), "nobody leads")
	for _, c := range i.managers() {
		if c.PodName == pod {
			return c
		}
	}
	i.t.Fatalf("manager %s leads, and its container has ended", pod)
	return realnode.Container{}
}

// ofRun are the containers of a run.
func (i *installation) ofRun(run string) []realnode.Container {
	pods := map[string]bool{}
	for _, p := range i.podsOf(run) {
		pods[string(p.UID)] = true
	}
	return slices.DeleteFunc(i.containers(), func(c realnode.Container) bool { return !pods[c.PodUID] })
}

// atWork waits until the container of a run is at work, and returns it.
func (i *installation) atWork(run string) realnode.Container {
	i.t.Helper()
	i.working(run)
	all := i.ofRun(run)
	return all[len(all)-1]
}

// signal sends a signal to the process of a container, past Kubernetes.
func (i *installation) signal(c realnode.Container, s syscall.Signal) time.Time {
	i.t.Helper()
	i.Expect(c.PID).To(BeNumerically(">", 1), "the process of container %s", c.ID)
	i.Expect(syscall.Kill(c.PID, s)).To(Succeed())
	return time.Now()
}

// ended waits until a container has ended, and returns how.
func (i *installation) ended(c realnode.Container) realnode.Container {
	i.t.Helper()
	i.Eventually(func() bool {
		for _, now := range i.containers() {
			if now.ID == c.ID {
				c = now
			}
		}
		return !c.Finished.IsZero()
	}).Should(BeTrue(), "container %s of pod %s ends", c.Name, c.PodName)
	return c
}

// kill ends a container without a word.
func (i *installation) kill(c realnode.Container) time.Time {
	i.t.Helper()
	i.signal(c, syscall.SIGKILL)
	return i.ended(c).Finished
}

// replacing waits for the container that takes the place of one that has ended in its pod, and returns it.
func (i *installation) replacing(ended realnode.Container) realnode.Container {
	i.t.Helper()
	var c realnode.Container
	i.Eventually(func() bool {
		for _, c = range i.managers() {
			if c.PodUID == ended.PodUID && c.ID != ended.ID {
				return true
			}
		}
		return false
	}).Should(BeTrue(), "another container of pod %s begins", ended.PodName)
	return c
}

// succeeded waits until another process leads than the one that held the lease, and returns the handover.
func (i *installation) succeeded(holder string) judge.Handover {
	i.t.Helper()
	var h judge.Handover
	i.Eventually(func() bool {
		for _, h = range i.seen.handovers() {
			if h.From == holder {
				return true
			}
		}
		return false
	}).Should(BeTrue(), "another manager leads after %s", holder)
	return h
}

// finish ends work that waits for it (untilFinished) with its own exit code.
func (i *installation) finish(run string) realnode.Container {
	i.t.Helper()
	c := i.atWork(run)
	i.signal(c, syscall.SIGTERM)
	return i.ended(c)
}

// untilFinished is work that goes on until the test ends it by finish, with the exit code.
func untilFinished(exitCode int) runChange {
	return does("-pause", "-on-term=1ns", fmt.Sprintf("-exit=%d", exitCode))
}
