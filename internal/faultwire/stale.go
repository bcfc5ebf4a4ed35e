// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Blur says how badly a process sees the API server through its caches. What it reads past them is never touched.
type Blur struct {
	// Seed of everything that chance decides here.
	Seed uint64
	// Lag is for how long an event of a watch may be held back; half of them are, the order of a kind is kept. 0: none.
	Lag time.Duration
	// Merge is how probable it is, event for event, that all that is held back of a kind is seen as one change of each object:
	// the states between are never seen, nor is an object that came and went, or that one was made anew under its old name.
	Merge float64
	// Expire is how probable it is, event for event, that the watch ends with 410 Gone a while later, so that the process lists
	// again and never sees what happened in between.
	Expire float64
	// Break is how probable it is, event for event, that the watch breaks off in the middle of it.
	Break float64
	// Ends is how many watches of each kind may expire or break off. The process pauses ever longer after each.
	Ends int
	// Back returns the resourceVersion as of which a kind is listed when a cache first fills, "" for the latest. The API server
	// must still know that version. May be nil.
	Back func(resource string) string
}

// Seen counts what a View did.
type Seen struct {
	// Events that the API server sent, and how many of them were held back.
	Events, Late int
	// Unseen events were merged into others. Those that a process missed while it did not watch are not counted.
	Unseen int
	// Expired and Broken watches.
	Expired, Broken int
	// Back counts lists that were answered as of an older version.
	Back int
}

// View is what one process sees of the API server through its caches.
type View struct {
	blur    Blur
	cleared chan struct{}
	once    sync.Once

	mu    sync.Mutex
	seen  Seen
	ends  map[string]int
	turns map[string]uint64
	back  map[string]bool
}

// NewView returns the view of a process whose sight is blurred.
func NewView(b Blur) *View {
	return &View{blur: b, cleared: make(chan struct{}), ends: map[string]int{}, turns: map[string]uint64{}, back: map[string]bool{}}
}

// Clear lets the process see everything at once from now on.
func (v *View) Clear() { v.once.Do(func() { close(v.cleared) }) }

// Seen returns the counts so far.
func (v *View) Seen() Seen {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen
}

// Config is the connection of a process that sees so. Its watches are in JSON, and begin with a list: initial events are not
// streamed, so that there is one way for a cache to fill, which every API server has.
func (v *View) Config(base *rest.Config) *rest.Config {
	c := rest.CopyConfig(base)
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return sight{view: v, next: next} })
	return c
}

// Watch blurs the body of a watch in JSON.
func (v *View) Watch(resource string, source io.ReadCloser) io.ReadCloser {
	in, out := io.Pipe()
	s := &stream{
		view: v, resource: resource, random: v.random(resource), source: source, out: out,
		arrived: make(chan event), ended: make(chan error, 1), closed: make(chan struct{}),
	}
	go s.read()
	go s.deliver()
	return &body{PipeReader: in, stream: s}
}

// random is the chance of the next watch of a kind.
func (v *View) random(resource string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(resource))
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turns[resource]++
	return rand.New(rand.NewPCG(v.blur.Seed, h.Sum64()+v.turns[resource]))
}

func (v *View) count(change func(*Seen)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change(&v.seen)
}

func (v *View) clear() bool {
	select {
	case <-v.cleared:
		return true
	default:
		return false
	}
}

// late is for how long something is held back.
func (v *View) late(random *rand.Rand) time.Duration {
	if v.blur.Lag == 0 || random.IntN(2) == 0 || v.clear() {
		return 0
	}
	return time.Duration(random.Int64N(int64(v.blur.Lag)))
}

// turn is what happens with the next event of a watch.
type turn int

const (
	delivered turn = iota
	merges
	expires
	breaks
)

func (v *View) turn(resource string, random *rand.Rand) turn {
	chance := random.Float64()
	if v.clear() {
		return delivered
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	mayEnd := v.ends[resource] < v.blur.Ends
	switch b := v.blur; {
	case chance < b.Merge:
		return merges
	case chance < b.Merge+b.Expire && mayEnd:
		v.ends[resource]++
		v.seen.Expired++
		return expires
	case chance >= b.Merge+b.Expire && chance < b.Merge+b.Expire+b.Break && mayEnd:
		v.ends[resource]++
		v.seen.Broken++
		return breaks
	}
	return delivered
}

// past returns the version that the first list of a cache is answered as of, "" for the latest.
func (v *View) past(resource string) string {
	if v.blur.Back == nil || v.clear() {
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.back[resource] {
		return ""
	}
	v.back[resource] = true
	return v.blur.Back(resource)
}

// sight is where the caches of a process look through.
type sight struct {
	view *View
	next http.RoundTripper
}

// RoundTrip carries out one request.
func (s sight) RoundTrip(r *http.Request) (*http.Response, error) {
	query, resource := r.URL.Query(), resourceOf(r.URL.Path)
	switch {
	case r.Method != http.MethodGet:
	case query.Get("sendInitialEvents") == "true":
		return refusal(r, http.StatusUnprocessableEntity), nil // initial events are not streamed
	case query.Get("watch") == "true":
		response, err := s.next.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK {
			response.Body = s.view.Watch(resource, response.Body)
		}
		return response, err
	case query.Get("limit") != "" && query.Get("continue") == "":
		// The first pages of a kind are those of the cache: nothing is listed past it before it is full. Whatever has been seen
		// before, by another process, it may show something older: what it was given may have been long on the way. The pages that
		// follow are of the same version.
		if rv := s.view.past(resource); rv != "" {
			return s.list(r, query, rv)
		}
	}
	return s.next.RoundTrip(r)
}

// list has a list answered as of an older version, or as usual if the API server has forgotten it.
func (s sight) list(r *http.Request, query url.Values, rv string) (*http.Response, error) {
	query.Set("resourceVersion", rv)
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	old := r.Clone(r.Context())
	old.URL.RawQuery = query.Encode()
	response, err := s.next.RoundTrip(old)
	if err != nil || response.StatusCode != http.StatusOK {
		if err == nil {
			_ = response.Body.Close()
		}
		return s.next.RoundTrip(r)
	}
	s.view.count(func(n *Seen) { n.Back++ })
	return response, nil
}

// resourceOf returns the resource that a path of the API server is of, in the plural; "" if it is of none.
func resourceOf(path string) string {
	r := Request{Path: path}
	r.parsePath()
	return r.Resource
}
