// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// errEnded is what the remains of a process hear that has been killed.
var errEnded = errors.New("the process has ended")

// errBroken is a connection that broke before the answer came.
var errBroken = &url.Error{Op: "Request", URL: "https://api", Err: io.ErrUnexpectedEOF}

// request is something that a process asks of the API server, on its way.
type request struct {
	process *process
	// key tells what is asked, and by which controller for which object; n how often it was asked before.
	key   string
	n     int
	write bool
	// changes is what an update or patch is about: somebody else may write it right before.
	changes client.Object
	// makes is what a creation makes.
	makes client.Object
	// carry carries it out at the server. What came of it is shown to the process only with the answer.
	carry  func() error
	answer chan error
	// web is set of a request to a web server; abort, if its caller has hung up.
	web   *exchange
	abort bool
}

func (r *request) name() string { return fmt.Sprintf("%s %s #%d", r.process.id, r.key, r.n) }

// order puts a request before the news that its caller has hung up.
func (r *request) order() int {
	if r.abort {
		return 1
	}
	return 0
}

// fault is something that goes wrong with a request.
type fault string

const (
	faultConflict fault = "conflict"
	faultTooMany  fault = "429"
	faultInternal fault = "500"
	faultRefused  fault = "refused"
	faultLost     fault = "answer lost"
	faultStray    fault = "answer lost, lands late"
	faultSlow     fault = "slow"
)

// network is where the requests of all processes wait for the scheduler.
type network struct {
	mu      sync.Mutex
	arrived []*request
	// wake tells the scheduler that something has arrived.
	wake chan struct{}
}

func newNetwork() *network { return &network{wake: make(chan struct{}, 1)} }

func (n *network) arrive(r *request) {
	n.mu.Lock()
	n.arrived = append(n.arrived, r)
	n.mu.Unlock()
	n.signal()
}

func (n *network) signal() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take returns what has arrived, in an order that does not depend on the order of arrival.
func (n *network) take() []*request {
	n.mu.Lock()
	defer n.mu.Unlock()
	arrived := n.arrived
	n.arrived = nil
	slices.SortStableFunc(arrived, func(a, b *request) int {
		if c := strings.Compare(a.process.id, b.process.id); c != 0 {
			return c
		}
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.order(), b.order()))
	})
	return arrived
}

// ask sends a request of the process and waits for the answer.
func (p *process) ask(ctx context.Context, key string, write bool, changes, makes client.Object, carry func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.ended() {
		return errEnded
	}
	r := &request{process: p, key: key, write: write, changes: changes, makes: makes, carry: carry, answer: make(chan error, 1)}
	p.sim.network.arrive(r)
	select {
	case err := <-r.answer:
		if p.ended() {
			return errEnded
		}
		return err
	case <-p.dead:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// admit takes what has arrived and decides what becomes of it.
func (s *sim) admit() {
	for _, r := range s.network.take() {
		p := r.process
		switch {
		case r.abort:
			s.hangUp(r.web)
		case p.ended():
			// It was never sent.
		case p.paused:
			p.held = append(p.held, r)
		default:
			s.send(r)
		}
	}
}

// send puts a request on its way.
func (s *sim) send(r *request) {
	if r.web != nil {
		s.call(r)
		return
	}
	p := r.process
	p.sent++
	r.n = p.asked[r.key]
	p.asked[r.key]++
	s.stats.Requests++
	c := s.chance.of(r.name())
	if s.dies(r) {
		return
	}
	there, back := s.delay(c.of("there")), s.delay(c.of("back"))
	f := s.faultOf(r, c)
	if f == faultSlow {
		there += c.of("slow").between(time.Second, time.Minute)
	}
	due := s.now().Add(there)
	switch f {
	case faultTooMany, faultInternal, faultRefused:
		s.agenda.add(due, r.name(), func() { s.reply(r, refusal(f), string(f)) })
	case faultStray:
		s.agenda.add(due, r.name(), func() { s.reply(r, errBroken, string(f)) })
		late := c.of("late").between(10*time.Millisecond, 2*time.Minute)
		s.agenda.add(due.Add(late), r.name()+" late", func() { _ = s.land(r, "late") })
	default:
		s.agenda.add(due, r.name(), func() {
			if f == faultConflict {
				s.touch(r)
			}
			err := s.land(r, string(f))
			if f == faultLost {
				err = errBroken
			}
			s.agenda.add(s.now().Add(back), r.name()+" answer", func() { s.reply(r, err, "") })
		})
	}
}

// land carries a request out.
func (s *sim) land(r *request, how string) error {
	if r.process.ended() && !s.chance.of(r.name()).of("outlives").hits(0.6) {
		return errEnded // it was still in the dead process's buffers
	}
	if s.comesTooLate(r) {
		s.stats.TooLate++
		s.trace("%s is not carried out: a person has deleted its run, and its Job with it", r.name())
		return errBroken
	}
	before := s.server.RV()
	err := r.carry()
	if s.server.RV() != before || err != nil {
		s.trace("%s%s -> %s", r.name(), suffix(how), s.result(err))
	}
	s.changed()
	return err
}

// comesTooLate reports whether a request makes the Job of a run that has been deleted. Whoever deletes a run whose creation of a
// Job is still on its way takes away what would keep it out: that is documented, and not what is looked for here.
func (s *sim) comesTooLate(r *request) bool {
	job, ok := r.makes.(*batchv1.Job)
	if !ok || ptr.Deref(job.Spec.Suspend, false) { // what is suspended is a placeholder, and harms nobody
		return false
	}
	owner, run := metav1.GetControllerOf(job), &batchv1alpha1.JobRun{}
	err := s.direct.Get(context.Background(), client.ObjectKey{Namespace: job.Namespace, Name: owner.Name}, run)
	return err != nil || run.UID != owner.UID
}

// result says in few words what came of a request.
func (s *sim) result(err error) string {
	if err != nil {
		return firstLine(err.Error())
	}
	return fmt.Sprintf("rv %d", s.server.RV())
}

// reply answers a request, unless nobody hears it.
func (s *sim) reply(r *request, err error, how string) {
	p := r.process
	if how != "" {
		s.trace("%s answered: %s", r.name(), how)
	}
	if p.paused && !p.ended() {
		p.unheard = append(p.unheard, func() { s.reply(r, err, "") })
		return
	}
	r.answer <- err
}

func suffix(how string) string {
	if how == "" {
		return ""
	}
	return " (" + how + ")"
}

func firstLine(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	if len(s) > 160 {
		s = s[:160] + "…"
	}
	return s
}

// touch has somebody else write what a request is about.
func (s *sim) touch(r *request) {
	o := blank(r.changes)
	if s.direct.Get(context.Background(), client.ObjectKeyFromObject(r.changes), o) != nil {
		return
	}
	annotations := map[string]string{}
	maps.Copy(annotations, o.GetAnnotations())
	annotations["simulation.reprise.dev/touched"] = fmt.Sprint(s.server.RV())
	o.SetAnnotations(annotations)
	s.must(s.direct.Update(context.Background(), o))
	s.changed()
}

// refusal is the answer to a request that was not carried out.
func refusal(f fault) error {
	switch f {
	case faultTooMany:
		return apierrors.NewTooManyRequests("too many requests", 1)
	case faultInternal:
		return apierrors.NewInternalError(errors.New("etcd has no leader"))
	default:
		return &url.Error{Op: "Request", URL: "https://api", Err: errors.New("connection refused")}
	}
}
