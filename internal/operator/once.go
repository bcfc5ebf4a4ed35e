// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http"
	"strings"
)

// once has the creation of a Job sent once. What is refused with Retry-After, client-go sends again by itself, a second or more
// later. But the first may have been carried out, and a person may have deleted the run since, and with it the Job, whose name is
// free then: the work would begin anew. Whoever sees the error looks at the run before the next try.
type once struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/apis/batch/") && strings.HasSuffix(r.URL.Path, "/jobs") {
		response.Header.Del("Retry-After")
	}
	return response, err
}
