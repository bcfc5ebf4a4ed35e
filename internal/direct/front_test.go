// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestWhatIsMissingIsSaid(t *testing.T) {
	_, err := New(Options{})
	for _, what := range []string{"Client", "Live", "Informers", "Egress", "Fit", "Address", "Audience", "ID", "Clock"} {
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("needs " + what)))
	}
}

func TestEveryReplicaServes(t *testing.T) {
	NewWithT(t).Expect(newBench(t).NeedLeaderElection()).To(BeFalse())
}

func TestAnAddressThatIsTakenIsAClearError(t *testing.T) {
	g := NewWithT(t)
	first, second := newBench(t), newBench(t)
	g.Expect(first.Bound()).To(BeNil())
	g.Expect(first.Listen()).To(Succeed())
	g.Expect(first.Listen()).To(Succeed(), "again changes nothing")
	defer func() { _ = first.server.listener.Close() }()
	second.Address = first.Bound().String()
	g.Expect(second.Start(t.Context())).To(MatchError(ContainSubstring("direct access cannot listen on " + second.Address)))
}

func TestACertificateThatIsNotThereIsAClearError(t *testing.T) {
	b := newBench(t)
	b.CertDir = t.TempDir()
	NewWithT(t).Expect(b.Start(t.Context())).To(MatchError(ContainSubstring("reading the certificate for direct access")))
}

func TestACertificateIsReadAgainWhenItChanges(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	b.CertDir = t.TempDir()
	write := func() *tls.Certificate {
		own, err := selfSigned(time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey.(*ecdsa.PrivateKey))
		g.Expect(err).NotTo(HaveOccurred())
		for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: own.Certificate[0]}, "tls.key": {Type: "PRIVATE KEY", Bytes: key}} {
			g.Expect(os.WriteFile(filepath.Join(b.CertDir, name), pem.EncodeToMemory(block), 0o600)).To(Succeed())
		}
		return own
	}
	first := write()
	cert, err := b.certificate()
	g.Expect(err).NotTo(HaveOccurred())
	shown := func() []byte {
		c, err := cert.get(nil)
		g.Expect(err).NotTo(HaveOccurred())
		return c.Certificate[0]
	}
	g.Expect(shown()).To(Equal(first.Certificate[0]))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cert.watch(ctx) }()
	second := write()
	g.Eventually(shown, patience, 10*time.Millisecond).Should(Equal(second.Certificate[0]))
	cancel()
	g.Expect(<-done).To(Succeed())
}

func TestACertificateOfItsOwnIsNamedInTheLog(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	var lines []string
	b.Log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	cert, err := b.certificate()
	g.Expect(err).NotTo(HaveOccurred())
	shown, err := cert.get(nil)
	g.Expect(err).NotTo(HaveOccurred())
	parsed, err := x509.ParseCertificate(shown.Certificate[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed.VerifyHostname("127.0.0.1")).To(Succeed())
	g.Expect(lines).To(ConsistOf(MatchRegexp(`"sha256"="[0-9a-f]{64}"`)))
}

func TestOldTLSIsNotSpoken(t *testing.T) {
	g := NewWithT(t)
	s := set(t, quick(), echo)
	_, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}}).
		DialContext(t.Context(), "tcp", s.front.Bound().String())
	g.Expect(err).To(HaveOccurred())
	g.Expect(s.log()).NotTo(ContainSubstring("handshake"), "anybody could fill the log")
}

func TestAProblemSaysWhatToDo(t *testing.T) {
	g := NewWithT(t)
	w := httptest.NewRecorder()
	refuse(http.StatusServiceUnavailable, "Code", "say %q", "x").again(1500 * time.Millisecond).about("shell").write(w)
	g.Expect(w.Code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(w.Header().Get("Content-Type")).To(Equal("application/json"))
	g.Expect(w.Header().Get("Retry-After")).To(Equal("2"))
	var got map[string]string
	g.Expect(json.Unmarshal(w.Body.Bytes(), &got)).To(Succeed())
	g.Expect(got).To(Equal(map[string]string{"error": "Code", "message": `say "x"`, "reservation": "shell"}))
}

func TestTheGateBoundsWhatIsServedAtOnce(t *testing.T) {
	g := NewWithT(t)
	gate := &gate{limit: 2}
	g.Expect(gate.enter()).To(BeNil())
	g.Expect(gate.enter()).To(BeNil())
	g.Expect(gate.enter().code).To(Equal("Overloaded"))
	gate.leave()
	g.Expect(gate.enter()).To(BeNil())

	release := make(chan struct{})
	gate.later(func() { <-release })
	gate.close()
	g.Expect(gate.enter().code).To(Equal("ShuttingDown"))
	gate.leave()
	gate.leave()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(gate.empty(ctx)).To(BeFalse(), "something is left to be done")
	close(release)
	g.Expect(gate.empty(t.Context())).To(BeTrue())
}

func TestALineIsItsQueuesOwn(t *testing.T) {
	g := NewWithT(t)
	queue := func(name string) *batchv1alpha1.JobQueue {
		q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		q.Spec.Direct = &batchv1alpha1.QueueDirect{MaxWaiting: ptr.To[int32](1)}
		return q
	}
	l := newLine()
	leave, p := l.join(queue("a"))
	g.Expect(p).To(BeNil())
	_, p = l.join(queue("a"))
	g.Expect(p.status).To(Equal(http.StatusTooManyRequests))
	other, p := l.join(queue("b"))
	g.Expect(p).To(BeNil())
	leave()
	leave()
	again, p := l.join(queue("a"))
	g.Expect(p).To(BeNil())
	again()
	other()
	g.Expect(l.waiting).To(BeEmpty())
}

func TestAnInboxHoldsTheLatestVersion(t *testing.T) {
	g := NewWithT(t)
	b := newInboxes()
	handler := b.handler()
	handler.OnAdd(pending(), true) // nobody waits
	in, other := b.add(shell), b.add(shell)
	g.Expect(b.count(shell)).To(Equal(2))
	handler.OnAdd(pending(), false)
	handler.OnUpdate(pending(), pending(granted))
	handler.OnDelete("no object")
	g.Expect((<-in.latest).reservation.Status.Phase).To(Equal(batchv1alpha1.ReservationGranted))
	handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: pending()})
	g.Expect((<-in.latest).gone).To(BeTrue())
	g.Expect((<-other.latest).gone).To(BeTrue())
	b.remove(shell, in)
	b.remove(shell, other)
	g.Expect(b.open).To(BeEmpty())
}

