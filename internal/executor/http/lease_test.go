// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"net/http"
	"testing"
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheRequestItselfIsBoundByTheLease(t *testing.T) {
	b := newBench(t, nil)
	sent := make(chan context.Context, 1)
	b.options.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		sent <- r.Context()
		<-r.Context().Done()
		return nil, r.Context().Err()
	})}
	r := claimed("a", batchv1alpha1.HTTPWork{URL: "http://server.test"})
	b.start(r)
	request := await(t, "the request", sent)
	b.leader.lose()
	select {
	case <-request.Done():
	case <-time.After(5 * time.Second):
		t.Error("the request goes on though the lease is lost")
	}
	b.stop(r)
	b.awaitEnd(r)
}

func TestAManagerThatHasDrainedItsCallsMakesNoMore(t *testing.T) {
	b := newBench(t, nil)
	b.options.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		t.Error("a call was made")
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	})}
	b.Drain(t.Context())
	want(t, b.outcome(claimed("late", batchv1alpha1.HTTPWork{URL: "http://server.test"})), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonManagerShutdown,
		"no call was made: the manager was stopping")
}
