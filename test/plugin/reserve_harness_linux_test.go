// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/faultwire"
	"reprise.dev/reprise/internal/operator"
)

// way is a plugin's way to the API server. A test can hold requests up on it, before they arrive or before their answers do, and
// block it.
type way struct {
	*httptest.Server
	kubeconfig string

	mu      sync.Mutex
	traps   []*trap
	blocked chan struct{} // closed when the way is blocked
}

// trap catches the first request that it matches.
type trap struct {
	match  func(request) bool
	answer bool // it is the answer that is held up
	lands  bool // the request goes on, also without whoever has sent it
	caught chan struct{}
	open   func()
	opened chan struct{}
}

type request struct{ method, path, body string }

// newWay makes one for the administrator.
func newWay(t *testing.T) *way {
	t.Helper()
	g := NewWithT(t)
	config := plane.Config()
	transport, err := rest.TransportFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	to, err := url.Parse(config.Host)
	g.Expect(err).NotTo(HaveOccurred())
	x := &way{blocked: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // the connection breaks
		},
	}
	x.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { x.serve(proxy, rw, r) }))
	t.Cleanup(func() {
		x.block()
		x.CloseClientConnections()
		x.Close()
	})
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["way"] = &clientcmdapi.Cluster{Server: x.URL}
	kubeconfig.Contexts["way"] = &clientcmdapi.Context{Cluster: "way"}
	kubeconfig.CurrentContext = "way"
	x.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(clientcmd.WriteToFile(*kubeconfig, x.kubeconfig)).To(Succeed())
	return x
}

func (x *way) serve(proxy http.Handler, rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	x.mu.Lock()
	blocked := x.blocked
	x.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() { // a way that is blocked ends what is under way, too
		select {
		case <-blocked:
			cancel()
		case <-ctx.Done():
		}
	}()
	select {
	case <-blocked:
		<-r.Context().Done()
		return
	default:
	}
	x.pass(x.caught(request{r.Method, r.URL.Path, string(body)}), proxy, rw, r.WithContext(ctx))
}

// pass carries out a request that the trap has caught, if there is one.
func (x *way) pass(p *trap, proxy http.Handler, rw http.ResponseWriter, r *http.Request) {
	switch {
	case p == nil:
		proxy.ServeHTTP(rw, r)
	case p.answer:
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		p.hold(r.Context())
		for name, values := range answer.Header() {
			rw.Header()[name] = values
		}
		rw.WriteHeader(answer.Code)
		_, _ = rw.Write(answer.Body.Bytes())
	case p.lands:
		p.hold(context.Background())
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		proxy.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx)) // nobody waits for the answer
	default:
		p.hold(r.Context())
		proxy.ServeHTTP(rw, r)
	}
}

func (p *trap) hold(ctx context.Context) {
	close(p.caught)
	select {
	case <-p.opened:
	case <-ctx.Done():
	}
}

func (x *way) caught(r request) *trap {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, p := range x.traps {
		if p.match(r) {
			x.traps = append(x.traps[:i], x.traps[i+1:]...)
			return p
		}
	}
	return nil
}

// trap sets one.
func (x *way) trap(t *testing.T, p *trap) *trap {
	t.Helper()
	p.caught, p.opened = make(chan struct{}), make(chan struct{})
	p.open = sync.OnceFunc(func() { close(p.opened) })
	t.Cleanup(p.open)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.traps = append(x.traps, p)
	return p
}

// block has every request go without an answer from now on, those under way included.
func (x *way) block() {
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case <-x.blocked:
	default:
		close(x.blocked)
	}
}

// unblock lets requests through again.
func (x *way) unblock() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.blocked = make(chan struct{})
}

// creation, renewal and release are the writes of the plugin.
func creation(r request) bool {
	return r.method == http.MethodPost && strings.HasSuffix(r.path, "/directreservations")
}

func renewal(r request) bool {
	return r.method == http.MethodPatch && strings.Contains(r.body, "renewTime")
}

func release(r request) bool {
	return r.method == http.MethodPatch && strings.Contains(r.body, "release")
}

// stage is a queue of one slot, runs that want it, and a command that has it.
type stage struct {
	*world
	*way
	dir    string
	server *httptest.Server
	first  func() // lets the run "first" end

	mu     sync.Mutex
	called []string
	broken []string // what was found wrong when a run began
}

