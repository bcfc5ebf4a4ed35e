// SPDX-License-Identifier: Apache-2.0

package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// stage is a work server on which every call waits until the test lets it end, and the witness of who was at work at once. It
// knows a call by the name of its run or, for a direct request, by the last part of its path. The parts of a name between
// hyphens say what the call uses.
type stage struct {
	*httptest.Server
	t *testing.T
	// acts are calls with a behaviour of their own.
	acts map[string]http.HandlerFunc

	mu   sync.Mutex
	free bool                // calls end at once
	cues map[string]chan int // for those that wait for their end: the status to answer with
	log  []entrance
}

// entrance is the beginning or the end of a call.
type entrance struct {
	name string
	left bool
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, acts: map[string]http.HandlerFunc{}, cues: map[string]chan int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *stage) serve(rw http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	if run := r.Header.Get("Reprise-Run"); run != "" {
		name = path.Base(run)
	}
	cue := s.enter(name)
	defer s.leave(name)
	if act := s.acts[name]; act != nil {
		act(rw, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the caller goes away
	select {
	case status := <-cue:
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, "done")
	case <-r.Context().Done():
	}
}

func (s *stage) enter(name string) chan int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, entrance{name: name})
	cue := make(chan int, 1)
	if s.free {
		cue <- http.StatusOK
	} else {
		s.cues[name] = cue
	}
	return cue
}

func (s *stage) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, entrance{name: name, left: true})
	delete(s.cues, name)
}

// answer ends the call that is at work, or comes to be, under that name.
func (s *stage) answer(name string, status int) {
	s.t.Helper()
	g := NewWithT(s.t)
	g.Eventually(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		cue := s.cues[name]
		if cue == nil {
			return false
		}
		cue <- status
		delete(s.cues, name)
		return true
	}).WithTimeout(patience).Should(BeTrue(), "%s is at work", name)
}

// end ends calls well, one after the other.
func (s *stage) end(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.answer(name, http.StatusOK)
	}
}

// endAll ends all calls that are at work, and from now on each as soon as it begins.
func (s *stage) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = true
	for name, cue := range s.cues {
		cue <- http.StatusOK
		delete(s.cues, name)
	}
}

// entrances returns what has happened so far.
func (s *stage) entrances() []entrance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// atWork returns who is at work now, sorted.
func (s *stage) atWork() []string {
	var names []string
	for _, e := range s.entrances() {
		if !e.left {
			names = append(names, e.name)
		} else if i := slices.Index(names, e.name); i >= 0 {
			names = slices.Delete(names, i, i+1)
		}
	}
	slices.Sort(names)
	return names
}

// began returns who has begun so far, in order; of those that use that, "" for all.
func (s *stage) began(uses string) []string {
	var names []string
	for _, e := range s.entrances() {
		if !e.left && partOf(e.name, uses) {
			names = append(names, e.name)
		}
	}
	return names
}

// most returns how many were at work at once at most, of those that use that, "" for all.
func (s *stage) most(uses string) int {
	n, most := 0, 0
	for _, e := range s.entrances() {
		switch {
		case !partOf(e.name, uses):
		case e.left:
			n--
		default:
			n++
			most = max(most, n)
		}
	}
	return most
}

func partOf(name, part string) bool {
	return part == "" || slices.Contains(strings.Split(name, "-"), part)
}

// act builds a run that calls the stage. Its type and claims are what its name says.
func (w *world) act(s *stage, name string, change ...func(*batchv1alpha1.JobRun)) *batchv1alpha1.JobRun {
	return w.httpRun(name, s.URL+"/"+name, append([]func(*batchv1alpha1.JobRun){asNamed}, change...)...)
}

// asNamed gives a run the type and claims that its name says.
func asNamed(r *batchv1alpha1.JobRun) { r.Spec.Type, r.Spec.Claims = needsOf(r.Name) }

// needsOf reads a type and claims from a name like "story-ollama-1".
func needsOf(name string) (kind string, claims []batchv1alpha1.ResourceClaim) {
	for part := range strings.SplitSeq(name, "-") {
		switch part {
		case "story", "research":
			kind = part
		case "ollama", "remote":
			claims = append(claims, batchv1alpha1.ResourceClaim{Name: part, Count: 1})
		}
	}
	return kind, claims
}

// bounding gives a queue these rules.
func bounding(c batchv1alpha1.QueueConcurrency) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) { q.Spec.Concurrency = &c }
}

// ofEach is a limit for each of two types.
func ofEach(story, research int32) []batchv1alpha1.TypeConcurrency {
	return []batchv1alpha1.TypeConcurrency{{Name: "story", Limit: ptr.To(story)}, {Name: "research", Limit: ptr.To(research)}}
}

// thereAre is how much there is of two resources.
func thereAre(ollama, remote int32) []batchv1alpha1.QueueResource {
	return []batchv1alpha1.QueueResource{{Name: "ollama", Capacity: ollama}, {Name: "remote", Capacity: remote}}
}

// shows waits until the queue shows these counts, for the rules as they are now: then they were applied to just these.
func (w *world) shows(q *batchv1alpha1.JobQueue, queued, running, reserved int) {
	w.t.Helper()
	w.Eventually(func() batchv1alpha1.JobQueueStatus { return w.readQueue(q.Name).Status }).Should(And(
		HaveField("ObservedGeneration", BeNumerically(">=", q.Generation)),
		HaveField("Queued", BeEquivalentTo(queued)), HaveField("Running", BeEquivalentTo(running)), HaveField("Reserved", BeEquivalentTo(reserved)),
	), func() string { return w.story() })
}

// notStalled expects that a run waits for nothing that a person has to do.
func (w *world) notStalled(name string) {
	w.t.Helper()
	w.Expect(meta.FindStatusCondition(w.get(name).Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil(), name)
}
