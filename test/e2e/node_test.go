// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/realnode"
)

// The node is a tool of these tests: what they believe of it is tested first.

func TestThePodsOfTheNodeCanBeReachedAndCutOff(t *testing.T) {
	requireNode(t)
	w := newEmptyWorld(t)
	gateway := gatewayOf(w)
	pod := w.plainPod("serves", "serve", ":8080")
	w.Expect(gatewayOf(w)).To(Equal(gateway), "pods call a gateway that changes with the pods there are")
	call := func() error {
		request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "http://"+pod.Status.PodIP+":8080/", nil)
		w.Expect(err).NotTo(HaveOccurred())
		response, err := (&http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	w.Eventually(call).Should(Succeed())
	w.Expect(node.CutPod(w.ctx, string(pod.UID))).To(Succeed())
	w.Expect(call()).NotTo(Succeed(), "the pod answers though it is cut off")
	w.Expect(node.RestorePod(w.ctx, string(pod.UID))).To(Succeed())
	w.Eventually(call).Should(Succeed())
	w.Expect(node.CutPod(w.ctx, "no-such-pod")).NotTo(Succeed())
}

// gatewayOf returns the hardware address of what has the node's address.
func gatewayOf(w *world) string {
	links, err := net.Interfaces()
	w.Expect(err).NotTo(HaveOccurred())
	for _, link := range links {
		addresses, err := link.Addrs()
		w.Expect(err).NotTo(HaveOccurred())
		for _, address := range addresses {
			if strings.HasPrefix(address.String(), realnode.NodeIP+"/") {
				return link.HardwareAddr.String()
			}
		}
	}
	w.t.Fatalf("nothing has the address %s", realnode.NodeIP)
	return ""
}

func TestTheJournalHasALifeFromItsStartToItsEnd(t *testing.T) {
	requireNode(t)
	w := newEmptyWorld(t)
	before := time.Now()
	pod := w.plainPod("ends", "-sleep", "1s", "-exit", "3")
	var life realnode.Container
	w.Eventually(func() time.Time {
		for _, c := range node.Follow().Containers() {
			if c.PodUID == string(pod.UID) {
				life = c
			}
		}
		return life.Finished
	}).ShouldNot(BeZero())
	w.Expect(node.Follow().Err()).NotTo(HaveOccurred())
	w.Expect(life.PodNamespace).To(Equal(w.ns))
	w.Expect(life.PodName).To(Equal("ends"))
	w.Expect(life.ExitCode).To(HaveValue(Equal(3)))
	for _, times := range [][2]time.Time{
		{before, life.Created}, {life.Created, life.Started}, {life.Started, life.Finished}, {life.Finished, time.Now()},
		{life.Created.Add(time.Second), life.Finished}, // the runtime says late that it has started
	} {
		w.Expect(times[0]).To(BeTemporally("<", times[1]), "the life is %+v", life)
	}
}

// plainPod makes a pod of the work image and waits until it runs.
func (w *world) plainPod(name string, args ...string) *corev1.Pod {
	w.t.Helper()
	template := workPod()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Spec: template.Spec}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Containers[0].Args = args
	w.create(pod)
	w.Eventually(func() corev1.PodPhase {
		w.Expect(w.Get(w.ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		return pod.Status.Phase
	}).ShouldNot(Equal(corev1.PodPending))
	return pod
}

// A second node inside the first is killed with all that a node leaves: processes that nobody waits for, mounts, devices, control
// groups with processes in them. (It sees no processes but those of the node that it is in.)
func TestANodeThatIsKilledIsGoneForTheNextOfItsName(t *testing.T) {
	requireNode(t)
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	realnodeCommand, err := os.Readlink("/proc/1/exe") // the first process of the node that we are in
	g.Expect(err).NotTo(HaveOccurred())
	name := "inner-" + strconv.Itoa(os.Getpid())
	dir := t.TempDir()
	mark := strconv.Itoa(100000 + os.Getpid())
	enter := func(script string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), realnodeCommand, "enter", "-name", name, "-dir", filepath.Join(dir, "node"), "--", "sh", "-c", script)
		cmd.Stderr = os.Stderr
		return cmd
	}
	mounts, links := mountsBesidesPods(t), linksBesidesPods(t)

	killed := enter(fmt.Sprintf(`
		mount -t tmpfs left-over /mnt
		ip link add left-over type bridge
		setsid sleep %s &
		for procs in /sys/fs/cgroup/*/reprise-%s/cgroup.procs /sys/fs/cgroup/reprise-%s/cgroup.procs; do
			test -e $procs && mkdir -p $(dirname $procs)/inner && echo $! > $(dirname $procs)/inner/cgroup.procs
		done 2>/dev/null # a group without processors takes none
		echo ready; sleep %s`, mark, name, name, mark))
	out, err := killed.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(killed.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line).To(Equal("ready\n"))
	g.Expect(commandsWith(t, mark)).NotTo(BeEmpty())
	g.Expect(killed.Process.Kill()).To(Succeed())
	_ = killed.Wait() // it was killed, and says so

	said, err := enter(`echo "it is $(basename $REPRISE_NODE_DIR)"; ip -brief link show reprise0 >/dev/null`).Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(said)).To(Equal("it is node\n"))
	g.Eventually(func() []string { return commandsWith(t, mark) }).Should(BeEmpty(), "processes are left")
	g.Expect(mountsBesidesPods(t)).To(Equal(mounts))
	g.Expect(linksBesidesPods(t)).To(Equal(links))
	for _, pattern := range []string{"/sys/fs/cgroup/reprise-" + name, "/sys/fs/cgroup/*/reprise-" + name, filepath.Join(dir, "node")} {
		g.Expect(filepath.Glob(pattern)).To(BeEmpty())
	}

	failed := enter("exit 7")
	g.Expect(failed.Run()).NotTo(Succeed())
	g.Expect(failed.ProcessState.ExitCode()).To(Equal(7), "the command's code is passed on")
	g.Expect(filepath.Join(dir, "node", "logs")).To(BeADirectory(), "the logs of a failure are kept")
}

// mountsBesidesPods returns what is mounted in the node that we are in, a line each, without what its kubelet and its container
// runtime mount for pods: they tidy up after the pods of earlier tests whenever they like.
func mountsBesidesPods(t *testing.T) (found []string) {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		place := strings.Fields(line)[4]
		if !slices.ContainsFunc([]string{"/run/reprise/", "/run/containerd/", "/run/netns/"}, func(dir string) bool { return strings.HasPrefix(place, dir) }) {
			found = append(found, line)
		}
	}
	return found
}

// linksBesidesPods returns the number and name of every link of the node that we are in, without the pods', which go with them.
func linksBesidesPods(t *testing.T) (found []string) {
	t.Helper()
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if !strings.HasPrefix(link.Name, "veth") {
			found = append(found, fmt.Sprint(link.Index, link.Name))
		}
	}
	return found
}

// commandsWith returns the command lines of the processes that have a word in it.
func commandsWith(t *testing.T, word string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), "\x00"+word) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