// newStage makes a world with a queue of one slot.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{world: newWorld(t), way: newWay(t), dir: t.TempDir()}
	released := make(chan struct{})
	s.first = sync.OnceFunc(func() { close(released) })
	s.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.begins(strings.TrimPrefix(r.URL.Path, "/"))
		if r.URL.Path == "/first" {
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(rw, "done")
	}))
	t.Cleanup(func() {
		s.first()
		s.server.CloseClientConnections()
		s.server.Close()
	})
	t.Cleanup(func() {
		for _, pid := range s.living() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	limit := int32(1)
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Limit: &limit}
	s.create(q)
	return s
}

// begins notes that a run begins: nothing of the command may be at work then.
func (s *stage) begins(name string) {
	living := s.living()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = append(s.called, name)
	if len(living) > 0 {
		s.broken = append(s.broken, fmt.Sprintf("%s began while %v lived", name, living))
	}
}

func (s *stage) began() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.called...)
}

// wants creates a run of the queue.
func (s *stage) wants(name string) {
	s.t.Helper()
	r := jobRun(name, httpWork(s.server.URL+"/"+name, 0))
	r.Spec.Queue = "one"
	s.create(r)
}

// occupied has the slot used by the run "first", until s.first.
func (s *stage) occupied() {
	s.t.Helper()
	s.wants("first")
	s.Eventually(s.began).Should(ContainElement("first"))
}

// working is a command with a daemon that both live until they are ended, or the file "go" is there.
const working = `echo $$ > $DIR/main.pid
setsid sh -c 'echo $$ > $DIR/daemon.pid; while ! test -e $DIR/go; do sleep 0.1; done' &
while ! test -e $DIR/go; do sleep 0.1; done`

// reserve runs the plugin with a command of the shell, which finds the directory of the test in $DIR.
func (s *stage) reserve(script string, flags ...string) *command {
	s.t.Helper()
	args := append([]string{"reserve", "--kubeconfig=" + s.kubeconfig, "--namespace=" + s.ns, "--queue=one", "--lease=10s"}, flags...)
	return launch(s.t, []string{"DIR=" + s.dir}, append(args, "--", "sh", "-c", script)...)
}

// working waits until the command and its daemon are at work.
func (s *stage) working() {
	s.t.Helper()
	s.Eventually(s.living).Should(HaveLen(2))
}

// living are the processes of the command that live: it has written their IDs into files.
func (s *stage) living() []int {
	paths, _ := filepath.Glob(filepath.Join(s.dir, "*.pid"))
	var pids []int
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && lives(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// leave lets the command end by itself.
func (s *stage) leave() {
	s.t.Helper()
	s.Expect(os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600)).To(Succeed())
}

// reservations returns those of the namespace.
func (s *stage) reservations() []batchv1alpha1.DirectReservation {
	list := &batchv1alpha1.DirectReservationList{}
	s.Expect(s.List(s.t.Context(), list, client.InNamespace(s.ns))).To(Succeed())
	return list.Items
}

// stand returns the phase of each reservation.
func (s *stage) stand() []batchv1alpha1.DirectReservationPhase {
	phases := []batchv1alpha1.DirectReservationPhase{}
	for _, dr := range s.reservations() {
		phases = append(phases, dr.Status.Phase)
	}
	return phases
}

// killable runs a manager that can be killed, and returns what kills it: its connections break and nothing of it is heard again.
func (s *stage) killable() (kill func()) {
	s.t.Helper()
	x := faultwire.New()
	o := operator.DefaultOptions()
	o.Namespaces = []string{s.ns}
	o.LeaseNamespace = s.ns
	o.LeaderElect = false
	o.ProbeAddress, o.MetricsAddress = "0", "0"
	o.Startup.Window = 0
	o.AllowedOutgoing = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	o.DrainTimeout = 0
	o.Pod = nil
	o.Log = logr.Discard()
	x.Mortal(&o)
	ctx, cancel := context.WithCancel(context.Background())
	op, err := operator.New(ctx, x.Config(plane.Config()), o)
	s.Expect(err).NotTo(HaveOccurred())
	done := make(chan error, 1)
	go func() { done <- op.Run(ctx) }()
	kill = sync.OnceFunc(func() {
		x.Cut()
		cancel()
		<-done
	})
	s.t.Cleanup(kill)
	return kill
}
