// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/faultwire"
	"reprise.dev/reprise/internal/invariant"
)

const (
	// patience bounds a history. It is long because the machine may be busy; a history ends as soon as it can.
	patience = 2 * time.Minute
	// quiet is for how long nothing may change in a namespace that has settled: more than the second for which a manager holds
	// back the counts of a queue.
	quiet = 1500 * time.Millisecond
	// notice is how late the work server may see that a caller is gone.
	notice = 2 * time.Second
)

// crash is a death: at write k of a process, before it or when it has landed.
type crash struct {
	k      int
	landed bool
}

func (c crash) String() string {
	if c.landed {
		return fmt.Sprintf("%da", c.k)
	}
	return fmt.Sprintf("%db", c.k)
}

// history is one life of one scenario in a namespace of its own.
type history struct {
	ns       string
	limit    int32
	shift    time.Duration // by which the clock of its processes is ahead
	withDoor bool          // its processes serve direct access
	lease    time.Duration // of processes that are elected; 0: the default

	ctx    context.Context
	cancel context.CancelFunc
	client client.Client
	record *record
	log    *workLog

	mu        sync.Mutex
	processes []*process
	deleted   []types.UID
	settled   bool
	changed   []string // what one more restart has written; nil: there was none
}

// giveUp is what ends a history that cannot go on.
type giveUp struct{ why string }

// newHistory makes the namespace. end must be called.
func newHistory(name string) (*history, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	h := &history{ns: name, limit: 1, ctx: ctx, cancel: cancel, client: seen.client, record: seen.open(name), log: works.open(name)}
	if err := h.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		h.end()
		return nil, fmt.Errorf("making namespace %s: %w", name, err)
	}
	return h, nil
}

// ending counts the histories whose processes have not ended: to notice that they are dead takes them seconds.
var ending sync.WaitGroup

// end kills what is left. The namespace stays: the control plane goes as a whole.
func (h *history) end() {
	h.cancel()
	for _, p := range h.all() {
		p.kill()
		ending.Go(func() { <-p.done })
	}
	seen.close(h.ns)
	works.close(h.ns)
}

// all returns the processes so far.
func (h *history) all() []*process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.processes)
}

// last returns the process that was started last.
func (h *history) last() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.processes[len(h.processes)-1]
}

// attempt runs f, in which giving up ends the history.
func (h *history) attempt(f func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case giveUp:
			err = fmt.Errorf("%s\n%s", p.why, h.story())
		default:
			panic(p)
		}
	}()
	f()
	return nil
}

func (h *history) giveUp(format string, args ...any) { panic(giveUp{fmt.Sprintf(format, args...)}) }

// must gives up on an error.
func (h *history) must(err error, doing string) {
	if err != nil {
		h.giveUp("%s: %v", doing, err)
	}
}

// await waits until the condition holds, whoever lives and dies meanwhile.
func (h *history) await(what string, holds func(view) bool) {
	for {
		v, _, next := h.record.now()
		if holds(v) {
			return
		}
		select {
		case <-next:
		case <-h.ctx.Done():
			h.giveUp("in vain: %s", what)
		}
	}
}

// now returns what there is.
func (h *history) now() view {
	v, _, _ := h.record.now()
	return v
}

// supervise starts a process for each crash, one when the other is dead, and then one that lives.
func (h *history) supervise(crashes []crash) {
	for _, c := range crashes {
		p := h.start(dyingAt(c))
		select {
		case <-p.wire.Died():
		case <-h.ctx.Done():
		}
		if h.ctx.Err() != nil || h.hasSettled() {
			return // it was killed by restart: it never came to its write
		}
	}
	h.start()
}

func (h *history) hasSettled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.settled
}

// settle waits until the process that was started last is ready, everything has come to its end and nothing changes any more.
func (h *history) settle() {
	for {
		p := h.last()
		select {
		case <-p.log.ready:
		case <-p.wire.Died():
			h.pass(50 * time.Millisecond) // the next one comes
			continue
		case <-h.ctx.Done():
			h.giveUp("the last process is not ready")
		}
		if h.still(p) && p == h.last() {
			h.mu.Lock()
			h.settled = true
			h.mu.Unlock()
			return
		}
	}
}

// still reports whether everything has come to its end and nothing changed for long enough. It returns at the first change.
func (h *history) still(p *process) bool {
	writes := p.deeds()
	v, last, next := h.record.now()
	why := v.unsettled()
	var enough <-chan time.Time
	if why == "" {
		timer := time.NewTimer(max(time.Until(last.Add(quiet)), quiet))
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case <-enough:
		return p.deeds() == writes
	case <-next:
	case <-p.wire.Died():
	case <-h.ctx.Done():
		h.giveUp("it does not settle: %s", cmp.Or(why, "something always changes"))
	}
	return false
}

// deeds counts the writes of a process that do more than keep its lease.
func (p *process) deeds() (n int) {
	for _, w := range p.wire.Writes() {
		if w.Resource != "leases" {
			n++
		}
	}
	return n
}

// pass lets a little time pass where there is nothing to wait for.
func (h *history) pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.ctx.Done():
	}
}

// restart kills the last process, starts another and has it come to rest: what that one writes is what a restart changes.
func (h *history) restart() *process {
	h.last().kill()
	p := h.start()
	h.settle()
	changed := []string{}
	for _, w := range p.wire.Writes() {
		if ofOurs(w) && w.Code < http.StatusMultipleChoices {
			changed = append(changed, w.String())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed = changed
	return p
}

// ofOurs reports whether a restart must not write this. It takes the Lease and raises the epoch of every ledger.
func ofOurs(w faultwire.Request) bool {
	return w.Resource != "leases" && w.Resource != "queueledgers" && w.Resource != "events"
}

// check looks for broken invariants.
func (h *history) check() invariant.Report {
	h.mu.Lock()
	deleted, settled, changed := h.deleted, h.settled, h.changed
	h.mu.Unlock()
	acts := h.log.all(h.ns)
	slices.SortStableFunc(acts, func(a, b invariant.Act) int { return a.At.Compare(b.At) })
	var managers []invariant.Manager
	for _, p := range h.all() {
		managers = append(managers, p.manager())
	}
	return invariant.Check(invariant.History{
		Versions: h.record.all(), Complete: true, Acts: acts, Managers: managers, Notice: notice, Announcements: h.log.announcements(),
		LeaseDuration: h.lease, Deleted: deleted, Until: time.Now(), Settled: settled, RestartChanged: changed,
	})
}

// story tells what there is, and what each process did.
func (h *history) story() string {
	var b strings.Builder
	b.WriteString(h.now().story())
	for _, p := range h.all() {
		_, _ = fmt.Fprintf(&b, "  %s:\n", p.id)
		for _, w := range p.wire.Writes() {
			if w.Resource == "leases" && !p.alone {
				continue // there are many
			}
			_, _ = fmt.Fprintf(&b, "    %3d %s %d\n", w.Write, w, w.Code)
		}
		b.WriteString(p.log.tell())
	}
	return b.String()
}
