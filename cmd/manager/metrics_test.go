// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scrape reads metrics over TLS with a bearer token, "" for none, and returns the status code and what was answered.
func (p *process) scrape(token string) (int, string) {
	p.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the certificate is its own
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "https://"+p.metrics+"/metrics", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// token returns a bearer token of a service account, which it makes.
func (w *world) token(account string) string {
	w.t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: account}}
	w.create(sa)
	request := &authenticationv1.TokenRequest{}
	w.Expect(w.SubResource("token").Create(w.t.Context(), sa, request)).To(Succeed())
	return request.Status.Token
}

// mayScrape gives a service account the right to read metrics.
func (w *world) mayScrape(account string) {
	w.t.Helper()
	name := metav1.ObjectMeta{Name: "scrape-" + w.ns}
	role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.ns, Name: account}},
	}
	w.create(role, binding)
	w.t.Cleanup(func() {
		_ = w.Delete(context.Background(), binding)
		_ = w.Delete(context.Background(), role)
	})
}

func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.leads(w.run("--leader-elect=false"))
	allowed, other := w.token("allowed"), w.token("other")
	w.mayScrape("allowed")

	w.Eventually(func() int {
		code, _ := p.scrape("")
		return code
	}).Should(Equal(http.StatusUnauthorized))
	code, body := p.scrape("made-up")
	w.Expect(code).To(BeNumerically(">=", http.StatusBadRequest))
	w.Expect(body).NotTo(ContainSubstring("controller_runtime"))
	code, _ = p.scrape(other)
	w.Expect(code).To(Equal(http.StatusForbidden))
	w.Eventually(func() string {
		_, body := p.scrape(allowed)
		return body
	}).Should(ContainSubstring(`controller_runtime_reconcile_total{controller="jobrun"`))
}

func TestMetricsAreForEverybodyIfTheFlagSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.leads(w.run("--leader-elect=false", "--metrics-secure=false"))
	w.Eventually(func() (string, error) {
		response, err := http.Get("http://" + p.metrics + "/metrics")
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(response.Body)
		return string(body), errors.Join(err, response.Body.Close())
	}).Should(ContainSubstring("controller_runtime_reconcile_total"))
}
