// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestUsageIsSummedByMethodAndByQueue(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="h",method="GET"} 3
rest_client_requests_total{code="404",host="h",method="GET"} 1
rest_client_requests_total{code="201",host="h",method="POST"} 5
# TYPE workqueue_adds_total counter
workqueue_adds_total{name="cronjob"} 7
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.5
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1000
`)
	}))
	defer server.Close()
	u, err := usage(t.Context(), server.Client(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if u.Requests["GET"] != 4 || u.Sum() != 9 || u.Added["cronjob"] != 7 || u.CPU != 1.5 || u.Resident != 1000 {
		t.Errorf("what was used is %+v", u)
	}
}

func TestAnAnswerThatIsNoMetricsIsAnError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if _, err := usage(t.Context(), server.Client(), server.URL); err == nil {
		t.Error("it was taken for nothing used")
	}
}
