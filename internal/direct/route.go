// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// route is what a request asks for.
type route struct {
	namespace string
	// queue of a direct request.
	queue string
	// rest of the path of a direct request, still escaped: "" or "/…".
	rest string
	// run that is to be retried; empty for a direct request.
	run string
}

// routed finds out what a request asks for, from the path as it was sent: cleaning it, as a mux does, would be a redirect for
// paths that the upstream knows what to do with.
func routed(r *http.Request) (route, *problem) {
	unknown := refuse(http.StatusNotFound, "NotFound",
		"there is nothing here; use /v1/namespaces/{namespace}/queues/{queue}/direct/{path} or POST /v1/namespaces/{namespace}/jobruns/{name}/retry")
	const head = 6 // segments before the rest
	parts := strings.SplitN(r.URL.EscapedPath(), "/", head+2)
	if len(parts) < head+1 || parts[0] != "" || parts[1] != "v1" || parts[2] != "namespaces" || !isLabel(parts[3]) {
		return route{}, unknown
	}
	to := route{namespace: parts[3]}
	if len(parts) > head+1 {
		to.rest = "/" + parts[head+1]
	}
	switch kind, name, verb := parts[4], parts[5], parts[6]; {
	case kind == "queues" && verb == "direct" && isLabel(name) && passedOn(r.Method):
		to.queue = name
	case kind == "jobruns" && verb == "retry" && to.rest == "" && isName(name) && r.Method == http.MethodPost:
		to.run = name
	default:
		return route{}, unknown
	}
	if r.Header.Get("Upgrade") != "" {
		return route{}, refuse(http.StatusNotImplemented, "UpgradeNotSupported", "a connection cannot be upgraded to another protocol here; send a plain request")
	}
	return to, nil
}

func passedOn(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	default:
		return false
	}
}

func isLabel(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

func isName(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }
