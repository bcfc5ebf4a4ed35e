// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// statusClientGone is what the log shows for a request whose client went away. Nobody is sent it.
const statusClientGone = 499

// comeAgain is when a client that was refused because there is too much to do should come again.
const comeAgain = 5 * time.Second

// problem is why a request is refused or was cut, as the client sees it.
type problem struct {
	status        int
	code, message string
	// after is when the client should come again, 0 for never.
	after time.Duration
	// reservation that the problem is about, if any.
	reservation string
	// cause is for the log alone.
	cause error
}

func refuse(status int, code, format string, args ...any) *problem {
	return &problem{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// away is the problem with an API server that does not answer.
func away(err error, doing string) *problem {
	return refuse(http.StatusServiceUnavailable, "APIUnavailable", "%s did not work, since the API server does not answer as it should; try again", doing).
		again(comeAgain).because(err)
}

func (p *problem) again(after time.Duration) *problem {
	p.after = after
	return p
}

func (p *problem) because(err error) *problem {
	p.cause = err
	return p
}

func (p *problem) about(reservation string) *problem {
	p.reservation = reservation
	return p
}

// Error makes a problem the cause of a context's end.
func (p *problem) Error() string { return p.code + ": " + p.message }

// write answers a request of which nothing was answered yet.
func (p *problem) write(w http.ResponseWriter) {
	if p.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.after.Seconds()))))
	}
	respond(w, p.status, struct {
		Error       string `json:"error"`
		Message     string `json:"message"`
		Reservation string `json:"reservation,omitempty"`
	}{p.code, p.message, p.reservation})
}

// respond answers with JSON.
func respond(w http.ResponseWriter, status int, content any) {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // strings and structs of them
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
}
