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

// routed finds out what a request asks for.
func routed(r *http.Request) (route, *problem) {
	to, ok := parsed(r.URL.EscapedPath())
	if !ok || !to.allows(r.Method) {
		return route{}, refuse(http.StatusNotFound, "NotFound",
			"there is nothing here; use /v1/namespaces/{namespace}/queues/{queue}/direct/{path} or POST /v1/namespaces/{namespace}/jobruns/{name}/retry")
	}
	if r.Header.Get("Upgrade") != "" {
		return route{}, refuse(http.StatusNotImplemented, "UpgradeNotSupported", "a connection cannot be upgraded to another protocol here; send a plain request")
	}
	return to, nil
}

// parsed reads a path as it was sent: cleaning it, as a mux does, would be a redirect for paths that the upstream knows what to
// do with.
func parsed(path string) (route, bool) {
	const head = 7 // segments before the rest: "", v1, namespaces, {namespace}, {kind}, {name}, {verb}
	parts := strings.SplitN(path, "/", head+1)
	if len(parts) < head || !strings.HasPrefix(path, "/v1/namespaces/") || !isLabel(parts[3]) {
		return route{}, false
	}
	to, name := route{namespace: parts[3]}, parts[5]
	if len(parts) > head {
		to.rest = "/" + parts[head]
	}
	switch parts[4] + "/" + parts[6] {
	case "queues/direct":
		to.queue = name
		return to, isLabel(name)
	case "jobruns/retry":
		to.run = name
		return to, isName(name) && to.rest == ""
	default:
		return route{}, false
	}
}

// allows says whether that can be done with the method.
func (to route) allows(method string) bool {
	if to.run != "" {
		return method == http.MethodPost
	}
	return passedOn(method)
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
