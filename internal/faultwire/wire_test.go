// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"reprise.dev/reprise/internal/operator"
)

func TestWritesOfEveryKindAreCountedAndReadsAreNot(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	for _, r := range []struct{ method, path, body string }{
		{http.MethodGet, runs, ""},
		{http.MethodPost, runs, `{"metadata":{"name":"a"}}`},
		{http.MethodPut, status, `{}`},
		{http.MethodPatch, runs + "/a", `{}`},
		{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/ns/events", `{"metadata":{"generateName":"e-"}}`},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l", `{}`},
		{http.MethodPut, "/api/v1/namespaces/ns/status", `{}`},
		{http.MethodDelete, "/api/v1/namespaces/ns/pods/p", ``},
	} {
		_, _, err := n.send(t.Context(), r.method, r.path, r.body)
		g.Expect(err).NotTo(HaveOccurred())
	}
	var told []string
	for i, r := range x.Writes() {
		told = append(told, fmt.Sprintf("%s %s %d", r, r.Namespace, r.Code))
		g.Expect(r.Write).To(Equal(i + 1))
	}
	g.Expect(told).To(Equal([]string{
		"POST jobruns a ns 200",
		"PUT jobruns/status a ns 200",
		"PATCH jobruns a ns 200",
		"POST events e- ns 200",
		"PUT leases l ns 200",
		"PUT namespaces/status ns  200",
		"DELETE pods p ns 200",
	}))
}

func TestAProcessThatDiesBeforeAWriteHasNotSentItNorAnythingAfterIt(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	x.DieAt(2, false)
	g.Expect(n.write("1")).To(Succeed())
	g.Expect(n.read()).To(Succeed())
	g.Expect(n.write("2")).To(MatchError(ErrCut))
	g.Expect(x.Died()).To(BeClosed())
	g.Expect(n.write("3")).To(MatchError(ErrCut))
	g.Expect(n.read()).To(MatchError(ErrCut))
	g.Expect(f.got()).To(Equal([]string{"PUT " + status, "GET " + runs + "/a"}))
	g.Expect(x.Writes()).To(HaveLen(2))
}

func TestAProcessThatDiesAfterAWriteNeverSeesItsAnswer(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	x.DieAt(2, true)
	g.Expect(n.write("1")).To(Succeed())
	g.Expect(n.write("2")).To(MatchError(ErrCut))
	g.Expect(x.Died()).To(BeClosed())
	g.Expect(n.write("3")).To(MatchError(ErrCut))
	g.Expect(f.got()).To(HaveLen(2))
	g.Expect(x.Writes()[1].Code).To(Equal(http.StatusOK))
}

func TestNothingGoesOutWhileTheLastWriteLands(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	f.holding = make(chan struct{})
	x.DieAt(1, true)
	last := later(func() error { return n.write("1") })
	g.Eventually(f.got).WithTimeout(patience).Should(HaveLen(1))
	next := later(n.read)
	close(f.holding)
	g.Expect(within(t, last)).To(MatchError(ErrCut))
	g.Expect(within(t, next)).To(MatchError(ErrCut))
	g.Expect(f.got()).To(BeEmpty())
}

func TestAProcessThatNeverComesToItsWriteLives(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	x.DieAt(2, false)
	g.Expect(n.write("1")).To(Succeed())
	g.Expect(x.Died()).NotTo(BeClosed())
}

func TestACutEndsWhatIsInFlight(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	f.holding = make(chan struct{})
	flying := later(n.read)
	g.Eventually(f.got).WithTimeout(patience).Should(HaveLen(1))
	x.Cut()
	g.Expect(within(t, flying)).To(MatchError(ErrCut))
	close(f.holding)
}

func TestACutEndsAWatch(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	lines := f.near(x).watches(t.Context())
	f.events <- "one"
	g.Expect(lines.Scan()).To(BeTrue())
	more := later(lines.Scan)
	x.Cut()
	g.Expect(within(t, more)).To(BeFalse())
	g.Expect(lines.Err()).To(HaveOccurred())
}

func TestTheCallsOfAProcessEndWithIt(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	o := operator.DefaultOptions()
	o.AllowedOutgoing = loopback
	x.Mortal(&o)
	f.holding = make(chan struct{})
	defer close(f.holding)
	call := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url, nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := o.Outgoing.Do(r)
		if err == nil {
			err = errors.Join(response.Body.Close(), errors.New("it was answered"))
		}
		return err
	}
	calling := later(call)
	g.Eventually(f.got).WithTimeout(patience).Should(HaveLen(1))
	o.Exit()
	g.Expect(within(t, calling)).To(MatchError(ErrCut))
	g.Expect(x.Died()).To(BeClosed())
	g.Expect(x.Exits()).To(Equal(1))
	g.Expect(call()).To(MatchError(ErrCut))
	g.Expect(f.got()).To(BeEmpty())
}
