// SPDX-License-Identifier: Apache-2.0

package api

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

// The runs of these tests share the queue "default", whose limit is 1: the run that comes behind a bad one completes only if
// the slot was freed.

// patient retries every second for as long as a test may last.
func patient(r *batchv1alpha1.JobRun) {
	r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{
		MaxRetries: ptr.To[int32](100), BaseDelaySeconds: ptr.To[int32](1), MaxDelaySeconds: ptr.To[int32](1),
	}
}

// within bounds an attempt, in seconds.
func within(seconds int64) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Spec.TimeoutSeconds = &seconds }
}

func TestAMissingSecretFailsTheRunAndARetrySucceedsOnceItIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	w.create(
		w.httpRun("signed", s.URL+"/signed", patient, func(r *batchv1alpha1.JobRun) {
			r.Spec.Work.HTTP.Headers = []batchv1alpha1.HTTPHeader{{
				Name: "Authorization", SecretKeyRef: &batchv1alpha1.SecretKeyRef{Name: "token", Key: "bearer"},
			}}
		}),
		w.httpRun("next", s.URL+"/next"),
	)
	r := w.eventually("signed", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonSecretNotFound))
	w.Expect(r.Status.Message).To(Equal(`secret "token" does not exist`))
	w.eventually("next", batchv1alpha1.JobRunCompleted)

	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "token"}, Data: map[string][]byte{"other": []byte("x")}})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "token"}, Data: map[string][]byte{"bearer": []byte("Bearer 42\n")}}
	w.Eventually(func() string { return w.latest("signed").Status.Message }).Should(ContainSubstring(`secret "token" has no key "bearer"`))
	w.Expect(w.Update(w.ctx, secret)).To(Succeed())
	w.settled("signed", batchv1alpha1.ConditionComplete)
	w.Expect(s.on("/signed")).To(HaveLen(1), "nothing is sent before the Secret is there")
	w.Expect(s.on("/signed")[0].Header.Get("Authorization")).To(Equal("Bearer 42"))
}

// latest returns the latest run of a chain that has ended.
func (w *world) latest(root string) *batchv1alpha1.JobRun {
	w.t.Helper()
	found := w.get(root)
	runs := &batchv1alpha1.JobRunList{}
	w.Expect(w.List(w.ctx, runs, client.InNamespace(w.ns))).To(Succeed())
	for i := range runs.Items {
		r := &runs.Items[i]
		if chain := r.Spec.Chain; chain != nil && chain.RootName == root && r.Status.Phase.Terminal() && r.Spec.Attempt > found.Spec.Attempt {
			found = r
		}
	}
	return found
}

// on returns the calls of a path.
func (s *server) on(path string) []call {
	var calls []call
	for _, c := range s.log() {
		if c.Path == path {
			calls = append(calls, c)
		}
	}
	return calls
}

func TestAClosedPortFailsTheRunAndARetrySucceedsOnceSomebodyListens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	port := closedPort(t)
	w.start()
	w.create(w.httpRun("early", "http://"+port.address+"/early", patient), w.httpRun("next", s.URL+"/next"))
	r := w.eventually("early", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonConnectionFailed))
	w.Expect(r.Status.Message).To(And(ContainSubstring(port.address), ContainSubstring("connection refused")))
	w.eventually("next", batchv1alpha1.JobRunCompleted)

	port.open(s.Config.Handler)
	root := w.settled("early", batchv1alpha1.ConditionComplete)
	w.Expect(root.Status.Chain.Attempts).To(BeNumerically(">=", 2))
	w.Expect(s.on("/early")).To(HaveLen(1))
}

// port is one on loopback that nobody listens at, and that nobody else can take.
type port struct {
	t       *testing.T
	file    *os.File
	address string
}

func closedPort(t *testing.T) *port {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &port{t: t, file: os.NewFile(uintptr(fd), "port")}
	t.Cleanup(func() { _ = p.file.Close() })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	bound := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}
	p.address = bound.String()
	return p
}

