// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var _ = apart("A manager is killed in the middle of a call: the end of its container is seen, and the call is made again", func(t *testing.T) {
	i := install(t, 2)
	i.queue("default", 1)
	server := i.serve("server")
	run := i.jobRun("call", retries(1))
	// Where the end of the process cannot be seen, the slot stays held for as long as the call may take: 10 minutes.
	run.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: server + "/work?sleep=5m"}}
	i.create(run)
	i.Eventually(i.calls(server)).Should(HaveLen(1))

	first, holder := i.leading(), i.seen.leader().Holder
	killed := i.kill(first)
	// A process in the same pod would know by itself that the one before it has ended; the other manager has to look at the pod.
	second := i.replacing(first)
	i.signal(second, syscall.SIGSTOP)
	i.succeeded(holder)
	i.signal(second, syscall.SIGCONT)
	failed := i.eventually("call", batchv1alpha1.JobRunFailed)
	i.Expect(failed.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
	i.Eventually(i.calls(server)).Should(HaveLen(2))
	made := i.calls(server)()
	cut, again := made[0], made[1]
	i.Expect(cut.Ended).NotTo(BeNil())
	i.Expect(again.Started).To(BeTemporally(">", *cut.Ended))
	i.Expect(again.Key).To(Equal(cut.Key))
	i.Expect([]string{cut.Run, cut.Attempt}).To(Equal([]string{i.ns + "/call", "0"}))
	i.Expect([]string{again.Run, again.Attempt}).To(Equal([]string{i.ns + "/call-r1", "1"}))
	t.Logf("the call was made again %s after the manager was killed", again.Started.Sub(killed).Round(10*time.Millisecond))
	i.cancelRun("call-r1")
	i.keepsPromises()
	i.Expect(i.calls(server)()).To(HaveLen(2))
})

var _ = apart("A manager is asked to end in the middle of a call: the call may end first, and another manager leads then", func(t *testing.T) {
	i := install(t, 2)
	i.queue("default", 1)
	server := i.serve("server")
	for _, name := range []string{"call", "next"} {
		run := i.jobRun(name)
		run.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: server + "/work?sleep=8s"}}
		i.create(run)
	}
	i.Eventually(i.calls(server)).Should(HaveLen(1))
	holder := i.seen.leader().Holder
	i.kubectl("delete", "pod", i.leader(), "--wait=false")
	h := i.succeeded(holder)
	i.leaderless("gave the lease up", h.Taken.Sub(h.Released), afterRelease)
	i.settled("next", batchv1alpha1.ConditionComplete)
	i.keepsPromises()
	made := i.calls(server)()
	i.Expect(made).To(HaveLen(2), "each call was made once")
	i.Expect(h.Released).To(BeTemporally(">", *made[0].Ended))
	i.Expect(i.get("call").Status.Incarnation.ID).To(Equal(holder))
	i.Expect(i.get("next").Status.Incarnation.ID).To(Equal(h.To))
})

// madeCall is what the server of the test image tells of a call.
type madeCall struct {
	Key, Run, Attempt string
	Started           time.Time
	Ended             *time.Time
}

// serve starts a server that remembers its calls, and returns its URL.
func (i *installation) serve(name string) string {
	i.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: i.ns, Name: name}, Spec: workPod().Spec}
	pod.Spec.Containers[0].Args = []string{"-serve=:8080"}
	i.create(pod)
	i.Eventually(func() string {
		i.Expect(i.Get(i.ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		return pod.Status.PodIP
	}).ShouldNot(BeEmpty())
	url := "http://" + pod.Status.PodIP + ":8080"
	i.Eventually(i.calls(url)).Should(BeEmpty(), "the server answers")
	return url
}

// calls reads which calls a server has had, for Eventually. A server that does not answer is told as a call that never was.
func (i *installation) calls(server string) func() []madeCall {
	return func() []madeCall {
		ctx, cancel := context.WithTimeout(i.ctx, 5*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/calls", nil)
		i.Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return []madeCall{{Run: err.Error()}}
		}
		defer func() { _ = response.Body.Close() }()
		made := []madeCall{}
		if err := json.NewDecoder(response.Body).Decode(&made); err != nil {
			return []madeCall{{Run: err.Error()}}
		}
		return made
	}
}
