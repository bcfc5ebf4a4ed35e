// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/egress"
)

const (
	audience = "reprise.test"
	patience = 30 * time.Second
	interval = 5 * time.Millisecond
)

// quick is the timing of most tests: real, but short where something is to run out.
func quick() timing {
	t := defaultTiming
	t.lease = 6 * time.Second
	t.pause = 20 * time.Millisecond
	t.linger = 50 * time.Millisecond
	return t
}

// scene is a namespace with a leader, a queue main whose upstream is under the test's control, and one front.
type scene struct {
	t      *testing.T
	ns     string
	leader *leader
	queue  *batchv1alpha1.JobQueue
	server *httptest.Server
	*door
}

// door is a front that serves, and how to reach it.
type door struct {
	t     *testing.T
	front *Front
	url   string
	http  *http.Client
	end   func() // ends it in good order

	mu    sync.Mutex
	lines []string
}

// set makes a scene in which one slot is free.
func set(t *testing.T, tm timing, upstream http.HandlerFunc, changes ...func(*batchv1alpha1.JobQueue)) *scene {
	t.Helper()
	g := NewWithT(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "direct-"}}
	g.Expect(live.Create(t.Context(), ns)).To(Succeed())
	s := &scene{t: t, ns: ns.Name, leader: lead(t, ns.Name, 1)}
	s.server = httptest.NewServer(upstream)
	t.Cleanup(s.server.Close)
	s.queue = &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "main"}}
	s.queue.Spec.Direct = &batchv1alpha1.QueueDirect{Upstream: s.server.URL + "/base", WaitTimeoutSeconds: ptr.To[int32](20)}
	for _, change := range changes {
		change(s.queue)
	}
	g.Expect(live.Create(t.Context(), s.queue)).To(Succeed())
	g.Eventually(func() error {
		return cached.Get(t.Context(), client.ObjectKeyFromObject(s.queue), &batchv1alpha1.JobQueue{})
	}, patience, interval).Should(Succeed())
	s.door = s.open("front-1", tm, nil)
	return s
}

// open starts a front of that ID over the client, nil: over the usual one.
func (s *scene) open(id string, tm timing, over client.Client) *door {
	s.t.Helper()
	g := NewWithT(s.t)
	if over == nil {
		over = cached
	}
	d := &door{t: s.t}
	f, err := newFront(Options{
		Client: over, Live: live, Informers: caches, Egress: egress.NewClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}).Transport,
		Fit: func(_ *batchv1alpha1.JobQueue, name string, _ []batchv1alpha1.ResourceClaim) (string, string, bool) {
			return batchv1alpha1.ReasonUnknownType, "no such type", name != "unknown"
		},
		Address: "127.0.0.1:0", Audience: audience, ID: id, Clock: clock.RealClock{}, DrainTimeout: 10 * time.Second,
		Log: funcr.New(func(_, line string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.lines = append(d.lines, line)
		}, funcr.Options{}),
	}, tm)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Listen()).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Start(ctx) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // HTTP/1; the certificate is the front's own
	d.front, d.url, d.http = f, "https://"+f.Bound().String(), &http.Client{Transport: transport}
	d.end = sync.OnceFunc(func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
	s.t.Cleanup(func() {
		transport.CloseIdleConnections()
		f.cutAll() // a test that failed leaves requests
		d.end()
	})
	return d
}

// log returns the lines so far.
func (d *door) log() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, "\n")
}

// token makes a token of a new service account of the namespace, which may create the resources there.
func (s *scene) token(audience string, resources ...string) string {
	s.t.Helper()
	g, ctx := NewWithT(s.t), s.t.Context()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, GenerateName: "user-"}}
	g.Expect(live.Create(ctx, sa)).To(Succeed())
	if len(resources) > 0 {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: sa.Name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{batchv1alpha1.GroupVersion.Group}, Resources: resources, Verbs: []string{"create"}},
		}}
		g.Expect(live.Create(ctx, role)).To(Succeed())
		g.Expect(live.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: sa.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: sa.Name}},
		})).To(Succeed())
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	g.Expect(live.SubResource("token").Create(ctx, sa, request)).To(Succeed())
	return request.Status.Token
}

// user makes a token with which reservations may be made, once the API server knows.
func (s *scene) user() string {
	s.t.Helper()
	token := s.token(audience, "directreservations", "jobruns")
	NewWithT(s.t).Eventually(func() int {
		return s.send(s.request(token, http.MethodGet, "/v1/namespaces/"+s.ns+"/queues/nowhere/direct/", nil)).status
	}, patience, interval).Should(Equal(http.StatusNotFound))
	return token
}

// request makes a request with a token.
func (d *door) request(token, method, path string, body io.Reader) *http.Request {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, body)
	if err != nil {
		d.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// direct makes a direct request to the queue main.
func (s *scene) direct(token, method, rest string, body io.Reader) *http.Request {
	s.t.Helper()
	return s.request(token, method, "/v1/namespaces/"+s.ns+"/queues/main/direct"+rest, body)
}

// got is what came back.
type got struct {
	status int
	header http.Header
	body   string
	err    error // it broke off
	// of a problem:
	Error, Message, Reservation string
}

// send sends a request and reads the answer to its end.
func (d *door) send(r *http.Request) got {
	response, err := d.http.Do(r)
	if err != nil {
		return got{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	g := got{status: response.StatusCode, header: response.Header, body: string(body), err: err}
	if response.Header.Get("Content-Type") == "application/json" {
		_ = json.Unmarshal(body, &g)
	}
	return g
}

// sent sends a request in the background.
func (d *door) sent(r *http.Request) <-chan got {
	answer := make(chan got, 1)
	go func() { answer <- d.send(r) }()
	return answer
}

// reservations returns those of the namespace.
func (s *scene) reservations() []batchv1alpha1.DirectReservation {
	s.t.Helper()
	list := &batchv1alpha1.DirectReservationList{}
	NewWithT(s.t).Expect(live.List(context.Background(), list, client.InNamespace(s.ns))).To(Succeed())
	return list.Items
}

// only waits for the one reservation of the namespace to have the phase.
func (s *scene) only(phase batchv1alpha1.DirectReservationPhase) *batchv1alpha1.DirectReservation {
	s.t.Helper()
	var found batchv1alpha1.DirectReservation
	NewWithT(s.t).Eventually(func() batchv1alpha1.DirectReservationPhase {
		all := s.reservations()
		if len(all) != 1 {
			return ""
		}
		found = all[0]
		return found.Status.Phase
	}, patience, interval).Should(Equal(phase))
	return &found
}

// read reads a reservation.
func (s *scene) read(name string) *batchv1alpha1.DirectReservation {
	s.t.Helper()
	d := &batchv1alpha1.DirectReservation{}
	NewWithT(s.t).Expect(live.Get(context.Background(), types.NamespacedName{Namespace: s.ns, Name: name}, d)).To(Succeed())
	return d
}

func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s does not come", what)
		panic("unreachable")
	}
}

// echo answers with what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Echo-Path", r.URL.EscapedPath()+"?"+r.URL.RawQuery)
	_, _ = io.Copy(w, bytes.NewReader(body))
}

var errAway = errors.New("the API server is away")