// open lets the handler answer at the port.
func (p *port) open(handler http.Handler) {
	p.t.Helper()
	if err := syscall.Listen(int(p.file.Fd()), syscall.SOMAXCONN); err != nil {
		p.t.Fatal(err)
	}
	listener, err := net.FileListener(p.file)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	s.Start()
	p.t.Cleanup(s.Close)
}

func TestAServerThatNeverAnswersIsGivenUpAtTheTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	silent, _ := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/silent": silent})
	w.start()
	w.create(w.httpRun("stuck", s.URL+"/silent", retries(0), within(1)), w.httpRun("next", s.URL+"/next"))
	r := w.eventually("stuck", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonTimeout))
	w.Expect(r.Status.Message).To(Equal("the call was aborted: its time was over"))
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.most.Load()).To(BeEquivalentTo(1), "the slot was freed after the call had ended")
}

func TestABodyThatNeverEndsProvesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/endless": func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, "all is well")
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	}})
	w.start()
	w.create(w.httpRun("endless", s.URL+"/endless", retries(0), within(1)), w.httpRun("next", s.URL+"/next"))
	r := w.eventually("endless", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonTimeout))
	w.Expect(r.Status.Message).To(ContainSubstring("server answered 200 OK, but its response did not come whole"))
	w.Expect(r.Status.Result.Body).To(Equal("all is well"))
	w.Expect(r.Status.Result.BodyTruncated).To(BeTrue())
	w.eventually("next", batchv1alpha1.JobRunCompleted)
}

func TestAResponseOfAHundredMegabytesIsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const megabytes = 100
	var sent atomic.Int64
	s := newServer(t, map[string]http.HandlerFunc{"/huge": func(rw http.ResponseWriter, _ *http.Request) {
		piece := []byte(strings.Repeat("x", 1<<20))
		for range megabytes {
			n, err := rw.Write(piece)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}})
	w.start()
	w.create(w.httpRun("huge", s.URL+"/huge", retries(0)), w.httpRun("next", s.URL+"/next"))
	r := w.eventually("huge", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonResponseTooLarge))
	w.Expect(r.Status.Message).To(ContainSubstring("longer than 33554432 bytes"))
	w.Expect(r.Status.Result.Body).To(HaveLen(1024))
	w.Expect(r.Status.Result.BodyTruncated).To(BeTrue())
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(sent.Load()).To(BeNumerically("<", megabytes<<20), "the manager hangs up rather than read on")
}

func TestForbiddenAddressesAreRefusedBeforeAnyPacket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.Expect(err).NotTo(HaveOccurred())
	counted := &counting{Listener: listener}
	s := &httptest.Server{Listener: counted, Config: &http.Server{Handler: http.NotFoundHandler()}}
	s.Start()
	t.Cleanup(s.Close)
	w.start(func(o *operator.Options) { o.AllowedOutgoing = nil })
	w.create(
		w.httpRun("metadata", "http://169.254.169.254/latest/meta-data/", retries(0)),
		w.httpRun("mapped", "http://[::ffff:169.254.169.254]/", retries(0)),
		w.httpRun("loopback", s.URL, retries(0)),
		w.jobRun("next", exits("0")),
	)
	for name, says := range map[string]string{
		"metadata": "169.254.169.254 is a link-local address, which the manager does not call unless its flag --allow-outgoing-cidr allows it",
		"mapped":   "is a link-local address",
		"loopback": "127.0.0.1 is a loopback address",
	} {
		r := w.eventually(name, batchv1alpha1.JobRunFailed)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonAddressForbidden), name)
		w.Expect(r.Status.Message).To(ContainSubstring(says))
	}
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(counted.accepted.Load()).To(BeZero())
}

// counting counts connections.
type counting struct {
	net.Listener
	accepted atomic.Int64
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}
