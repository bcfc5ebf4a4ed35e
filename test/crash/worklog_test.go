// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/fakekubelet"
	"reprise.dev/reprise/internal/invariant"
)

// headerProcess tells the work server which process calls. A test puts it on what goes out; the manager knows nothing of it.
const headerProcess = "Crash-Process"

// workServer is what all runs call, all direct requests reach, and all receivers of announcements are. It writes down who was
// at work when. The path says whose it is and what it does: /<namespace>/<script>/<gate>.
type workServer struct {
	*httptest.Server
	calls atomic.Int64

	mu   sync.Mutex
	logs map[string]*workLog
}

// workLog is what happened in one namespace.
type workLog struct {
	mu       sync.Mutex
	acts     []invariant.Act
	told     []invariant.Announcement
	direct   map[string]string        // the reservation of a direct request, by its path
	gates    map[string]chan struct{} // closed: calls that wait at the gate go on
	refusals map[types.UID]int
	open     map[string]bool // the gates of receivers
}

func newWorkServer() *workServer {
	s := &workServer{logs: map[string]*workLog{}}
	s.Server = httptest.NewServer(s)
	return s
}

// open begins the log of a namespace.
func (s *workServer) open(namespace string) *workLog {
	l := &workLog{direct: map[string]string{}, gates: map[string]chan struct{}{}, refusals: map[types.UID]int{}, open: map[string]bool{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[namespace] = l
	return l
}

// close forgets a namespace.
func (s *workServer) close(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logs, namespace)
}

func (s *workServer) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 3)
	s.mu.Lock()
	l := s.logs[parts[0]]
	s.mu.Unlock()
	if l == nil || len(parts) != 3 {
		http.Error(rw, "nobody is here any more", http.StatusGone)
		return
	}
	if parts[1] == "told" {
		l.hear(rw, r, parts[2])
		return
	}
	l.work(rw, r, parts[1], parts[2], fmt.Sprint("call-", s.calls.Add(1)))
}

// work is one call: the script says how it ends.
func (l *workLog) work(rw http.ResponseWriter, r *http.Request, script, gate, id string) {
	act := invariant.Act{Began: true, At: time.Now(), Work: invariant.Call, Execution: id, Attempt: -1, Manager: r.Header.Get(headerProcess)}
	if name := r.Header.Get("Reprise-Run"); name != "" {
		act.Namespace, act.Name = path.Split(name)
		act.Namespace = strings.TrimSuffix(act.Namespace, "/")
		act.Key = r.Header.Get("Idempotency-Key")
		if n, err := strconv.ParseInt(r.Header.Get("Reprise-Attempt"), 10, 32); err == nil {
			act.Attempt = int32(n)
		}
	} else {
		act.Work, act.Name = invariant.Direct, r.URL.Path // the name is put in when it is known
	}
	l.add(act)
	_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the caller goes away
	aborted := false
	switch script {
	case "hold":
		select {
		case <-l.gate(gate):
		case <-r.Context().Done():
			aborted = true
		}
	default:
		aborted = r.Context().Err() != nil
	}
	act.Began, act.At, act.Aborted = false, time.Now(), aborted
	l.add(act)
	fails, _ := strconv.Atoi(r.URL.Query().Get("fails"))
	if fails > 0 && int(act.Attempt) < fails {
		rw.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = io.WriteString(rw, "done")
}

// hear takes an announcement. Of each subject it refuses as many as the query says; it wants none before its gate is open, if it has
// one, and none that is not signed if they are to be.
func (l *workLog) hear(rw http.ResponseWriter, r *http.Request, receiver string) {
	body, err := io.ReadAll(r.Body)
	var e struct {
		Type string
		Data struct{ UID types.UID }
	}
	if err := errors.Join(err, json.Unmarshal(body, &e)); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	query := r.URL.Query()
	refuse, _ := strconv.Atoi(query.Get("refuse"))
	code := http.StatusOK
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case query.Has("signed") && !wellSigned(body, r.Header):
		code = http.StatusUnauthorized
	case query.Has("gate") && !l.open[query.Get("gate")]:
		code = http.StatusGone
	case l.refusals[e.Data.UID] < refuse:
		code = http.StatusServiceUnavailable
	}
	l.refusals[e.Data.UID]++
	l.told = append(l.told, invariant.Announcement{
		At: time.Now(), Receiver: receiver, ScheduledJob: query.Has("schedule"), UID: e.Data.UID, Event: e.Type,
		Accepted: code == http.StatusOK, Gone: code == http.StatusGone,
	})
	rw.WriteHeader(code)
}

// signingKey is that of all receivers that are told signed messages.
const signingKey = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func wellSigned(body []byte, header http.Header) bool {
	webhook, err := standardwebhooks.NewWebhook(signingKey)
	return err == nil && webhook.Verify(body, header) == nil
}

func (l *workLog) add(a invariant.Act) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acts = append(l.acts, a)
}

func (l *workLog) gate(name string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gates[name] == nil {
		l.gates[name] = make(chan struct{})
	}
	return l.gates[name]
}

// openGate lets what waits at the gate go on, now and from now on.
func (l *workLog) openGate(name string) {
	gate := l.gate(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[name] = true
	select {
	case <-gate:
	default:
		close(gate)
	}
}

// serves tells that the direct request of that path was for the reservation.
func (l *workLog) serves(urlPath, reservation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.direct[urlPath] = reservation
}

// all returns the acts of calls, and of pods, of the namespace.
func (l *workLog) all(namespace string) []invariant.Act {
	l.mu.Lock()
	acts := slices.Clone(l.acts)
	for i := range acts {
		if acts[i].Work == invariant.Direct {
			acts[i].Namespace, acts[i].Name = namespace, l.direct[acts[i].Name]
		}
	}
	l.mu.Unlock()
	return append(acts, podActs(namespace)...)
}

// announcements returns what the receivers heard.
func (l *workLog) announcements() []invariant.Announcement {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.told)
}

func podActs(namespace string) []invariant.Act {
	acts := []invariant.Act{}
	for _, e := range kubelet.History() {
		if e.Pod.Namespace != namespace {
			continue
		}
		act := invariant.Act{
			At: e.At, Began: e.Kind == fakekubelet.Started, Work: invariant.Pod, Execution: string(e.Pod.UID), Namespace: namespace,
			Name: e.Pod.Labels[batchv1alpha1.LabelRun], UID: types.UID(e.Pod.Labels[batchv1alpha1.LabelRunUID]), Attempt: -1,
		}
		for _, v := range e.Pod.Spec.Containers[0].Env {
			switch v.Name {
			case "REPRISE_IDEMPOTENCY_KEY":
				act.Key = v.Value
			case "REPRISE_ATTEMPT":
				if n, err := strconv.ParseInt(v.Value, 10, 32); err == nil {
					act.Attempt = int32(n)
				}
			}
		}
		acts = append(acts, act)
	}
	return acts
}
