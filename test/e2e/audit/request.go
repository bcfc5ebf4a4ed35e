// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Request is what an account has asked of the API server.
type Request struct {
	// User asked by itself: what somebody else asked in its name is not its doing.
	User string
	Verb string
	// Group of the resource; "" is the core group.
	Group string
	// Resource, followed by a slash and the subresource if it is one; "" if no resource was asked for, but Path.
	Resource string
	// Namespace is "" for what is asked of all of them, or of none.
	Namespace string
	// Name is "" for lists, and for what gets its name from the API server.
	Name string
	// Path of the URL.
	Path string
	// Code that was answered.
	Code int
}

// Refused reports whether the account had no right to ask.
func (r Request) Refused() bool { return r.Code == http.StatusForbidden }

// String says what was asked, as `kubectl auth can-i` would put it.
func (r Request) String() string {
	said := fmt.Sprintf("%s %s", r.Verb, r.Path)
	if r.Resource != "" {
		said = fmt.Sprintf("%s %s of group %q", r.Verb, r.Resource, r.Group)
	}
	if r.Name != "" {
		said += ", named " + r.Name
	}
	if r.Namespace != "" {
		said += ", in namespace " + r.Namespace
	}
	return fmt.Sprintf("%s (by %s, answered %d)", said, r.User, r.Code)
}

// event is what counts of an event of audit.k8s.io/v1.
type event struct {
	Stage            string
	Verb             string
	RequestURI       string
	User             struct{ Username string }
	ImpersonatedUser *struct{ Username string }
	ObjectRef        *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct{ Code int }
}

// Read returns what the accounts have asked for, in the order of the log. A request counts from its answer on; a watch counts
// twice, at its start and at its end. A last line that is still being written is left out.
func Read(log io.Reader, of func(user string) bool) ([]Request, error) {
	var all []Request
	lines := bufio.NewReader(log)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d of the audit log is no event: %w", number, err)
		}
		if e.answered() && e.ImpersonatedUser == nil && of(e.User.Username) {
			all = append(all, e.request())
		}
	}
}

func (e *event) answered() bool { return e.Stage == "ResponseComplete" || e.Stage == "ResponseStarted" }

func (e *event) request() Request {
	path, _, _ := strings.Cut(e.RequestURI, "?")
	r := Request{User: e.User.Username, Verb: e.Verb, Path: path, Code: e.ResponseStatus.Code}
	if o := e.ObjectRef; o != nil {
		r.Group, r.Resource, r.Namespace, r.Name = o.APIGroup, o.Resource, o.Namespace, o.Name
		if o.Subresource != "" {
			r.Resource += "/" + o.Subresource
		}
	}
	return r
}
