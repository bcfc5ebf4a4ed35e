// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// send sends a request once and returns the code and Retry-After of the answer, or the error.
func send(t *testing.T, c *http.Client, method, url string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	response, err := c.Do(r)
	if err != nil {
		return "", err
	}
	_ = response.Body.Close()
	return strings.TrimSpace(fmt.Sprint(response.StatusCode, " ", response.Header.Get("Retry-After"))), nil
}

func TestEachFaultIsWhatItsNameSays(t *testing.T) {
	for fault, want := range map[Fault]struct {
		carriedOut bool
		answer     string // "": the connection breaks
		read       string // what a read gets
	}{
		Conflict:  {answer: "409", read: "200"},
		Throttled: {answer: "429 1", read: "429 1"},
		Failed:    {answer: "500", read: "500"},
		Reset:     {},
		TimedOut:  {carriedOut: true, answer: "504", read: "504"},
		Repeated:  {carriedOut: true, answer: "500 1", read: "200"},
		Lost:      {carriedOut: true},
	} {
		t.Run(string(fault), func(t *testing.T) {
			g := NewWithT(t)
			a := newAsked(t, fine)
			f := NewFaults(Plan{Faults: []Fault{fault}, Probability: 1, InARow: 1})
			c := a.on(t, f.Config)
			for method, answer := range map[string]string{http.MethodPut: want.answer, http.MethodGet: want.read} {
				got, err := send(t, c, method, a.URL+"/api/v1/namespaces/ns/pods/a")
				g.Expect(got).To(Equal(answer))
				if answer == "" {
					g.Expect(err).To(MatchError(syscall.ECONNRESET))
				}
			}
			puts := 0
			for _, r := range a.log() {
				if strings.HasPrefix(r, "PUT") {
					puts++
				}
			}
			g.Expect(puts == 1).To(Equal(want.carriedOut))
		})
	}
}

func TestFaultsInARowAreBounded(t *testing.T) {
	g := NewWithT(t)
	a := newAsked(t, fine)
	f := NewFaults(Plan{Faults: []Fault{Failed}, Probability: 1, InARow: 2})
	c := a.on(t, f.Config)
	var got []string
	for range 4 {
		code, err := send(t, c, http.MethodPut, a.URL+"/a")
		g.Expect(err).NotTo(HaveOccurred())
		got = append(got, code)
	}
	g.Expect(got).To(Equal([]string{"500", "500", "200", "500"}))
	g.Expect(f.Counts()).To(Equal(map[Fault]int{Failed: 3}))
	f.End()
	g.Expect(send(t, c, http.MethodPut, a.URL+"/a")).To(Equal("200"))
}

func TestFaultsAreAsProbableAsThePlanSaysAndTheSameForASeed(t *testing.T) {
	g := NewWithT(t)
	a := newAsked(t, fine)
	var rounds []string
	for range 2 {
		f := NewFaults(Plan{Seed: 3, Faults: AllFaults, Probability: 0.25, InARow: 1})
		c := a.on(t, f.Config)
		var round strings.Builder
		happened := 0
		for i := range 200 {
			code, err := send(t, c, http.MethodPut, fmt.Sprintf("%s/%d", a.URL, i))
			if err != nil || code != "200" {
				happened++
			}
			fmt.Fprintln(&round, code)
		}
		g.Expect(happened).To(BeNumerically("~", 50, 20))
		g.Expect(f.Counts()).To(HaveLen(len(AllFaults)))
		rounds = append(rounds, round.String())
	}
	g.Expect(rounds[1]).To(Equal(rounds[0]))
}
