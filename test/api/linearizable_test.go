// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Slots, types and resources are taken and given back by many at once, by runs and by holders of reservations. Each does so
// at one moment between what it asked for and what it saw. A history is right if there are such moments at which nobody ever
// had more than the queue has.

// need is what one run or reservation takes.
type need struct{ kind, resource string }

// taking is an operation of the history.
type taking struct {
	need
	back bool // given back
}

// bounds are the limits of the queue of the test.
var bounds = map[string]int{"slot": 3, "type/story": 1, "type/research": 2, "resource/ollama": 1, "resource/remote": 2}

func (n need) takes() []string {
	taken := []string{"slot"}
	if n.kind != "" {
		taken = append(taken, "type/"+n.kind)
	}
	if n.resource != "" {
		taken = append(taken, "resource/"+n.resource)
	}
	return taken
}

// inUse is the state of the model: how many of each are taken. A value, so that states can be compared.
type inUse [5]int

var places = []string{"slot", "type/story", "type/research", "resource/ollama", "resource/remote"}

// step takes or gives back, and reports whether the queue has that much.
func (u inUse) step(t taking) (bool, inUse) {
	for _, what := range t.takes() {
		for i, place := range places {
			switch {
			case place != what:
			case t.back:
				u[i]--
			default:
				u[i]++
			}
			if u[i] > bounds[place] || u[i] < 0 {
				return false, u
			}
		}
	}
	return true, u
}

var slotsModel = porcupine.Model{
	Init: func() any { return inUse{} },
	Step: func(state, input, _ any) (bool, any) { return state.(inUse).step(input.(taking)) },
}

// history collects operations.
type history struct {
	mu         sync.Mutex
	begun      time.Time
	operations []porcupine.Operation
}

func (h *history) add(client int, t taking, from, to time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{
		ClientId: client, Input: t, Call: from.Sub(h.begun).Nanoseconds(), Return: to.Sub(h.begun).Nanoseconds(),
	})
}

func (h *history) check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(slotsModel, h.operations, patience)
}

func TestTheCheckOfHistoriesFindsOneSlotTooMany(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needs []need
		want  porcupine.CheckResult
	}{
		"as many as there are slots":  {[]need{{}, {}, {}}, porcupine.Ok},
		"one more than that":          {[]need{{}, {}, {}, {}}, porcupine.Illegal},
		"two of a type that has one":  {[]need{{kind: "story"}, {kind: "story"}}, porcupine.Illegal},
		"two of a resource, of one":   {[]need{{resource: "ollama"}, {kind: "research", resource: "ollama"}}, porcupine.Illegal},
		"different types and claims":  {[]need{{kind: "story", resource: "ollama"}, {kind: "research", resource: "remote"}}, porcupine.Ok},
		"two of a resource, of three": {[]need{{resource: "remote"}, {resource: "ollama"}}, porcupine.Ok},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{begun: time.Unix(0, 0)}
			at := func(n int) time.Time { return h.begun.Add(time.Duration(n) * time.Second) }
			for i, n := range c.needs {
				h.add(i, taking{need: n}, at(i), at(i+1))
				h.add(i, taking{need: n, back: true}, at(100+i), at(200+i)) // while all others hold theirs
			}
			NewWithT(t).Expect(h.check()).To(Equal(c.want))
		})
	}
}

// crowd is clients that take and give back at one queue, and the history of it.
type crowd struct {
	*world
	history
	server *httptest.Server

	working sync.Map // from the path of a call to what its client is told
}

// work is what a client is told of the call of its run.
type work struct{ began, ends chan time.Time }

func newCrowd(t *testing.T) *crowd {
	c := &crowd{world: newWorld(t), history: history{begun: time.Now()}}
	c.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began := time.Now()
		if w, ok := c.working.Load(r.URL.Path); ok {
			w.(work).began <- began
			w.(work).ends <- time.Now()
		}
	}))
	t.Cleanup(c.server.Close)
	c.queue("crowd", int32(bounds["slot"]), func(q *batchv1alpha1.JobQueue) {
		for place, n := range bounds {
			switch sort, name := filepath.Split(place); sort {
			case "type/":
				q.Spec.Concurrency.Types = append(q.Spec.Concurrency.Types, batchv1alpha1.TypeConcurrency{Name: name, Limit: ptr.To(int32(n))})
			case "resource/":
				q.Spec.Concurrency.Resources = append(q.Spec.Concurrency.Resources, batchv1alpha1.QueueResource{Name: name, Capacity: int32(n)})
			}
		}
	})
	return c
}

func (n need) claims() []batchv1alpha1.ResourceClaim {
	if n.resource == "" {
		return nil
	}
	return []batchv1alpha1.ResourceClaim{{Name: n.resource, Count: 1}}
}

// run takes by a run, whose call is its work.
func (c *crowd) run(client int, name string, n need) error {
	told := work{began: make(chan time.Time, 1), ends: make(chan time.Time, 1)}
	c.working.Store("/"+name, told)
	r := c.httpRun(name, c.server.URL+"/"+name, inQueue("crowd"), ofType(n.kind), func(r *batchv1alpha1.JobRun) { r.Spec.Claims = n.claims() })
	asked := time.Now()
	if err := c.Create(c.ctx, r); err != nil {
		return err
	}
	c.add(client, taking{need: n}, asked, <-told.began)
	ends := <-told.ends
	return c.until(r, func() bool { return r.Status.Slot == batchv1alpha1.SlotFree }, func() {
		c.add(client, taking{need: n, back: true}, ends, time.Now())
	})
}

// reserveSlot takes by a reservation.
func (c *crowd) reserveSlot(client int, name string, n need) error {
	dr := c.reserve(name, func(dr *batchv1alpha1.DirectReservation) {
		dr.Spec.Queue, dr.Spec.Type, dr.Spec.Claims = "crowd", n.kind, n.claims()
	})
	asked := time.Now()
	if err := c.Create(c.ctx, dr); err != nil {
		return err
	}
	granted := func() bool { return dr.Status.Phase == batchv1alpha1.ReservationGranted }
	if err := c.until(dr, granted, func() { c.add(client, taking{need: n}, asked, time.Now()) }); err != nil {
		return err
	}
	ends := time.Now()
	c.release(name)
	released := func() bool { return dr.Status.Phase == batchv1alpha1.ReservationReleased }
	return c.until(dr, released, func() { c.add(client, taking{need: n, back: true}, ends, time.Now()) })
}

// until reads the object until something holds, and then does what follows.
func (c *crowd) until(o client.Object, holds func() bool, then func()) error {
	return wait.PollUntilContextTimeout(c.ctx, 5*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil || !holds() {
			return false, err
		}
		then()
		return true, nil
	})
}

func TestSlotsTypesAndResourcesAreLinearizableOverConcurrentRunsAndReservations(t *testing.T) {
	t.Parallel()
	const clients, rounds = 8, 8
	needs := []need{{}, {kind: "story"}, {kind: "research"}, {resource: "ollama"}, {kind: "story", resource: "ollama"}, {kind: "research", resource: "remote"}, {resource: "remote"}}
	c := newCrowd(t)
	c.start()
	var group errgroup.Group
	for i := range clients {
		group.Go(func() error {
			for round := range rounds {
				take := c.run
				if i%2 == 0 {
					take = c.reserveSlot
				}
				if err := take(i, fmt.Sprintf("client-%d-%d", i, round), needs[(3*i+5*round)%len(needs)]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	c.Expect(group.Wait()).To(Succeed())
	c.Expect(c.operations).To(HaveLen(2 * clients * rounds))
	c.Expect(c.check()).To(Equal(porcupine.Ok))
}
