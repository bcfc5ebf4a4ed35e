// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"io"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// speaking is a server that says one thing each time it is asked to.
func speaking(t *testing.T) (url string, say chan<- func(http.ResponseWriter)) {
	t.Helper()
	things := make(chan func(http.ResponseWriter))
	s := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		for {
			select {
			case thing, more := <-things:
				if !more {
					return
				}
				thing(rw)
			case <-r.Context().Done():
				return
			}
		}
	})
	return s.URL, things
}

func interim(rw http.ResponseWriter) { rw.WriteHeader(http.StatusProcessing) }

func headers(rw http.ResponseWriter) {
	rw.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(rw).Flush()
}

func body(rw http.ResponseWriter) {
	_, _ = io.WriteString(rw, ".")
	_ = http.NewResponseController(rw).Flush()
}

func TestEveryByteOfAResponseIsASignOfLife(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(30 * time.Second)
	b := newBench(t, loopback)
	url, say := speaking(t)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: url})
	b.start(r)
	g.Expect(b.look(r).LastSign).To(BeZero(), "that a call is made is none")

	for _, c := range []struct {
		what  string
		thing func(http.ResponseWriter)
	}{
		{"an interim response", interim}, {"another one", interim}, {"the headers", headers}, {"a byte of the body", body}, {"another one", body},
	} {
		b.clock.Step(time.Minute)
		say <- c.thing
		g.Eventually(func() bool { return b.look(r).LastSign.Equal(b.clock.Now()) }).Should(BeTrue(), c.what)
		g.Expect(b.look(r).Life).To(Equal(executor.Alive))
	}
	last := b.clock.Now()
	b.clock.Step(time.Minute)
	g.Expect(b.look(r).LastSign.Equal(last)).To(BeTrue(), "silence is none")
	close(say)
	b.awaitEnd(r)
	g.Expect(b.result(r).Phase).To(Equal(batchv1alpha1.JobRunCompleted))
}

func TestACallThatIsNeverAnsweredGivesNoSign(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, loopback)
	s, reached := silent(t)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(r)
	await(t, "the request", reached)
	b.clock.Step(time.Minute)
	g.Expect(b.look(r).LastSign).To(BeZero())
	b.stop(r)
	b.awaitEnd(r)
}

func TestAPersonsWordCountsForTheCallOfAProcessWhoseEndCannotBeSeen(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: "http://127.0.0.1/"})
	r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "other", Epoch: "1700000000.6"}
	g.Expect(b.stop(r).Stopped).To(BeFalse())
	g.Expect(b.stop(r).Confirmable).To(BeTrue())
	b.gone["other"] = true
	g.Expect(b.stop(r).Stopped).To(BeTrue())
}

func TestAPersonsWordDoesNotCountForACallOfThisProcessWhichKnowsBetter(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, loopback)
	s, reached := silent(t)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(r)
	await(t, "the request", reached)
	g.Expect(b.look(r).Confirmable).To(BeFalse())
	b.stop(r)
	b.awaitEnd(r)
	g.Expect(b.stop(r).Stopped).To(BeTrue())
}
