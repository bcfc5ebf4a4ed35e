// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// door is what all fronts and their one client share.
var door struct {
	certs string // the directory of their certificate
	token string // of a user who may make direct requests anywhere
	http  *http.Client
}

func prepareDoor(ctx context.Context) error {
	pool, err := certificate()
	if err != nil {
		return fmt.Errorf("a certificate: %w", err)
	}
	door.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	meta := metav1.ObjectMeta{Name: "direct", Namespace: metav1.NamespaceDefault}
	user := &corev1.ServiceAccount{ObjectMeta: meta}
	if err := seen.client.Create(ctx, user); err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "direct"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{batchv1alpha1.GroupVersion.Group}, Resources: []string{"directreservations"}, Verbs: []string{"create"}},
	}}
	if err := seen.client.Create(ctx, role); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "direct"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "direct"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
	}
	if err := seen.client.Create(ctx, binding); err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"reprise"}}}
	if err := seen.client.SubResource("token").Create(ctx, user, request); err != nil {
		return err
	}
	door.token = request.Status.Token
	return nil
}

// certificate makes one for loopback, and returns who trusts it.
func certificate() (*x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if door.certs, err = os.MkdirTemp("", "crash-door-"); err != nil {
		return nil, err
	}
	shown := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(filepath.Join(door.certs, "tls.crt"), shown, 0o600); err != nil {
		return nil, err
	}
	secretPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	if err := os.WriteFile(filepath.Join(door.certs, "tls.key"), secretPEM, 0o600); err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(shown)
	return pool, nil
}

// reserveAddress returns an address on loopback that nobody else is given, and that somebody who asks for it can listen on:
// it is bound, by a socket that shares it with a listener.
func reserveAddress(h *history) string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	h.must(err, "a socket")
	context.AfterFunc(h.ctx, func() { _ = syscall.Close(fd) })
	h.must(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), "sharing an address")
	h.must(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), "an address")
	name, err := syscall.Getsockname(fd)
	h.must(err, "the address")
	return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}).String()
}

// ask makes a direct request of that name to the queue, again at whichever front there is, until one is answered by the
// upstream. It returns how often the upstream was asked without the answer coming back whole.
func (h *history) ask(queue, name string) {
	for n := 1; ; n++ {
		path := fmt.Sprintf("/v1/namespaces/%s/queues/%s/direct/%s-%d", h.ns, queue, name, n)
		r, err := http.NewRequestWithContext(h.ctx, http.MethodGet, "https://"+h.last().door+path, nil)
		h.must(err, "a request")
		r.Header.Set("Authorization", "Bearer "+door.token)
		if h.asked(r, fmt.Sprintf("/%s/direct/%s-%d", h.ns, name, n)) {
			return
		}
		if h.ctx.Err() != nil {
			h.giveUp("direct request %s is not served", name)
		}
		h.pass(100 * time.Millisecond)
	}
}

func (h *history) asked(r *http.Request, upstreamPath string) bool {
	response, err := door.http.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	h.log.serves(upstreamPath, response.Header.Get("Reprise-Reservation"))
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}
