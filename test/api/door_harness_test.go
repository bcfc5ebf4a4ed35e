// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

// door is the HTTP front of a manager, and a client that trusts its certificate.
type door struct {
	*world
	address string
	certs   string
	http    *http.Client
}

// door prepares a front. A manager has it by the option serving.
func (w *world) door() *door {
	w.t.Helper()
	certs, pool := certificate(w.t)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}} // no proxy, and HTTP/1 for the tests' own looks at connections
	w.t.Cleanup(transport.CloseIdleConnections)
	return &door{world: w, address: reserved(w.t), certs: certs, http: &http.Client{Transport: transport}}
}

// serving makes a manager serve at the door.
func (d *door) serving(o *operator.Options) { o.DirectAddress, o.DirectCertDir = d.address, d.certs }

// opens starts a manager with the door and waits until it is open.
func (w *world) opens(change ...func(*operator.Options)) (*door, *manager) {
	w.t.Helper()
	d := w.door()
	m := w.start(append([]func(*operator.Options){d.serving}, change...)...)
	d.opened()
	return d, m
}

// opened waits until the front answers, which it does once it knows every queue that there was before.
func (d *door) opened() {
	d.t.Helper()
	d.Eventually(func() int { return d.send(d.request("", http.MethodGet, "/")).status }).Should(Equal(http.StatusNotFound))
}

// certificate makes one for loopback: the directory that holds it, and who trusts it.
func certificate(t *testing.T) (dir string, pool *x509.CertPool) {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	dir, pool = t.TempDir(), x509.NewCertPool()
	shown := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	g.Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), shown, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)).To(Succeed())
	g.Expect(pool.AppendCertsFromPEM(shown)).To(BeTrue())
	return dir, pool
}

// reserved returns an address on loopback that nobody else is given, and that somebody who asks for it can listen on: it is
// bound, by a socket that shares it with a listener.
func reserved(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = syscall.Close(fd) })
	g.Expect(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)).To(Succeed())
	g.Expect(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})).To(Succeed())
	name, err := syscall.Getsockname(fd)
	g.Expect(err).NotTo(HaveOccurred())
	return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}).String()
}

// audience is what the tokens of clients are meant for.
const audience = "reprise"

// user makes a service account that may create these resources, and returns its name and a token for the audience.
func (w *world) user(audience string, resources ...string) (name, token string) {
	w.t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, GenerateName: "user-"}}
	w.create(sa)
	name = "system:serviceaccount:" + w.ns + ":" + sa.Name
	if len(resources) > 0 {
		meta := metav1.ObjectMeta{Namespace: w.ns, Name: sa.Name}
		w.create(
			&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{batchv1alpha1.GroupVersion.Group}, Resources: resources, Verbs: []string{"create"}},
			}},
			&rbacv1.RoleBinding{
				ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: sa.Name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: sa.Name}},
			},
		)
	}
	for _, resource := range resources { // the API server takes a moment to know
		w.Eventually(func() bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: name, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: w.ns, Verb: "create", Group: batchv1alpha1.GroupVersion.Group, Resource: resource,
			}}}
			return w.Create(w.ctx, review) == nil && review.Status.Allowed
		}).Should(BeTrue())
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	w.Expect(w.SubResource("token").Create(w.ctx, sa, request)).To(Succeed())
	return name, request.Status.Token
}

// client makes a token with which everything is allowed that the front offers.
func (w *world) client() string {
	w.t.Helper()
	_, token := w.user(audience, "directreservations", "jobruns")
	return token
}

// request makes a request that ends with the test. change may set headers.
func (d *door) request(token, method, path string, change ...func(*http.Request)) *http.Request {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, "https://"+d.address+path, nil)
	d.Expect(err).NotTo(HaveOccurred())
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(r)
	}
	return r
}

// direct makes a direct request to a queue.
func (d *door) direct(token, queue, path string, change ...func(*http.Request)) *http.Request {
	d.t.Helper()
	return d.request(token, http.MethodGet, "/v1/namespaces/"+d.ns+"/queues/"+queue+"/direct/"+path, change...)
}

// with sets a header.
func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// until ends a request with a context.
func until(ctx context.Context) func(*http.Request) {
	return func(r *http.Request) { *r = *r.WithContext(ctx) }
}

// standings returns how each reservation of the namespace stands: its phase, its reason, and whether it was ever granted.
func (w *world) standings() []string {
	w.t.Helper()
	all := []string{}
	for _, dr := range w.reservations() {
		all = append(all, fmt.Sprintf("%s %s %t", dr.Status.Phase, dr.Status.Reason, dr.Status.GrantedAt != nil))
	}
	return all
}

// phases returns the phase of each reservation of the namespace.
func (w *world) phases() []batchv1alpha1.DirectReservationPhase {
	w.t.Helper()
	phases := []batchv1alpha1.DirectReservationPhase{}
	for _, dr := range w.reservations() {
		phases = append(phases, dr.Status.Phase)
	}
	return phases
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // why it is not whole
	// of a problem:
	Error, Message, Reservation string
}

// send sends a request and reads the answer to its end.
func (d *door) send(r *http.Request) reply {
	response, err := d.http.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	back := reply{status: response.StatusCode, header: response.Header, body: string(body), err: err}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		_ = json.Unmarshal(body, &back) // then the fields are empty, and the test fails
	}
	return back
}

// sent sends a request in the background.
func (d *door) sent(r *http.Request) <-chan reply {
	replies := make(chan reply, 1)
	go func() { replies <- d.send(r) }()
	return replies
}

// got waits for the reply of a request.
func (d *door) got(replies <-chan reply) reply {
	d.t.Helper()
	var back reply
	d.Eventually(replies).Should(Receive(&back), func() string { return d.story() })
	return back
}

// only waits until the one reservation of the namespace is in the phase.
func (w *world) only(phase batchv1alpha1.DirectReservationPhase) *batchv1alpha1.DirectReservation {
	w.t.Helper()
	w.Eventually(w.phases).Should(ConsistOf(phase), func() string { return w.story() })
	return &w.reservations()[0]
}

// upstream makes a queue with a limit whose upstream is the stage.
func (w *world) upstream(s *stage, limit int32, change ...func(*batchv1alpha1.JobQueue)) *batchv1alpha1.JobQueue {
	w.t.Helper()
	direct := func(q *batchv1alpha1.JobQueue) { q.Spec.Direct = &batchv1alpha1.QueueDirect{Upstream: s.URL} }
	return w.queue("default", limit, append([]func(*batchv1alpha1.JobQueue){direct}, change...)...)
}

// field returns a field of an answer in JSON.
func (r reply) field(name string) string {
	fields := map[string]string{}
	if err := json.Unmarshal([]byte(r.body), &fields); err != nil {
		return err.Error()
	}
	return fields[name]
}
