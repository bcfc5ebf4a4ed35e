// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// audience is what the manager of the suite wants tokens to be meant for.
const audience = "reprise"

// upstream starts a server that answers every call, and returns its URL. It can be reached where pods can.
func (w *world) upstream() string {
	w.t.Helper()
	requireNode(w.t)
	pod := &corev1.Pod{ObjectMeta: w.named("upstream"), Spec: workPod().Spec}
	pod.Spec.Containers[0].Args = []string{"-serve=:8080"}
	w.create(pod)
	w.Eventually(func() string {
		w.Expect(w.Get(w.ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		return pod.Status.PodIP
	}).ShouldNot(BeEmpty())
	url := "http://" + pod.Status.PodIP + ":8080"
	w.Eventually(func() error { _, err := upstreamCalls(url); return err }).Should(Succeed(), "the server answers")
	return url
}

// upstreamCalls returns the paths that were called.
func upstreamCalls(url string) ([]string, error) {
	response, err := http.Get(url + "/calls")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var calls []struct{ Path string }
	if err := json.NewDecoder(response.Body).Decode(&calls); err != nil {
		return nil, err
	}
	var paths []string
	for _, c := range calls {
		paths = append(paths, c.Path)
	}
	return paths, nil
}

// token returns the token, meant for an audience, of a service account that may edit the namespace. It is made if need be.
func (w *world) token(account, audience string) string {
	w.t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: w.named(account)}
	if err := w.Get(w.ctx, client.ObjectKeyFromObject(sa), sa); err != nil {
		w.create(sa)
		w.mayEdit(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: account}, "system:serviceaccount:"+w.ns+":"+account)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	w.Expect(w.SubResource("token").Create(w.ctx, sa, request)).To(Succeed())
	return request.Status.Token
}

// front returns the URL of direct access at one of the suite's managers.
func (w *world) front() string {
	w.t.Helper()
	requireNode(w.t)
	pods := &corev1.PodList{}
	w.Expect(w.List(w.ctx, pods, client.InNamespace(managerNamespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"})).To(Succeed())
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			return "https://" + pod.Status.PodIP + ":8444"
		}
	}
	w.t.Fatal("there is no manager")
	return ""
}

// post sends a request with a bearer token, "" for none, and further headers, and returns the status code and what was answered.
func (w *world) post(url, token string, headers ...string) (int, string) {
	w.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the certificate was made at the start
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(w.ctx, http.MethodPost, url, nil)
	w.Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := transport.RoundTrip(request)
	w.Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(response.Body)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode, string(body)
}

func TestATenantReachesTheQueuesAndTheRunsOfItsNamespaceAloneOverHTTP(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	upstream, front := w.upstream(), w.front()
	for _, each := range []*world{w, other} {
		each.queue("chat", 1, func(q *batchv1alpha1.JobQueue) {
			q.Spec.Direct = &batchv1alpha1.QueueDirect{Upstream: upstream + "/" + each.ns}
		})
		each.create(each.jobRun("failed", does("exit", "3")))
		each.settled("failed", batchv1alpha1.ConditionFailed)
	}
	good, elsewhere := w.token("client", audience), w.token("client", "https://elsewhere.example.com")
	queue := func(of *world) string { return front + "/v1/namespaces/" + of.ns + "/queues/chat/direct/talk" }
	retry := func(of *world) string { return front + "/v1/namespaces/" + of.ns + "/jobruns/failed/retry" }

	for name, c := range map[string]struct {
		url, token string
		code       int
	}{
		"without a token":                     {queue(w), "", http.StatusUnauthorized},
		"with a token for something else":     {queue(w), elsewhere, http.StatusUnauthorized},
		"to a queue of another namespace":     {queue(other), good, http.StatusForbidden},
		"to a run of another namespace":       {retry(other), good, http.StatusForbidden},
		"to a run, with the token of nothing": {retry(w), elsewhere, http.StatusUnauthorized},
	} {
		code, body := w.post(c.url, c.token)
		w.Expect(code).To(Equal(c.code), "%s: %s", name, body)
	}
	for _, each := range []*world{w, other} {
		reservations, runs := &batchv1alpha1.DirectReservationList{}, &batchv1alpha1.JobRunList{}
		each.Expect(each.List(each.ctx, reservations, client.InNamespace(each.ns))).To(Succeed())
		each.Expect(each.List(each.ctx, runs, client.InNamespace(each.ns))).To(Succeed())
		each.Expect(reservations.Items).To(BeEmpty())
		each.Expect(runs.Items).To(HaveLen(1))
	}

	// Long enough that the front has to renew its reservation meanwhile.
	began := time.Now()
	code, body := w.post(queue(w)+"?sleep=7s", good, "Idempotency-Key", "once")
	w.Expect(code).To(Equal(http.StatusOK), body)
	w.Expect(time.Since(began)).To(BeNumerically(">=", 7*time.Second))
	code, body = w.post(queue(w)+"?sleep=7s", good, "Idempotency-Key", "once")
	w.Expect(code).To(Equal(http.StatusConflict), body)
	code, body = w.post(retry(w), good)
	w.Expect(code).To(Equal(http.StatusCreated), body)
	var made struct{ Name string }
	w.Expect(json.Unmarshal([]byte(body), &made)).To(Succeed())
	w.eventually(made.Name, batchv1alpha1.JobRunFailed)
	paths, err := upstreamCalls(upstream)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(paths).To(ConsistOf("/"+w.ns+"/talk"), "nothing was passed on for the others")
}