func TestAQueueOfANamespaceThatIsNobodysIsNotFound(t *testing.T) {
	g := NewWithT(t)
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "main"}}
	q.Spec.Direct = &batchv1alpha1.QueueDirect{Upstream: "http://ollama"}
	b := newBench(t, q)
	_, p := b.queue(t.Context(), "ns", "main")
	g.Expect(p).To(BeNil())
	b.Namespaces = []string{"other"}
	_, p = b.queue(t.Context(), "ns", "main")
	g.Expect(p.code).To(Equal("QueueNotFound"))
}

func TestWhatIsWrongWithTheQueuesHeaders(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "token"}, Data: map[string][]byte{"value": []byte("hunter2\n"), "broken": []byte("hunter2\r\nX-Evil: 1")}}
	from := func(name, key string) batchv1alpha1.HTTPHeader {
		return batchv1alpha1.HTTPHeader{Name: "X-Key", SecretKeyRef: &batchv1alpha1.SecretKeyRef{Name: name, Key: key}}
	}
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, c := range map[string]struct {
		header        batchv1alpha1.HTTPHeader
		reading       error
		status        int
		code, message string
	}{
		"nothing":                        {from("token", "value"), nil, 0, "", ""},
		"a missing Secret":               {from("nowhere", "value"), nil, 502, "SecretNotFound", `secret "nowhere" does not exist`},
		"a missing key":                  {from("token", "other"), nil, 502, "SecretNotFound", `has no key "other"`},
		"a Secret that may not be read":  {from("token", "value"), apierrors.NewForbidden(secrets, "token", errors.New("no")), 502, "SecretNotFound", "may not read"},
		"an API server that is away":     {from("token", "value"), errAway, 503, "APIUnavailable", "try again"},
		"a line end within a value":      {from("token", "broken"), nil, 502, "InvalidHeader", "X-Key"},
		"a name that is none, in itself": {batchv1alpha1.HTTPHeader{Name: "X Key", Value: ptr.To("x")}, nil, 502, "InvalidHeader", "X Key"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := newBench(t, secret.DeepCopy())
			b.Live = interceptor.NewClient(b.api, interceptor.Funcs{Get: func(ctx context.Context, in client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if c.reading != nil {
					return c.reading
				}
				return in.Get(ctx, key, o, opts...)
			}})
			q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
			q.Spec.Direct = &batchv1alpha1.QueueDirect{Headers: []batchv1alpha1.HTTPHeader{c.header}}
			header, p := b.added(t.Context(), q)
			if c.status == 0 {
				g.Expect(p).To(BeNil())
				g.Expect(header.Get("X-Key")).To(Equal("hunter2"))
				return
			}
			g.Expect(p.status).To(Equal(c.status))
			g.Expect(p.code).To(Equal(c.code))
			g.Expect(p.message).To(ContainSubstring(c.message))
			g.Expect(p.message).NotTo(ContainSubstring("hunter2"))
		})
	}
}

func TestTheNameOfARetryFits(t *testing.T) {
	g := NewWithT(t)
	for _, name := range []string{"a", strings.Repeat("a", 63), strings.Repeat("a.", 31) + "a"} {
		to := route{namespace: "ns", run: name}
		made := manualRetry("ada", to, "once")
		g.Expect(len(made.Name)).To(BeNumerically("<=", maxRunName))
		g.Expect(isName(made.Name)).To(BeTrue(), made.Name)
		g.Expect(manualRetry("ada", to, "once").Name).To(Equal(made.Name))
		g.Expect(manualRetry("bob", to, "once").Name).NotTo(Equal(made.Name))
		random := manualRetry("ada", to, "")
		g.Expect(random.Name).To(BeEmpty())
		g.Expect(len(random.GenerateName) + generated).To(BeNumerically("<=", maxRunName))
		g.Expect(isName(random.GenerateName+"x")).To(BeTrue(), random.GenerateName)
	}
}

func TestARequestThatPanicsIsNoEndOfTheProcess(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	var lines []string
	b.Log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	b.gate = nil
	g.Expect(func() { b.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)) }).To(PanicWith(http.ErrAbortHandler))
	g.Expect(lines).To(ConsistOf(ContainSubstring("a request made the front panic")))
}
