// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAServerBehindANameIsNotCalledAtARefusedAddressThoughItWouldAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	defer server.Close()
	names := nameServer(t, map[string][]string{"here.test.": {"127.0.0.1"}})
	_, err := get(t, client(t, newTransport(nil, names)), "http://"+net.JoinHostPort("here.test", port(server.Listener.Addr())))
	if forbidden := (*Forbidden)(nil); !errors.As(err, &forbidden) {
		t.Errorf("got %v", err)
	}
}
