// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

func TestARefusedRequestIsNotCarriedOutAndItsErrorIsTheAPIServers(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	config := x.Config(f.base)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/api", &schema.GroupVersion{Version: "v1"}, scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	for code, is := range map[int]func(error) bool{
		http.StatusConflict:            apierrors.IsConflict,
		http.StatusInternalServerError: apierrors.IsInternalError,
		http.StatusGatewayTimeout:      apierrors.IsTimeout,
	} {
		x.OnRequest(func(Request) Verdict { return Refuse(code) })
		err := c.Put().Namespace("ns").Resource("pods").Name("p").Body([]byte("{}")).Do(t.Context()).Error()
		g.Expect(is(err)).To(BeTrue(), "%v", err)
	}
	g.Expect(f.got()).To(BeEmpty())
}

func TestARequestWhoseAnswerIsLostIsCarriedOut(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	x.OnRequest(func(r Request) Verdict {
		if r.Write == 1 && r.Resource == "jobruns" && r.Subresource == "status" && r.Name == "a" && r.Namespace == "ns" && string(r.Body) == "1" {
			return Lose()
		}
		return Verdict{}
	})
	g.Expect(n.write("1")).To(MatchError(ErrLost))
	g.Expect(f.got()).To(HaveLen(1))
	g.Expect(n.write("1")).To(Succeed())
}

func TestALateRequestLandsAlsoWhenTheProcessIsDead(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	until := make(chan struct{})
	asked := make(chan struct{})
	x.OnRequest(func(Request) Verdict {
		close(asked)
		return Late(until)
	})
	late := later(func() error { return n.write("1") })
	within(t, asked)
	x.Cut()
	g.Expect(within(t, late)).To(MatchError(ErrCut))
	g.Expect(f.got()).To(BeEmpty())
	close(until)
	g.Eventually(f.got).WithTimeout(patience).Should(Equal([]string{"PUT " + status}))
}

func TestALateRequestIsAnsweredWhenItHasLanded(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	until := make(chan struct{})
	x.OnRequest(func(Request) Verdict { return Late(until) })
	late := later(func() error { return n.write("1") })
	close(until)
	g.Expect(within(t, late)).To(Succeed())
}

func TestTheAnswerOfAListIsWhatTheTestMakesOfIt(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	n := f.near(x)
	x.OnList(func(r Request, answer []byte) []byte { return append(answer, r.Resource...) })
	_, answer, err := n.send(t.Context(), http.MethodGet, runs, "list of ")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer).To(Equal("list of jobruns"))
	_, answer, err = n.send(t.Context(), http.MethodGet, runs+"/a", "one")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer).To(Equal("one"))
}

func TestTheBodyOfAWatchIsWhatTheTestMakesOfIt(t *testing.T) {
	g, x, f := NewWithT(t), New(), newFar(t)
	x.OnRequest(func(Request) Verdict { return Refuse(http.StatusConflict) })
	x.OnWatch(func(resource string, body io.ReadCloser) io.ReadCloser {
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(resource+"\n"), body), body}
	})
	lines := f.near(x).watches(t.Context())
	g.Expect(lines.Scan()).To(BeTrue())
	g.Expect(lines.Text()).To(Equal("jobruns"))
	f.events <- "one"
	g.Expect(lines.Scan()).To(BeTrue())
	g.Expect(lines.Text()).To(Equal("one"))
}
