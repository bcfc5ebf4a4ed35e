// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWhatARequestAsksFor(t *testing.T) {
	const queue, run = "/v1/namespaces/ns/queues/main/direct", "/v1/namespaces/ns/jobruns/a.b/retry"
	for _, c := range []struct {
		method, path string
		want         route
		status       int
	}{
		{"GET", queue + "/", route{namespace: "ns", queue: "main", rest: "/"}, 0},
		{"POST", queue, route{namespace: "ns", queue: "main"}, 0},
		{"HEAD", queue + "/a/b", route{namespace: "ns", queue: "main", rest: "/a/b"}, 0},
		{"PUT", queue + "//a//b/", route{namespace: "ns", queue: "main", rest: "//a//b/"}, 0},
		{"PATCH", queue + "/a%2Fb%20c?x=y", route{namespace: "ns", queue: "main", rest: "/a%2Fb%20c"}, 0},
		{"DELETE", queue + "/http://elsewhere/", route{namespace: "ns", queue: "main", rest: "/http://elsewhere/"}, 0},
		{"POST", run, route{namespace: "ns", run: "a.b"}, 0},
		{"OPTIONS", queue + "/", route{}, 404},
		{"CONNECT", queue + "/", route{}, 404},
		{"GET", run, route{}, 404},
		{"POST", run + "/", route{}, 404},
		{"GET", "/", route{}, 404},
		{"GET", "/healthz", route{}, 404},
		{"GET", "/v1/namespaces/ns/queues/main", route{}, 404},
		{"GET", "/v1/namespaces/ns/queues/main/direct-not", route{}, 404},
		{"GET", "/v1/namespaces/../queues/main/direct/", route{}, 404},
		{"GET", "/v1/namespaces/ns%2Fother/queues/main/direct/", route{}, 404},
		{"GET", "/v1/namespaces/ns/queues/Main/direct/", route{}, 404},
		{"GET", "/v2/namespaces/ns/queues/main/direct/", route{}, 404},
		{"GET", "/x/v1/namespaces/ns/queues/main/direct/", route{}, 404},
		{"POST", "/v1/namespaces/ns/jobruns/..%2Fa/retry", route{}, 404},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "https://front.test"+c.path, nil)
			r.Method = c.method
			got, p := routed(r)
			status := 0
			if p != nil {
				status = p.status
			}
			if got != c.want || status != c.status {
				t.Errorf("%+v and %d, want %+v and %d", got, status, c.want, c.status)
			}
		})
	}
}

func TestAnUpgradeIsNotSupported(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "https://front.test/v1/namespaces/ns/queues/main/direct/", nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	if _, p := routed(r); p == nil || p.status != http.StatusNotImplemented {
		t.Errorf("%+v", p)
	}
}
