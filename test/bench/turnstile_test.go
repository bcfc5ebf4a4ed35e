// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"testing"
)

func TestATurnstileHoldsACallUntilItIsLetThrough(t *testing.T) {
	turnstile := NewTurnstile()
	defer turnstile.Close()
	ended := make(chan error, 1)
	go func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, turnstile.URL(), nil)
		if err != nil {
			ended <- err
			return
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		ended <- err
	}()
	came, err := turnstile.Arrive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Fatalf("the call ended before it was let through: %v", err)
	default:
	}
	went, err := turnstile.Pass(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || went.Before(came) {
		t.Errorf("the call came %s, went %s: %v", came, went, err)
	}
}
